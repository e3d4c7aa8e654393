"""Write ``planwave/client/types.py``: TypedDicts of the responses, from the OpenAPI document.

The file holds the types that ``async_*.py`` imports and those they consist of.
Usage: ``python tools/gen_client_types.py`` (or ``make generate``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.openapi_document import ALIASES, REF, aliases, schemas, with_parts

CLIENT = Path(__file__).resolve().parent.parent / "planwave" / "client"
SOURCES = (CLIENT / "async_client.py", CLIENT / "async_methods.py")
TARGET = CLIENT / "types.py"
HEADER = '''\
# Generated from the OpenAPI document by tools/gen_client_types.py; do not edit. Run: make generate
"""Types of the service's JSON responses."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def types_module() -> str:
    """Return the text of ``types.py``, formatted."""
    known = schemas()
    lines = [f"{name} = {_literal(values)}" for values, name in aliases()]
    done: set[str] = set()
    for root in imported_types():
        for name in with_parts(root, known, done):
            lines.append(_typed_dict(name, known[name]))
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    code = HEADER + "\n".join(lines)
    return subprocess.run(ruff, input=code, capture_output=True, text=True, check=True).stdout


def imported_types() -> Iterator[str]:
    """Yield the names that the client imports from its types."""
    found: set[str] = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "planwave.client.types":
                found.update(alias.name for alias in node.names)
    yield from sorted(found, key=str.lower)


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
