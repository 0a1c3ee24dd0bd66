"""What went into the binaries of a build, as a CycloneDX document: model, tools, compiler, and they themselves."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from qnnci.manifest import Entry, Manifest

SBOM = "sbom.cdx.json"
_SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/qnnci")


def sbom(manifest: Manifest) -> str:
    """A CycloneDX 1.6 document in JSON; the same for the same manifest, to the byte."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion

    whole = Component(name=manifest.name, type=ComponentType.DATA, bom_ref=f"build:{manifest.name}")
    document = Bom(serial_number=uuid.uuid5(_SPACE, manifest.model_dump_json()))
    document.metadata.component = whole
    document.metadata.timestamp = _newest(manifest.entries)
    tools = [_tool(name, version) for name, version in manifest.tools.items() if version != "missing"]
    tools += [_compiler(build) for build in sorted({entry.qairt for entry in manifest.entries})]
    models = {entry.source_sha256: _model(entry) for entry in manifest.entries}
    binaries = list(map(_binary, manifest.entries))
    for each in (*tools, *models.values(), *binaries):
        document.components.add(each)
    for entry, binary in zip(manifest.entries, binaries, strict=True):
        needs = [each for each in tools if each.name != "QAIRT" or each.version == _version(entry.qairt)]
        document.register_dependency(binary, [models[entry.source_sha256], *needs])
    document.register_dependency(whole, binaries)
    text: str = make_outputter(document, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    return f"{text}\n"


def _newest(entries: Iterable[Entry]) -> datetime:
    """When the last binary was built; the start of 1980 where there is none, or no time that can be read."""
    found = []
    for entry in entries:
        try:
            found.append(datetime.fromisoformat(entry.built_at).astimezone(timezone.utc))
        except (ValueError, OverflowError):
            continue
    return max(found, default=datetime(1980, 1, 1, tzinfo=timezone.utc))


def _tool(name: str, version: str) -> Any:
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    place = PackageURL("pypi", None, name, version)
    return Component(name=name, version=version, type=ComponentType.LIBRARY, purl=place, bom_ref=str(place))


def _version(build: str) -> str:
    return build.removeprefix("v")


def _compiler(build: str) -> Any:
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.contact import OrganizationalEntity

    return Component(
        name="QAIRT",
        version=_version(build),
        type=ComponentType.APPLICATION,
        supplier=OrganizationalEntity(name="Qualcomm Technologies, Inc."),
        description="Compiler of the binaries",
        bom_ref=f"qairt:{build}",
    )


def _model(entry: Entry) -> Any:
    from cyclonedx.model.component import Component, ComponentType

    return Component(
        name=entry.source,
        type=ComponentType.MACHINE_LEARNING_MODEL,
        hashes=_hashes(entry.source_sha256),
        licenses=_licences(entry.license),
        bom_ref=f"model:{entry.source_sha256}",
    )


def _binary(entry: Entry) -> Any:
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component, ComponentType

    facts = {"graph": entry.graph, "soc": entry.soc, "dsp_arch": entry.dsp_arch, "precision": entry.precision}
    return Component(
        name=entry.binary,
        type=ComponentType.FILE,
        hashes=_hashes(entry.sha256),
        licenses=_licences(entry.license),
        properties=[Property(name=f"qnnci:{name}", value=value) for name, value in facts.items()],
        bom_ref=f"binary:{entry.graph}-{entry.soc}-{entry.precision}-{entry.sha256[:16]}",
    )


def _hashes(digest: str) -> list[Any]:
    from cyclonedx.model import HashAlgorithm, HashType

    return [HashType(alg=HashAlgorithm.SHA_256, content=digest)] if re.fullmatch(r"[0-9a-f]{64}", digest) else []


def _licences(name: str | None) -> list[Any]:
    """By its SPDX id where it is one, else by its name."""
    from cyclonedx.contrib.license.factories import LicenseFactory

    return [LicenseFactory().make_from_string(name)] if name else []
