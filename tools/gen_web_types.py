"""Write ``web/src/api/types.ts``: the types and the operations of the OpenAPI document.

Usage: ``python tools/gen_web_types.py`` (or ``make generate``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.openapi_document import ALIASES, REF, aliases, document, schemas, with_parts

TARGET = Path(__file__).resolve().parent.parent / "web" / "src" / "api" / "types.ts"
HEADER = """\
// Generated from the OpenAPI document by tools/gen_web_types.py; do not edit. Run: make generate

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


def types_module() -> str:
    """Return the text of ``types.ts``."""
    lines = [HEADER]
    lines.extend(f"export type {name} = {_values(values)};\n" for values, name in aliases())
    done: set[str] = set()
    known = schemas()
    for root in known:
        for name in with_parts(root, known, done):
            lines.append(_declaration(name, known[name]))
    operations = list(_operations())
    lines += [OPERATIONS, *(_operation(*each) for each in operations), "};\n"]
    lines += [ADDRESSES, *(_address(*each) for each in operations), "} as const;"]
    return "\n".join(lines) + "\n"


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


def _operations() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


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
    given = [each for status, each in responses.items() if status.startswith("2")]
    contents = [each["content"] for each in given if "content" in each]
    kinds = {_type(each[JSON_TYPE]["schema"]): None for each in contents if JSON_TYPE in each}
    if len(contents) < len(given):
        kinds["undefined"] = None
    return " | ".join(kinds) or "string"


def _address(method: str, path: str, operation: Mapping[str, Any]) -> str:
    return f'  {operation["operationId"]}: ["{method}", "{path}"],'


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(types_module(), "utf-8")
