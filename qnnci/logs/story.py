"""What the lines add up to: root causes with their fallout, what else is worth telling, and whether it worked."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from qnnci.findings import SEVERITIES, Finding
from qnnci.logs.facts import Facts
from qnnci.logs.lines import codes, explained, message
from qnnci.logs.patterns import ERRORS, Pattern
from qnnci.qnn_errors import explain
from qnnci.rules import finding

Outcome = Literal["success", "warning", "failed"]
_DISTINCT = 50  # findings of one rule that differ, and distinct lines of fallout of one cause; more are only counted


_SIGNALLED = 128  # and the signal's number is a shell's exit code of a program that was killed


@dataclass(slots=True)
class Seen:
    """A finding and how often its line came; of a cause, also what followed from it. `others` were only counted."""

    finding: Finding
    kind: str
    count: int = 1
    codes: tuple[int, ...] = ()
    fallout: list[Seen] = field(default_factory=list)
    others: int = 0
    hides: bool = False
    cause: bool = False
    inner: bool = False  # about an op of the compiler's own making

    @property
    def total(self) -> Finding:
        """The finding with its counts and fallout in its message."""
        more = [f"{self.count} times"] if self.count > 1 else []
        more += [f"{self.others} more like it"] if self.others else []
        if self.fallout:
            count = sum(each.count + each.others for each in self.fallout)
            named = dict.fromkeys(explain(code).partition(":")[0] for each in self.fallout for code in each.codes)
            lines = "1 more error" if count == 1 else f"{count} more errors"
            more.append(f"then {lines}" + (f" with {', '.join(named)}" if named else ""))
        return replace(self.finding, message=f"{self.finding.message} [{'; '.join(more)}]") if more else self.finding

    def to_json(self) -> dict[str, Any]:
        told = {"kind": self.kind, **self.finding.to_json(), "count": self.count, "codes": list(self.codes)}
        told |= {"others": self.others} if self.others else {}
        return told | ({"fallout": [each.to_json() for each in self.fallout]} if self.fallout else {})


@dataclass(frozen=True, slots=True)
class LogReport:
    """What a log says. `seen` holds root causes first, in time; then warnings and notices.

    `kinds` counts the kinds of all lines that were read; harmless ones only where they were wanted.
    """

    outcome: Outcome
    why: str
    seen: tuple[Seen, ...]
    facts: Facts
    kinds: Counter[str]
    tool: str
    lines: int

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(each.total for each in self.seen)

    @property
    def causes(self) -> tuple[Finding, ...]:
        """Errors that a pattern knows as a root cause, without counts."""
        return tuple(each.finding for each in self.seen if each.cause)

    def last_errors(self, count: int = 3) -> list[str]:
        """The last distinct error lines, for a failure of which no cause is known."""
        errors = [each for head in self.seen if head.finding.severity == "error" for each in (head, *head.fallout)]
        return list(dict.fromkeys(each.finding.message for each in sorted(errors, key=lambda e: e.finding.line)))[
            -count:
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "why": self.why,
            "tool": self.tool,
            "lines": self.lines,
            "findings": [each.to_json() for each in self.seen],
            "facts": self.facts.to_json(),
            "kinds": dict(sorted(self.kinds.items())),
        }


class Story:
    """Takes what patterns found, in the log's order; what it keeps does not grow with the log."""

    def __init__(self, nodes: Collection[str]) -> None:
        self.kinds: Counter[str] = Counter()
        self.facts = Facts()
        self._nodes = nodes
        self._errors: dict[tuple[str, str], Seen] = {}  # causes
        self._orphans: dict[tuple[str, str], Seen] = {}  # fallout and unknown errors that no cause came before
        self._notes: dict[tuple[str, str], Seen] = {}
        self._per_rule: dict[str, list[Seen]] = {}
        self._cause: Seen | None = None
        self._done = self._prepared = self._degraded = False
        self._known = False  # whether an error that a pattern knows has come

    def take(self, pattern: Pattern, text: str, groups: dict[str, str | None], line: int) -> Seen | None:
        """One match. Returns the finding that it counts towards, if any."""
        failed = self._known
        self.kinds[pattern.despite if pattern.despite and failed else pattern.kind] += 1
        self._degraded |= pattern.degrades
        self._done |= pattern.role == "done"
        self._prepared |= groups.get("stage") == "Completion"
        if pattern.despite and failed:
            return self._note(pattern, finding(pattern.despite, text.strip(), line=line), (), pattern.despite)
        if pattern.role not in ERRORS | {"note"}:
            return None
        said, node = message(pattern, text, groups, self._nodes)
        numbers = tuple(codes(text, groups))
        made = finding(
            pattern.rule,
            explained(said, [*numbers]),
            severity=pattern.severity,
            hint=pattern.hint,
            node=node,
            line=line,
        )
        if pattern.role == "note":
            return self._note(pattern, made, numbers)
        self._known |= pattern.role != "unknown"
        return self._error(pattern, made, numbers, inner=(groups.get("node") or "").startswith("q::"))

    def again(self, seen: Seen, kind: str) -> None:
        """The same line once more."""
        self.kinds[kind] += 1
        seen.count += 1
        if (seen.finding.rule, seen.finding.node or seen.finding.message) in self._errors:
            self._cause = seen

    def _note(self, pattern: Pattern, made: Finding, numbers: tuple[int, ...], kind: str = "") -> Seen:
        seen = self._kept(self._notes, made, kind or pattern.kind, numbers)
        seen.hides |= pattern.hides
        return seen

    def _error(self, pattern: Pattern, made: Finding, numbers: tuple[int, ...], *, inner: bool) -> Seen:
        if pattern.role != "cause":
            if self._cause is None:
                return self._kept(self._orphans, made, pattern.kind, numbers)
            return _followed(self._cause, made, pattern.kind, numbers)
        before = self._cause
        if before is not None and made.rule == before.finding.rule and made.node and before.inner:
            # The compiler named its own op first and the graph's node only now: one cause, told by the node.
            op = Seen(before.finding, pattern.kind, before.count, before.codes)
            before.finding, before.inner = replace(made, line=before.finding.line), False
            before.fallout.insert(0, op)
            return before
        if (
            before is not None
            and made.message != before.finding.message.strip()
            and made.message.endswith(before.finding.message)
        ):
            return _followed(before, made, pattern.kind, numbers)  # the exception that repeats the log's error
        seen = self._kept(self._errors, made, pattern.kind, numbers)
        seen.cause, seen.inner = True, inner
        self._cause = seen
        return seen

    def _kept(self, into: dict[tuple[str, str], Seen], made: Finding, kind: str, numbers: tuple[int, ...]) -> Seen:
        key = (made.rule, made.node or made.message)
        if key in into:
            into[key].count += 1
            return into[key]
        alike = self._per_rule.setdefault(made.rule, [])
        if len(alike) >= _DISTINCT:
            alike[0].others += 1
            return alike[0]
        seen = into[key] = Seen(made, kind, codes=numbers)
        alike.append(seen)
        return seen

    def report(self, *, exit_code: int | None, quantized: bool, tool: str, lines: int) -> LogReport:
        """Judge the whole. `exit_code` is None where it is not known; `quantized` says what had been asked for."""
        if self.facts.vendor_skel:
            self._vendor_skel()
        errors = self._rooted(worked=exit_code == 0 or (exit_code is None and self._done))
        notes = list(self._notes.values())
        for each in notes:
            skipped = each.finding.rule in {"quantization-skipped", "encodings-unmatched"} and quantized
            if skipped or (each.hides and exit_code == 0):
                each.finding = replace(each.finding, severity="error")
        seen = sorted([*errors, *notes], key=lambda each: SEVERITIES.index(each.finding.severity))
        failed = bool(seen) and seen[0].finding.severity == "error"
        # A crash after a graph's last stage may have cost the next graph.
        complete = self._done or (self._prepared and 0 < (exit_code or 0) < _SIGNALLED)
        outcome, why = self._outcome(exit_code, failed=failed, complete=complete)
        if exit_code and not failed:
            seen.insert(0, _unexplained(exit_code, done=complete))
        return LogReport(outcome, why, tuple(seen), self.facts, self.kinds, tool, lines)

    def _vendor_skel(self) -> None:
        made = finding("vendor-skel", f"the skel that was loaded is the phone's own: {self.facts.vendor_skel}")
        self._kept(self._errors, made, "vendor-skel", ())

    def _outcome(self, exit_code: int | None, *, failed: bool, complete: bool) -> tuple[Outcome, str]:
        if failed:
            return "failed", "the exit code is 0, but the log tells of a failure" if exit_code == 0 else ""
        if exit_code:
            if complete:
                return "warning", f"ended with {_named(exit_code)} after a complete run"
            return "failed", f"ended with {_named(exit_code)}"
        return ("warning", "it worked, but not wholly on the HTP") if self._degraded else ("success", "")

    def _rooted(self, *, worked: bool) -> list[Seen]:
        """Errors as they are told: causes with their fallout, or what came first where no cause is known."""
        causes, orphans = list(self._errors.values()), list(self._orphans.values())
        if causes:
            causes[0].fallout[:0] = orphans
            return causes
        if worked and not self._known:
            for each in orphans:
                each.finding = replace(each.finding, severity="warning")
            return orphans
        if orphans:
            orphans[0].fallout.extend(orphans[1:])
        return orphans[:1]


def _followed(cause: Seen, made: Finding, kind: str, numbers: tuple[int, ...]) -> Seen:
    for each in cause.fallout:
        if (each.finding.rule, each.finding.message) == (made.rule, made.message):
            each.count += 1
            return each
    if len(cause.fallout) >= _DISTINCT:
        cause.fallout[-1].others += 1
        return cause.fallout[-1]
    seen = Seen(made, kind, codes=numbers)
    cause.fallout.append(seen)
    return seen


def _named(exit_code: int) -> str:
    number = exit_code - _SIGNALLED if exit_code > _SIGNALLED else -exit_code  # a shell's way, and Python's
    try:
        return f"exit code {exit_code} ({signal.Signals(number).name})"
    except ValueError:
        return f"exit code {exit_code}"


def _unexplained(exit_code: int, *, done: bool) -> Seen:
    named = _named(exit_code)
    if done:
        return Seen(finding("exit-after-success", f"ended with {named} after a complete run"), "exit-after-success")
    rule = "stage-crashed" if "(" in named else "silent-failure"
    return Seen(finding(rule, f"ended with {named}, and the log does not say why"), rule)
