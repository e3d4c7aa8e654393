"""Write docs/node-types.md from the node types.

Usage: ``python tools/gen_node_docs.py``, or with ``--check`` to exit with 1 if the
document is not current. A test checks the same.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "node-types.md"
WIDTH = 100
HEAD = """# Node types

Every type that comes with planwave, as `planwave.Registry` and `GET /api/node-types` describe them. This
page is made from the types themselves by `make generate`. [nodes.md](nodes.md) shows how to write one.

* An **input** without a wire is simply empty, unless it is *required*. Where *many* may arrive, several
  edges may lead into it.
* A **parameter** stands in `data`. Every parameter is also an input of its name, for a flow or a link edge,
  and what comes in beats what is written; where that is not so, the type says it. In parameters marked
  *template*, `{{ … }}` is resolved before the node runs ([templates.md](templates.md)).
* **Effect** is what running the node does to the world: `none`, `read`, `write`, or `once`, which is not
  entered again by itself after a crash.
* Every **example** is a whole graph: save it, and `planwave exec FILE` runs it. That of `placeholder` alone
  is one that cannot run.
"""


def reference() -> str:
    """Return the text of the document."""
    from planwave.nodes.library import LIBRARY
    from planwave.nodes.registry import Registry

    registry = Registry(LIBRARY)
    types = [_Type(registry.describe(n), registry.implementation(n)) for n in registry.names()]
    index = [(f"[`{t.name}`](#{t.name})", t.about["purpose"], f"`{t.effect}`") for t in types]
    parts = [HEAD, _table(("type", "what it is for", "effect"), index)]
    return "\n".join([*parts, "", "\n".join(t.section() for t in types)])


class _Type:
    """The section of one node type.

    Attributes:
        name: The type string in graphs.
        effect: `none`, `read`, `write` or `once`.
        about: The description in the registry.
    """

    def __init__(self, about: Mapping[str, Any], implementation: Any) -> None:
        self.name: str = about["node_type"]
        self.effect: str = about["effect"]
        self.about = about
        self._implementation = implementation
        self._schema: Mapping[str, Any] = about["schema"]

    def section(self) -> str:
        """Return the Markdown of the section."""
        purpose: str = self.about["purpose"]
        parts = [f"## {self.name}", purpose, _prose(inspect.getdoc(self._implementation) or "")]
        parts.append("\n".join(f"* {note}" for note in self._notes()))
        parts += self._ports("Input", self._implementation.inputs)
        parts += self._ports("Output", self._implementation.outputs)
        parts += self._parameters()
        if example := self.about["example"]:
            parts.append(f"```json\n{shown(example)}\n```")
        return "\n\n".join(part for part in parts if part) + "\n"

    def _notes(self) -> Iterator[str]:
        yield f"Effect: `{self.effect}`."
        if self.about["entry"]:
            yield "An execution may begin with it: inputs for it settle it, and it does not run."
        if not self.about["executes"]:
            yield "Never run: made on demand, for the nodes it is linked to."
        elif self.about["materializes"]:
            yield "Runs as a step, and is made on demand for the nodes it is linked to."
        if callable(getattr(self._implementation, "resume", None)):
            yield "Waits for an answer."
        if self.about["executes"] and getattr(self._implementation, "calls_model", False):
            yield "Asks a language model."
        if self.about["chooses"]:
            yield "One output alone carries a value in any run."
        fields = self._schema.get("properties", {})
        has_sockets = any(each.get("socket", True) for each in fields.values())
        if fields and not (has_sockets and getattr(self._implementation, "field_sockets", False)):
            yield "Its parameters are no inputs."

    def _ports(self, title: str, ports: Iterable[Any]) -> Iterator[str]:
        rows = [(f"`{p.name}`", f"`{p.type}`", p.channel, _demands(p)) for p in ports]
        if rows:
            yield _table((title.lower(), "type", "channel", "note"), rows)

    def _parameters(self) -> Iterator[str]:
        if not self._schema.get("properties"):
            return
        definitions: Mapping[str, Any] = self._schema.get("$defs", {})
        yield _fields_table("parameter", self._schema)
        for name, each in definitions.items():
            if each.get("properties"):
                yield f"`{name}`: {_prose(each.get('description', ''))}"
                yield _fields_table("field", each)


def _demands(port: Any) -> str:
    asked = ("required", "required"), ("multiple", "many")
    return ", ".join(word for name, word in asked if getattr(port, name))


def _fields_table(title: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [
        (f"`{name}`", kind_of(field), _default(field, name in required), _marks(field))
        for name, field in schema["properties"].items()
    ]
    return _table((title, "type", "default", "note"), rows)


def _default(field: Mapping[str, Any], required: bool) -> str:
    if required:
        return "required"
    value = field.get("default")
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _marks(field: Mapping[str, Any]) -> str:
    marks = {
        "template": "template",
        "expression": "an expression, resolved by the node",
        "graph": "a graph document, run inside",
    }
    told = [words for mark, words in marks.items() if field.get(mark)]
    names = [f"`{name}`" for name in field.get("names", ())]
    names += [f"what `{field['namesOf']}` names"] if "namesOf" in field else []
    told += [f"may name {', '.join(names)}"] if names else []
    told += [f"at most the limit `{field['limit']}`"] if "limit" in field else []
    told += [f"another name of `{field['sameAs']}`"] if "sameAs" in field else []
    told += [field["description"]] if "description" in field else []
    return "; ".join(told)


def kind_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a JSON Schema in words, without the null of an optional field."""
    if choices := schema.get("anyOf", schema.get("oneOf")):
        kinds = [kind_of(one) for one in choices if one.get("type") != "null"]
        if schema.get("template"):  # any field may be a template instead of its value
            kinds = [k for k in kinds if k != "text"] or kinds
        return " or ".join(dict.fromkeys(kinds))
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"`{json.dumps(value)}`" for value in values)
    match schema.get("type"):
        case "array":
            inside = kind_of(schema.get("items", {}))
            return f"list of {inside}" if inside != "any" else "list"
        case "object":
            values = schema.get("additionalProperties")
            plain = not isinstance(values, Mapping) or kind_of(values) == "any"
            return "object" if plain else f"object of {kind_of(values)}"
        case "integer" | "number" as kind:
            return f"{kind}{_range(schema)}"
        case "string":
            return "text"
        case kind:
            return kind or "any"


