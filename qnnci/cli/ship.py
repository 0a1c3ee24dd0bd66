"""Verbs that bring what was built to people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qnnci.cli.options import Lines, joined, names, option

# As `qnnci.project` has them, which takes too long to import here.
LAYOUTS = ("plain", "onnxruntime", "sherpa-onnx")
FAMILIES = (
    "sense-voice", "zipformer-ctc", "paraformer", "parakeet-ctc", "parakeet-tdt", "nemotron", "zipformer-transducer",
    "whisper", "moonshine",
)  # fmt: skip
ARCHIVES = ("tar.bz2", "tar.zst", "zip")
PLATFORMS = ("android", "linux-aarch64", "windows-arm64")


@click.command()
@click.argument("where", required=False, type=click.Path(path_type=Path), envvar="QNNCI_INPUT_MANIFEST")
@option("-c", "--config", env="CONFIG", help="Project file, for its `bundle` (default qnn.yaml, where there is one).")
@option("--layout", env="LAYOUT", type=click.Choice(LAYOUTS), help="For whom (default the project file's, plain).")
@option("--family", env="FAMILY", type=click.Choice(FAMILIES), help="Of layout sherpa-onnx: which model this is.")
@option("--name", env="NAME", help="Of an archive, such as {project}-{soc}-{precision} (default the layout's).")
@names("--add", "add", env="ADD", lines=True, help="File, folder or pattern to put in. Repeatable.")
@option("--archive", env="ARCHIVE", type=click.Choice(ARCHIVES), help="Form of the archives (default tar.bz2).")
@option("-o", "--output", env="OUTPUT", type=click.Path(path_type=Path), help="Folder to write to (default bundles).")
@option("--include-failed", env="INCLUDE_FAILED", is_flag=True, help="Binaries too that did not pass their gates.")
@click.option("--json", "as_json", is_flag=True, help="Archives and findings as JSON.")
@click.pass_context
def bundle(
    ctx: click.Context,
    /,
    *,
    where: Path | None,
    config: str | None,
    output: Path | None,
    include_failed: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Pack what a build made into an archive for each chip: of a manifest or folder, by default the project's own."""
    from qnnci.commands import bundle as command

    ctx.exit(command.run(where, config, settings, output, include_failed=include_failed, as_json=as_json))


