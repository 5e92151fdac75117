"""An instance of a JSON Schema, built from the schema and words of the prompt.

Owns the walk over the schema. Pure. It covers what structured-output requests and tool parameters use: types, enum,
const, objects, arrays, bounds, patterns, formats, $ref into the same document, anyOf / oneOf / allOf. Negation and
conditionals are not solved for. ``answer`` calls it, ``defect`` breaks what it made.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor
from random import Random
from typing import Any

from gateway.simulator.pattern import text_for

_DEEPEST = 12
_FORMATS = {
    "date": "2026-03-14",
    "time": "09:26:53Z",
    "date-time": "2026-03-14T09:26:53Z",
    "email": "person@example.com",
    "uri": "https://example.com/item",
    "uuid": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "ipv4": "192.0.2.7",
    "ipv6": "2001:db8::7",
    "hostname": "host.example.com",
    "duration": "P1DT2H",
}


def instance_of(schema: Mapping[str, Any] | bool, random: Random, topics: Sequence[str]) -> Any:
    """A value the schema accepts. ``topics`` are words for free text."""
    return _Builder(schema, random, topics).build(schema, 0)


class _Builder:
    """One walk: the root for references, the randomness, the words."""

    def __init__(self, root: Mapping[str, Any] | bool, random: Random, topics: Sequence[str]) -> None:
        self.root = root
        self.random = random
        self.topics = topics or ["value"]

    def build(self, schema: Any, depth: int) -> Any:
        """A value for one (sub)schema."""
        if not isinstance(schema, Mapping):
            return self._word() if schema is not False else None
        schema = self._resolved(schema, depth)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self.random.choice(list(schema["enum"]))
        kind = self._kind(schema, depth)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string":
            return self._string(schema)
        if kind in ("integer", "number"):
            return self._number(schema, whole=kind == "integer")
        return self.random.random() < 0.5 if kind == "boolean" else None

    def _resolved(self, schema: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
        """The schema with its reference followed and one branch of its combinations merged in."""
        for _ in range(_DEEPEST):
            reference = schema.get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#"):
                break
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = _merged(self._target(reference), rest)
        for part in schema.get("allOf", ()):
            if isinstance(part, Mapping) and depth < _DEEPEST:
                schema = _merged(schema, self._resolved(part, depth + 1))
        branches = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(branches, list) and branches:
            plain = [branch for branch in branches if isinstance(branch, Mapping)] or [{}]
            # Deep down the branch without children ends the recursion.
            flat = [branch for branch in plain if not ({"$ref", "properties", "items"} & branch.keys())]
            chosen = self.random.choice(flat if flat and depth > 3 else plain)
            base = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            schema = self._resolved(_merged(base, chosen), depth + 1) if depth < _DEEPEST else base
        return schema

    def _target(self, reference: str) -> Mapping[str, Any]:
        """What a reference into the schema means; nothing is asked of what leads nowhere."""
        target: Any = self.root
        for step in reference[1:].strip("/").split("/") if reference != "#" else ():
            key = step.replace("~1", "/").replace("~0", "~")
            target = target.get(key, {}) if isinstance(target, Mapping) else {}
        return target if isinstance(target, Mapping) else {}

    def _kind(self, schema: Mapping[str, Any], depth: int) -> str:
        declared = schema.get("type")
        if isinstance(declared, list) and declared:
            plain = [kind for kind in declared if kind != "null"] or ["null"]
            return "null" if "null" in declared and depth > 3 else str(self.random.choice(plain))
        if isinstance(declared, str):
            return declared
        for key, kind in (
            ("properties", "object"),
            ("required", "object"),
            ("items", "array"),
            ("prefixItems", "array"),
        ):
            if key in schema:
                return kind
        if {"minimum", "maximum", "multipleOf"} & schema.keys():
            return "number"
        return "string"

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        required = [name for name in schema.get("required") or () if isinstance(name, str)]
        made = {}
        for name, inner in properties.items():
            if name in required or (depth < 4 and self.random.random() < 0.8):
                made[name] = self.build(inner, depth + 1) if depth < _DEEPEST else None
        additional = schema.get("additionalProperties", True)
        for name in required:
            if name not in made:
                made[name] = self.build(additional, depth + 1) if depth < _DEEPEST else None
        least = int(schema.get("minProperties") or 0)
        while len(made) < least:
            made[f"{self._word()}_{len(made)}"] = self.build(additional, depth + 1)
        return made

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        fixed = schema.get("prefixItems") or ()
        items = schema.get("items", True)
        least = max(int(schema.get("minItems") or 0), len(fixed))
        most = int(schema.get("maxItems", len(fixed) if items is False else max(least, 3)))
        wanted = self.random.randint(max(least, min(1, most)), max(least, min(most, least + 2))) if depth < 4 else least
        values = [self.build(inner, depth + 1) for inner in fixed]
        tries = 0
        while len(values) < wanted and depth < _DEEPEST and tries < 50:
            tries += 1
            value = self.build(items, depth + 1)
            if not (schema.get("uniqueItems") and value in values):
                values.append(value)
        return values

    def _string(self, schema: Mapping[str, Any]) -> str:
        if isinstance(schema.get("pattern"), str):
            found = text_for(schema["pattern"], self.random)
            if found is not None:
                return found
        named = _FORMATS.get(str(schema.get("format")))
        if named is not None:
            return named
        least, most = int(schema.get("minLength") or 0), schema.get("maxLength")
        text = " ".join(self._word() for _ in range(self.random.randint(1, 3)))
        while len(text) < least:
            text += " " + self._word()
        return text[: int(most)] if most is not None else text

    def _number(self, schema: Mapping[str, Any], *, whole: bool) -> int | float:
        low, high = schema.get("minimum"), schema.get("maximum")
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        step = schema.get("multipleOf") or (1 if whole else 0.25)
        bottom = max(bound for bound in (low, above) if bound is not None) if (low, above) != (None, None) else None
        top = min(bound for bound in (high, below) if bound is not None) if (high, below) != (None, None) else None
        if bottom is None:
            bottom = min(0, top - 100 * step) if top is not None else 0
        if top is None:
            top = bottom + 100 * step
        first, last = ceil(bottom / step), floor(top / step)
        first += first * step == above
        last -= last * step == below
        if first > last:  # no multiple lies between the bounds: the middle is as good as it gets
            return (bottom + top) / 2 if not whole else ceil(bottom)
        value = self.random.randint(first, last) * step
        return int(value) if whole else round(value, 9)

    def _word(self) -> str:
        return self.topics[int(self.random.random() * len(self.topics))]


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both schemas at once, as far as plain keys go: properties and required join, the later wins elsewhere."""
    joined = {**base, **more}
    if "properties" in base and "properties" in more:
        joined["properties"] = {**base["properties"], **more["properties"]}
    if "required" in base and "required" in more:
        joined["required"] = [*base["required"], *(name for name in more["required"] if name not in base["required"])]
    return joined