def _range(schema: Mapping[str, Any]) -> str:
    least, most, above = map(_number, map(schema.get, ("minimum", "maximum", "exclusiveMinimum")))
    if above is not None:
        return f" above {above}" + ("" if most is None else f", up to {most}")
    if least is None and most is None:
        return ""
    return " ".join(["", *(str(end) for end in (least, "…", most) if end is not None)])


def _number(value: float | None) -> float | None:
    """Return a whole number as an int."""
    return int(value) if value is not None and value == int(value) else value


def shown(value: Any, indent: int = 0) -> str:
    """Return indented JSON; a value that fits on one line stays on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {shown(v, indent + 2)}" for key, v in value.items()]
        opening, closing = "{}"
    else:
        parts = [shown(v, indent + 2) for v in value]
        opening, closing = "[]"
    joined = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{joined}\n{' ' * indent}{closing}"


def _prose(text: str) -> str:
    """Return a docstring as Markdown."""
    text, _, _ = text.partition("\n\nArgs:")
    plain = re.sub(r"\[([^]]+)\]\[planwave\.[\w.]+\]", r"`\1`", text.replace("``", "`"))
    return plain.replace("|", "\\|")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = ([" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def main(arguments: Sequence[str]) -> int:
    """Write the document, or with ``--check`` report whether it is current."""
    text = DOCUMENT.read_text("utf-8") if DOCUMENT.exists() else ""
    new = reference()
    if new == text:
        return 0
    name = DOCUMENT.relative_to(ROOT)
    if "--check" in arguments:
        print(f"{name} is not current; run: make generate")
        return 1
    DOCUMENT.write_text(new, "utf-8")
    print(f"{name} updated")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
