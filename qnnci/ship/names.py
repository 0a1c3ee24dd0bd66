"""Names of archives: templates such as `{project}-{soc}-{precision}`, and what may stand in what comes out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter

from qnnci.errors import UsageError

_GOOD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fields_of(template: str) -> tuple[str, ...]:
    """The fields of a template, in order.

    Raises:
        UsageError: it is none: a brace without its partner, or more than a name between two.

    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise UsageError(f"the name {template[:80]!r}: {error}", hint="write `{soc}`, and no other braces") from error
    fields = []
    for _, field, form, conversion in parts:
        if field is None:
            continue
        if form or conversion or not _FIELD.fullmatch(field):
            raise UsageError(f"the name {template[:80]!r}: a field is a name in braces", hint="write `{soc}`")
        fields.append(field)
    return tuple(fields)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values for fields.

    Raises:
        UsageError: a field that there is not.

    """
    for field in fields_of(template):
        if field not in values:
            known = ", ".join(f"{{{name}}}" for name in values)
            raise UsageError(
                f"the name {template[:80]!r} has {{{field}}}, which is not known", hint=f"there are {known}"
            )
    return "".join(text + (values[field] if field else "") for text, field, *_ in Formatter().parse(template))


def archive_name(template: str, values: Mapping[str, str]) -> str:
    """Fill a template; the result is safe as a file, a folder and a release asset on every system.

    Raises:
        UsageError: a field that there is not, or a result with other than letters, digits, `.`, `_`, `+` and `-`.

    """
    name = fill(template, values)
    if not _GOOD.fullmatch(name):
        hint = "letters, digits, `.`, `_`, `+` and `-`, 200 at most, and a letter or digit first"
        raise UsageError(f"an archive cannot be called {name[:200]!r}", hint=hint)
    return name


def parts_of(pattern: str, text: str) -> dict[str, str] | None:
    """Read a text back into the fields of a template, the first as long as can be; None where it does not fit.

    Raises:
        UsageError: the pattern is none, or names a field twice.

    """
    fields = fields_of(pattern)
    if len(set(fields)) != len(fields):
        raise UsageError(f"{pattern[:80]!r} names a part twice")
    regex = "".join(
        re.escape(literal) + (f"(?P<{field}>.+)" if field else "") for literal, field, *_ in Formatter().parse(pattern)
    )
    match = re.fullmatch(regex, text)
    return match.groupdict() if match else None
