"""What stands in the docs and comes out of the code: `python -m tests.generated` compares, `--write` writes.

In README.md and docs/*.md, what is between `<!-- generated: NAME -->` and `<!-- end -->` is made here.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from qnnci import errors, manifest, rules
from qnnci.cli.main import cli
from qnnci.commands.project import schema_text
from qnnci.project import Project
from qnnci.report.chips import _HEADER, _row
from qnnci.ship.runtime_fetch import packages
from qnnci.ship.sherpa_contract import CONTRACTS
from qnnci.soc import all_socs, htp_socs
from qnnci.toolchain.htp_config import GRAPH_KEYS
from qnnci.toolchain.sdk_install import pins
from tests.support import action_types
from tests.support.schema_keys import Keys

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<end>^<!-- end -->$)", re.DOTALL | re.MULTILINE
)

Row = tuple[str, ...]


def _table(header: Row, rows: Iterable[Row]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |" for line in lines
    )


def _code(value: object) -> str:
    return f"`{value}`"


def exit_codes() -> str:
    source = Path(errors.__file__).read_text(encoding="utf-8")
    meanings = dict(re.findall(r"^    ([A-Z_]+) = \d+  # (.+)$", source, re.MULTILINE))
    return _table(("code", "meaning"), ((_code(int(code)), meanings[code.name]) for code in errors.ExitCode))


def all_rules() -> str:
    """A table for each section of the catalogue."""
    sections: dict[str, list[Row]] = {}
    for rule in rules.RULES.values():
        sections.setdefault(rule.section, []).append(_rule_row(rule))
    header = ("rule", "severity", "what it is", "what it means", "what to do")
    return "\n\n".join(f"## {name[0].upper()}{name[1:]}\n\n{_table(header, rows)}" for name, rows in sections.items())


def _rule_row(rule: rules.Rule) -> Row:
    return (f'<a id="{rule.id}"></a>{_code(rule.id)}', rule.severity, rule.title, rule.meaning, rule.todo)


def chips() -> str:
    return _table(_HEADER, (_row(soc) for soc in sorted(htp_socs(), key=lambda soc: (soc.arch, soc.id))))


def chips_refused() -> str:
    others = [soc for soc in all_socs() if not soc.has_htp]
    return ", ".join(f"{soc.name} ({soc.id}{f', {soc.dsp_arch}' if soc.dsp_arch else ''})" for soc in others) + "."


def htp_keys() -> str:
    rows = ((_code(key), ".".join(map(str, since))) for key, since in sorted(GRAPH_KEYS.items()))
    return _table(("option", "known from SDK"), rows)


def project_keys() -> str:
    rows = ((_code(key), *rest) for key, *rest in Keys(Project.model_json_schema()).rows())
    return _table(("key", "type", "default", "what it is"), rows)


def verbs() -> str:
    """Each verb with its usage, arguments and options, in the order of `qnnci --help`."""
    return "\n\n".join(_verb(name, command) for name, command in _commands("", cli))


def _commands(prefix: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _commands(f"{prefix}{name} ", command)
        else:
            yield f"{prefix}{name}", command


def _verb(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"qnnci {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    options = [option for option in command.params if isinstance(option, click.Option)]
    records = [(option.get_help_record(context) or ("", ""), option.envvar) for option in options]
    rows = [(_code(names), text, _code(variable) if variable else "") for (names, text), variable in records]
    said = f"## `qnnci {name}`\n\n{' '.join((command.help or '').split())}\n\n```text\nqnnci {name} {usage}\n```"
    return f"{said}\n\n{_table(('option', 'what it does', 'variable'), rows)}" if rows else said


def _action() -> dict[str, Any]:
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return action


def action_inputs() -> str:
    types = action_types.types(_action(), cli)["inputs"]
    rows = (
        (_code(name), _kind(types[name]), each["description"], _code(each["default"]) if each.get("default") else "")
        for name, each in _action()["inputs"].items()
    )
    return _table(("input", "type", "what it is", "default"), rows)


def _kind(about: dict[str, Any]) -> str:
    return " / ".join(map(_code, about["allowed-values"])) if about["type"] == "enum" else str(about["type"])


def action_outputs() -> str:
    rows = ((_code(name), each["description"]) for name, each in _action()["outputs"].items())
    return _table(("output", "what it is"), rows)


def _called(name: str) -> dict[str, Any]:
    """Inputs of a reusable workflow."""
    workflow = yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))
    inputs: dict[str, Any] = workflow[True]["workflow_call"]["inputs"]  # `on` is true in YAML 1.1
    return inputs


def _inputs_table(inputs: dict[str, Any]) -> str:
    rows = (
        (
            f"**{_code(name)}**" if each.get("required") else _code(name),
            each["description"],
            "" if each.get("default", "") == "" else _code(str(each["default"]).lower()),
        )
        for name, each in inputs.items()
    )
    return _table(("input", "what it is", "default"), rows)


def workflow_inputs() -> str:
    return _inputs_table(_called("compile.yml"))


def release_inputs() -> str:
    """What release.yml takes beyond compile.yml."""
    own = {name: each for name, each in _called("release.yml").items() if name not in _called("compile.yml")}
    return _inputs_table(own)


def job_rights() -> str:
    """Each job of the reusable workflows with its permissions and the secrets that its steps see."""
    rows = []
    for name in ("compile.yml", "release.yml"):
        jobs = yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))["jobs"]
        for job in jobs.values():
            rights = ", ".join(f"{_code(f'{what}: {level}')}" for what, level in job["permissions"].items())
            secrets = dict.fromkeys(re.findall(r"secrets\.([\w-]+)", str(job)))
            shown = re.sub(r" ?\$\{\{.*?\}\}", " …", job["name"])
            rows.append((_code(name), shown, rights, ", ".join(map(_code, secrets))))
    return _table(("workflow", "job", "rights", "secrets"), rows)


def actions() -> str:
    """Each action of one verb: what it does, its inputs (those required in bold) and its outputs."""
    rows = []
    for path in sorted(ROOT.glob("actions/*/action.yml")):
        action = yaml.safe_load(path.read_text(encoding="utf-8"))
        own = {name: each for name, each in action["inputs"].items() if name not in {"python", "working-directory"}}
        inputs = ", ".join(f"**{_code(name)}**" if each.get("required") else _code(name) for name, each in own.items())
        rows.append((_code(path.parent.name), action["description"], inputs, ", ".join(map(_code, action["outputs"]))))
    return _table(("action", "what it does", "inputs, required ones in bold", "outputs"), rows)


def sherpa_families() -> str:
    rows = (
        (_code(family), role, *map(_code, sides))
        for family, graphs in CONTRACTS.items()
        for role, sides in graphs.items()
    )
    return _table(("family", "graph", "inputs", "outputs"), rows)


def sdk_zips() -> str:
    rows = ((version, f"{pin.bytes:,}", _code(pin.sha256), pin.source) for version, pin in pins().items())
    return _table(("version", "bytes", "sha256", "measured by"), rows)


def onnxruntime_qnn() -> str:
    rows = ((each.version, each.qairt, ", ".join(each.wheels)) for each in packages())
    return _table(("onnxruntime-qnn", "QAIRT", "wheels with its libraries"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "exit-codes": exit_codes,
    "rules": all_rules,
    "chips": chips,
    "chips-refused": chips_refused,
    "project-keys": project_keys,
    "cli": verbs,
    "action-inputs": action_inputs,
    "action-outputs": action_outputs,
    "workflow-inputs": workflow_inputs,
    "release-inputs": release_inputs,
    "job-rights": job_rights,
    "actions": actions,
    "sdks": sdk_zips,
    "sherpa-families": sherpa_families,
    "htp-keys": htp_keys,
    "onnxruntime-qnn": onnxruntime_qnn,
}


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def action_files() -> list[Path]:
    return [*ROOT.glob("action.yml"), *sorted(ROOT.glob("actions/*/action.yml"))]


def filled(text: str) -> str:
    """A document with its blocks made anew; KeyError for a block of an unknown name."""
    return _BLOCK.sub(lambda block: f"{block['begin']}{BLOCKS[block['name']]()}\n{block['end']}", text)


def wanted() -> dict[Path, str]:
    """What each file that is generated, in whole or in part, has to hold."""
    texts = {path: filled(path.read_text(encoding="utf-8")) for path in documents()}
    types = {path.with_name("action-types.yml"): action_types.text(path, cli) for path in action_files()}
    schemas = {ROOT / "qnn.schema.json": schema_text(), ROOT / "manifest.schema.json": manifest.schema_text()}
    return {**schemas, **types, **texts}


def difference(path: Path, text: str) -> str:
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    name = str(path.relative_to(ROOT))
    return "".join(
        difflib.unified_diff(old.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} (generated)")
    )


def main(*arguments: str) -> int:
    stale = {path: text for path, text in wanted().items() if difference(path, text)}
    for path, text in stale.items():
        if "--write" in arguments:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
        else:
            print(difference(path, text), end="")
    return 1 if stale and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
