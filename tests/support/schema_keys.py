"""The keys that a JSON Schema allows, as rows of a table: path, type, default, description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
# What stands for a key that the user chooses, by the key above it.
_FREE = {"graphs": "graph", "inputs": "input", "precision": "SoC or arch"}  # others are a `<name>`
_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}
_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_UNLIMITED = 10**7  # a limit beyond it only keeps numbers sane


class Keys:
    """A definition that stands at several places is spelled out once, at the place nearest to the top."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.homes: dict[str, str] = {}
        waiting: list[tuple[str, Schema]] = [("", root)]
        for path, schema in waiting:  # it grows meanwhile: breadth first
            for name, inner in _below(path, schema):
                for kind, body in self._inside(inner).items():
                    if not kind or self.homes.setdefault(kind, name) == name:
                        waiting += [(name, body)]

    def rows(self, path: str = "", schema: Schema | None = None) -> Iterator[tuple[str, str, str, str]]:
        schema = schema or self.root
        for name, inner in _below(path, schema):
            inside = self._inside(inner)
            about = inner.get("description") or " ".join(body["description"] for kind, body in inside.items() if kind)
            if not about and name.endswith(">"):
                continue  # the mapping's own row says it all
            required = name.rpartition(".")[2] in schema.get("required", ())
            yield name, self._type(inner, name), "**required**" if required else self._default(inner, inside), about
            for kind, body in inside.items():
                if not kind or self.homes[kind] == name:
                    yield from self.rows(name, body)

    def _inside(self, schema: Schema) -> dict[str, Schema]:
        """The mappings that a value may be or hold, by their definition's name, empty where it has none."""
        if "$ref" in schema:
            kind = _kind(schema)
            return {kind: self.root["$defs"][kind]}
        found = {"": schema} if "properties" in schema or _chosen(schema) else {}
        for part in (*schema.get("anyOf", ()), schema.get("items")):
            found |= self._inside(part) if part else {}
        return found

    def _type(self, schema: Schema, name: str) -> str:
        if "anyOf" in schema:
            told = [self._type(part, name) for part in schema["anyOf"] if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(told))
        if "$ref" in schema:
            home = self.homes[_kind(schema)]
            return "mapping" if home == name else f"as `{home}`"
        if "enum" in schema or "const" in schema:
            return ", ".join(f"`{value}`" for value in schema.get("enum") or [schema["const"]])
        if schema["type"] == "array":
            if "prefixItems" in schema:
                return "list of " + ", ".join(self._type(part, name) for part in schema["prefixItems"])
            return f"list of {self._type(schema['items'], name)}" if schema.get("items") else "list"
        limits = [f"{sign} {schema[key]}" for key, sign in _LIMITS.items() if schema.get(key, _UNLIMITED) < _UNLIMITED]
        word = _WORDS.get(schema["type"], str(schema["type"]))
        return f"{word} {' and '.join(limits)}".strip()

    def _default(self, schema: Schema, inside: dict[str, Schema]) -> str:
        """Empty where there is none, and for a mapping that holds no more than the defaults of its keys."""
        value = schema.get("default")
        if isinstance(value, dict):
            keys = {
                key: inner.get("default")
                for body in inside.values()
                for key, inner in body.get("properties", {}).items()
            }
            value = value if any(value[key] != keys[key] for key in value) else None
        return "" if value is None else f"`{_yaml(value)}`"


def _kind(schema: Schema) -> str:
    return str(schema["$ref"].rsplit("/", 1)[-1])


def _below(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The keys of a mapping; one that the user chooses as `<graph>`."""
    dot = f"{path}." if path else ""
    for name, inner in schema.get("properties", {}).items():
        yield f"{dot}{name}", inner
    for inner in _chosen(schema):
        yield f"{dot}<{_FREE.get(path.rpartition('.')[2], 'name')}>", inner


def _chosen(schema: Schema) -> list[Schema]:
    """What stands under keys that the user chooses."""
    found = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
    return [each for each in found if isinstance(each, dict)]


def _yaml(value: object) -> str:
    """A default as a project file would say it, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(each)}" for key, each in value.items() if each is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
