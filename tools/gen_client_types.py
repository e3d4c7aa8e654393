"""Write ``planwave/client/types.py``: TypedDicts of the responses, from the OpenAPI document.

The file holds the types that ``async_client.py`` imports and those they consist of.
Usage: ``python tools/gen_client_types.py`` (or ``make generate``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

from planwave.api.app import create_app
from planwave.api.schemas import common
from planwave.settings import Settings

CLIENT = Path(__file__).resolve().parent.parent / "planwave" / "client"
SOURCE, TARGET = CLIENT / "async_client.py", CLIENT / "types.py"
REF = "#/components/schemas/"
HEADER = '''\
# Generated from the OpenAPI document by tools/gen_client_types.py; do not edit. Run: make generate
"""Types of the service's JSON responses."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

'''
ALIASES = {
    frozenset(get_args(getattr(common, name))): name
    for name in ("ExecutionStatus", "NodeStatus", "PlanStatus")
}
"""The sets of values that have a name, by the values."""
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def types_module() -> str:
    """Return the text of ``types.py``, formatted."""
    service = cast("Any", None)  # only the routes are read
    document = create_app(Settings(), service).openapi()
    schemas: dict[str, Any] = document["components"]["schemas"]
    lines = [f"{name} = {_literal(values)}" for values, name in _aliases()]
    done: set[str] = set()
    for root in imported_types():
        for name in _referenced(root, schemas, done):
            lines.append(_typed_dict(name, schemas[name]))
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    code = HEADER + "\n".join(lines)
    return subprocess.run(ruff, input=code, capture_output=True, text=True, check=True).stdout


def imported_types() -> Iterator[str]:
    """Yield the names that the client imports from its types."""
    for node in ast.walk(ast.parse(SOURCE.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "planwave.client.types":
            yield from (alias.name for alias in node.names)


def _aliases() -> Iterator[tuple[tuple[str, ...], str]]:
    for name in ALIASES.values():
        yield get_args(getattr(common, name)), name


def _referenced(name: str, schemas: Mapping[str, Any], done: set[str]) -> Iterator[str]:
    """Yield a schema's name after those of the schemas it refers to, each once."""
    if name in done:
        return
    done.add(name)
    for reference in _references(schemas[name]):
        yield from _referenced(reference, schemas, done)
    yield name


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _references(item)
    elif isinstance(schema, dict):
        for key, value in cast("dict[str, Any]", schema).items():
            if key == "$ref":
                yield value.removeprefix(REF)
            else:
                yield from _references(value)


def _typed_dict(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    lines = [f"class {name}(TypedDict):", f'    """{schema["description"]}"""', ""]
    for field, content in schema["properties"].items():
        # The service leaves optional fields out; it never sends null in them.
        kind = _type(content) if field in required else f"NotRequired[{_type(content, False)}]"
        lines.append(f"    {field}: {kind}")
        if "description" in content:
            lines.append(f'    """{content["description"]}"""')
    return "\n".join(lines)


def _type(schema: Mapping[str, Any], nullable: bool = True) -> str:
    """Return the annotation of a schema; without ``nullable`` a null in it is left out."""
    if "$ref" in schema:
        return schema["$ref"].removeprefix(REF)
    if "anyOf" in schema:
        options = (_type(option) for option in schema["anyOf"])
        return " | ".join(option for option in options if nullable or option != "None")
    if "enum" in schema or "const" in schema:
        values = tuple(schema.get("enum", (schema.get("const"),)))
        return ALIASES.get(frozenset(values)) or _literal(values)
    match schema.get("type"):
        case None:
            return "Any"
        case "array":
            return f"list[{_type(schema['items'])}]"
        case "object":
            values = schema.get("additionalProperties", True)
            return f"dict[str, {_type(values) if isinstance(values, dict) else 'Any'}]"
        case scalar:
            return SCALARS[scalar]


def _literal(values: tuple[str, ...]) -> str:
    return f"Literal[{', '.join(map(repr, values))}]"


if __name__ == "__main__":
    TARGET.write_text(types_module(), "utf-8")