@click.command("runtime-libs")
@option(
    "--for",
    "where",
    env="MANIFEST",
    required=True,
    type=click.Path(path_type=Path),
    help="The manifest of the binaries, or a folder that builds wrote.",
)
@option("--platform", env="PLATFORM", required=True, type=click.Choice(PLATFORMS), help="Where the binaries will run.")
@option(
    "--from",
    "source",
    env="FROM",
    help="sdk, pypi, pypi==VERSION, maven, an https address, or the path of an SDK, a wheel or an AAR "
    "(default what fits the platform).",
)
@names("--soc", "socs", env="SOCS", help="Of the manifest's chips, those that are meant (default all). Repeatable.")
@option("--layout", env="LAYOUT", type=click.Choice(("flat", "jniLibs")), help="Of the files (default flat).")
@option(
    "--archive",
    env="ARCHIVE",
    type=click.Choice((*ARCHIVES, "folder")),
    help="Form of what is written (default tar.bz2, of layout jniLibs a folder).",
)
@option("--prepare", env="PREPARE", is_flag=True, help="Put in what compiles graphs on the device: 90 MB more.")
@option("--license", "licence", env="LICENSE", type=click.Path(path_type=Path), help="The vendor's, if none is there.")
@option("--maven", env="MAVEN", help="Address of a Maven repository (default Maven Central).")
@option("-o", "--output", env="OUTPUT", type=click.Path(path_type=Path), help="Folder (default runtime-libs).")
@click.option("--json", "as_json", is_flag=True, help="What was written and findings as JSON.")
@click.pass_context
def runtime_libs(
    ctx: click.Context,
    /,
    *,
    where: Path,
    platform: str,
    source: str | None,
    socs: tuple[str, ...],
    layout: str | None,
    archive: str | None,
    prepare: bool,
    licence: Path | None,
    maven: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Collect the QAIRT libraries that binaries need on a device: those of their version, for their chips alone."""
    from qnnci.commands import runtime_libs as command

    ctx.exit(
        command.run(
            where, platform, source, socs, layout, output,
            archive=archive, prepare=prepare, licence=licence, maven=maven, as_json=as_json,
        )
    )  # fmt: skip


@click.group()
def publish() -> None:
    """Bring what was built to where people find it."""


@publish.command("release")
@click.argument("files", nargs=-1, type=Lines(), envvar="QNNCI_INPUT_FILES", callback=joined)
@option("--tag", env="TAG", required=True, help="Of the release; a new one is put on `--target`.")
@option("--repo", env="REPO", default="", help="owner/name (default GITHUB_REPOSITORY).")
@option("--manifest", env="MANIFEST", type=click.Path(path_type=Path), help="Of the build: it must have passed.")
@names("--license", "licences", env="LICENSE", help="Of the model, by SPDX id (default the manifest's). Repeatable.")
@option("--allowed-because", env="ALLOWED_BECAUSE", default="", help="Why you may, where no licence says so.")
@option("--name", env="NAME", default="", help="Title of the release (default the tag).")
@option("--notes", env="NOTES", type=click.Path(path_type=Path), help="File with its text (default a summary).")
@option("--target", env="TARGET", default="", help="Branch or commit of a new tag (default the default branch).")
@option("--prerelease", env="PRERELEASE", is_flag=True, help="Mark it as not ready for everybody.")
@option("--draft", env="DRAFT", is_flag=True, help="Leave it a draft, for a person to publish.")
@option("--update", env="UPDATE", is_flag=True, help="Change a release that is published already.")
@option("--api-url", env="API_URL", default="", help="Of GitHub Enterprise (default GITHUB_API_URL).")
@option("-j", "--jobs", env="JOBS", default=4, type=click.IntRange(1, 32), help="Uploads at once (default 4).")
@click.pass_context
def publish_release(ctx: click.Context, /, *, files: tuple[str, ...], **asked: Any) -> None:
    """Publish files as a GitHub release: draft, upload all, publish. Run again, it goes on where it stopped.

    Without FILES, the binaries of the manifest. The token is read from GITHUB_TOKEN.
    """
    from qnnci.commands import publish as command

    ctx.exit(command.release(files, command.Asked(**asked)))


@publish.command("huggingface")
@option("--repo", env="REPO", default="", help="org/name (default the project file's); made if it is not there.")
@option("-c", "--config", env="CONFIG", help="Project file, for its `publish` (default qnn.yaml, where there is one).")
@option("--manifest", env="MANIFEST", type=click.Path(path_type=Path), help="Of the build (default the project's).")
@names("--add", "add", env="ADD", lines=True, help="File, folder or pattern to publish too. Repeatable.")
@option(
    "--binaries/--no-binaries", env="BINARIES", default=None, help="Those of the manifest, or what --add names alone."
)
@option("--layout", env="LAYOUT", type=click.Choice(LAYOUTS), help="Of the archives (default the project file's).")
@names("--license", "licences", env="LICENSE", help="Of the model, by SPDX id (default the manifest's). Repeatable.")
@option("--allowed-because", env="ALLOWED_BECAUSE", default="", help="Why you may, where no licence says so.")
@option("--private/--public", env="PRIVATE", default=None, help="Of a new repo (default the Hub's own).")
@option("--revision", env="REVISION", default="", help="Branch, made if it is not there (default main).")
@option("--pull-request", "--pr", env="PULL_REQUEST", is_flag=True, help="Open a pull request instead.")
@option("--message", env="MESSAGE", default="", help="Of the commit (default the model's name and chips).")
@option("-j", "--jobs", env="JOBS", default=4, type=click.IntRange(1, 32), help="Uploads at once (default 4).")
@click.pass_context
def publish_huggingface(ctx: click.Context, /, *, binaries: bool | None, **asked: Any) -> None:
    """Publish binaries with a model card on the Hugging Face Hub, by one commit. Run again, it changes what changed.

    The token is read from HF_TOKEN; a workflow that is a trusted publisher of the repo needs none.
    """
    from qnnci.commands import publish_hub as command

    ctx.exit(command.run(command.Asked(binaries=binaries is not False, **asked)))


@click.command()
@click.argument("where", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write (default: print it).")
def sbom(*, where: Path, output: Path | None) -> None:
    """Say what went into the binaries of a manifest: model, tools and compiler, as CycloneDX 1.6 JSON."""
    from qnnci.commands import release_check as command

    command.sbom(where, output)


@click.command("verify-release")
@click.argument("where")
@click.option("--api-url", default="", help="Of GitHub Enterprise (default GITHUB_API_URL).")
@click.option("--attestation", is_flag=True, help="Ask `gh` for the provenance of each file of owner/name@tag too.")
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
@click.pass_context
def verify_release(ctx: click.Context, /, *, where: str, api_url: str, attestation: bool, as_json: bool) -> None:
    """Check a release against its sums and its manifest: a folder of its files, or owner/name@tag to download."""
    from qnnci.commands import release_check as command

    ctx.exit(command.verify(where, api_url, attestation=attestation, as_json=as_json))


VERBS = (bundle, publish, runtime_libs, sbom, verify_release)
