"""Write ``web/src/api/types.ts``: the types and the operations of the OpenAPI document that the page uses.

A type is used where a module of the page imports it; an operation where it is called by its id, or its parts are named
by it; both with all that they refer to.

Usage: ``python tools/gen_web_types.py`` (or ``make generate``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.openapi_document import (
    ALIASES,
    REF,
    aliases,
    document,
    references,
    schemas,
    with_parts,
)

SOURCES = Path(__file__).resolve().parent.parent / "web" / "src"
TARGET = SOURCES / "api" / "types.ts"
HEADER = """\
// Generated from the OpenAPI document by tools/gen_web_types.py; do not edit. Run: make generate
// It has what the page uses: what is imported from here, and the operations that are named.

import type { JsonNumber } from "@/json";
"""
OPERATIONS = """\
/** The parameters, the body and the response of each operation. */
export type Operations = {"""
ADDRESSES = """\
/** The method and the path of each operation. */
export const ADDRESSES = {"""
SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "JsonNumber",
    "boolean": "boolean",
    "null": "null",
}
JSON_TYPE = "application/json"
IMPORT = re.compile(r'import (?:type )?\{([^}]*)\} from "@/api/types"')
CALL = re.compile(r"\b(?:call|send|addressOf)\(([^,)]*)|\bOperations\[([^]]*)\]")
LITERAL = re.compile(r'"(\w+)"')


def types_module() -> str:
    """Return the text of ``types.ts``."""
    modules = page_modules()
    imported, known = imported_names(modules), schemas()
    operations = list(_operations(named_operations(modules)))
    roots = {*imported, *references([_shown(operation) for _, _, operation in operations])}
    done: set[str] = set()
    parts = [part for root in known if root in roots for part in with_parts(root, known, done)]
    declared = [_declaration(name, known[name]) for name in parts]
    declared += [OPERATIONS, *(_operation(*each) for each in operations), "};\n"]
    declared += [ADDRESSES, *(_address(*each) for each in operations), "} as const;"]
    text = "\n".join(declared)
    sets = [
        f"export type {name} = {_values(values)};\n"
        for values, name in aliases()
        if name in imported or re.search(rf"\b{name}\b", text)
    ]
    return "\n".join([HEADER, *sets, text]) + "\n"


# -- the page --------------------------------------------------------------------------------------


def page_modules() -> list[str]:
    """Return the texts of the modules of the page and of their tests, but for the generated one."""
    paths = sorted(SOURCES.rglob("*.ts*"))
    return [path.read_text("utf-8") for path in paths if path != TARGET]


def imported_names(modules: Iterable[str]) -> set[str]:
    """Return the names that modules import from the generated one."""
    lists = (found for module in modules for found in IMPORT.findall(module))
    names = (name.strip().removeprefix("type ") for found in lists for name in found.split(","))
    return {name.split(" as ")[0] for name in names if name}


def named_operations(modules: Iterable[str]) -> set[str]:
    """Return the ids of operations that modules call or index the generated type by."""
    places = ("".join(found) for module in modules for found in CALL.findall(module))
    return {literal for place in places for literal in LITERAL.findall(place)}


# -- schemas ---------------------------------------------------------------------------------------


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    return f"{_comment(schema)}export type {name} = {_type(schema)};\n"


def _type(schema: Mapping[str, Any], indent: str = "") -> str:
    """Return the type of a schema; ``indent`` is that of the line it is on."""
    if "$ref" in schema:
        return schema["$ref"].removeprefix(REF)
    for name in ("anyOf", "oneOf"):
        # A ``oneOf`` beside properties only says which of them go together.
        if name in schema and "properties" not in schema:
            options = dict.fromkeys(_type(option, indent) for option in schema[name])
            return "unknown" if "unknown" in options else " | ".join(options)
    if "enum" in schema or "const" in schema:
        values = tuple(schema.get("enum", (schema.get("const"),)))
        return ALIASES.get(frozenset(values)) or _values(values)
    match schema.get("type"):
        case None:
            return "unknown"
        case "array":
            item = _type(schema["items"], indent)
            return f"({item})[]" if " | " in item else f"{item}[]"
        case "object":
            return _object(schema, indent)
        case scalar:
            return SCALARS[scalar]


def _object(schema: Mapping[str, Any], indent: str) -> str:
    if not schema.get("properties"):
        values: Any = schema.get("additionalProperties", True)
        return (
            f"Record<string, {_type(values, indent) if values not in (True, False) else 'unknown'}>"
        )
    inside = f"{indent}  "
    lines = ["{"]
    for field, content in schema["properties"].items():
        is_optional = field not in schema.get("required", ())
        lines += [f"{inside}{each}" for each in _comment(content).splitlines()]
        lines.append(f"{inside}{field}{'?' * is_optional}: {_type(content, inside)};")
    return "\n".join([*lines, f"{indent}}}"])


def _values(values: tuple[Any, ...]) -> str:
    return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _comment(schema: Mapping[str, Any]) -> str:
    text = " ".join(schema.get("description", "").replace("``", "`").split())
    return f"/** {text.replace('*/', '* /')} */\n" if text else ""


# -- operations ------------------------------------------------------------------------------------


def _operations(used: Collection[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] in used:
                yield method.upper(), path, operation


def _shown(operation: Mapping[str, Any]) -> list[Any]:
    """Return the schemas of all that the type of an operation shows."""
    contents = [operation["requestBody"]["content"]] if "requestBody" in operation else []
    contents += _contents(operation["responses"])
    parameters = [each["schema"] for each in operation.get("parameters", ())]
    return [*parameters, *(each[JSON_TYPE]["schema"] for each in contents if JSON_TYPE in each)]


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parameters = operation.get("parameters", ())
    body = operation.get("requestBody")
    parts = {
        "path": _parameters(parameters, "path"),
        "query": _parameters(parameters, "query"),
        "body": "undefined" if body is None else _body(body),
        "answer": _answer(operation["responses"]),
    }
    lines = [f"    {name}: {kind};" for name, kind in parts.items()]
    comment = f"  /** {operation['summary']}: `{method} {path}`. */"
    return "\n".join([comment, f"  {operation['operationId']}: {{", *lines, "  };"])


def _parameters(parameters: Any, place: str) -> str:
    chosen = [each for each in parameters if each["in"] == place]
    properties = {each["name"]: {**each["schema"], **_described(each)} for each in chosen}
    required = [each["name"] for each in chosen if each.get("required")]
    if not properties:
        return "Record<string, never>"
    return _object({"properties": properties, "required": required}, "    ")


def _described(parameter: Mapping[str, Any]) -> dict[str, str]:
    return {name: parameter[name] for name in ("description",) if name in parameter}


def _body(body: Mapping[str, Any]) -> str:
    kind = _type(body["content"][JSON_TYPE]["schema"])
    return kind if body["required"] else f"{kind} | undefined"


def _answer(responses: Mapping[str, Any]) -> str:
    """Return the type of the JSON that is answered; text and streams are not JSON."""
    contents = _contents(responses)
    kinds = {_type(each[JSON_TYPE]["schema"]): None for each in contents if JSON_TYPE in each}
    if not all(contents):
        kinds["undefined"] = None
    return " | ".join(kinds) or "string"


def _contents(responses: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the contents of the responses of success; one without a content is empty."""
    given = [each for status, each in responses.items() if status.startswith("2")]
    return [each.get("content", {}) for each in given]


def _address(method: str, path: str, operation: Mapping[str, Any]) -> str:
    return f'  {operation["operationId"]}: ["{method}", "{path}"],'


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(types_module(), "utf-8")
