"""A program that speaks MCP as far as it must, whose tools note what they do in the file of acts.

``ACT_LOG`` names that file, ``MARK`` a file for the ids of its processes. ``look`` only reads, ``save`` may be
repeated and gets the idempotency key, ``send`` says nothing about itself. It imports nothing that takes long.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_TEXT = {"type": "string"}
_FIELDS = {"item": _TEXT, "text": _TEXT}
_HINTS = {"look": {"readOnlyHint": True}, "save": {"idempotentHint": True}, "send": {}}


def tool(name: str, hints: dict[str, Any]) -> dict[str, Any]:
    fields = {**_FIELDS, "idempotency_key": _TEXT} if name == "save" else _FIELDS
    schema = {"type": "object", "properties": fields, "required": ["item", "text"]}
    return {"name": name, "inputSchema": schema, "annotations": hints}


def append(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(line + "\n")


def result_of(message: dict[str, Any]) -> dict[str, Any] | None:
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "acting", "version": "1"}
            return {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
        case "tools/list":
            return {"tools": [tool(*each) for each in _HINTS.items()]}
        case "tools/call":
            name, given = message["params"]["name"], message["params"]["arguments"]
            key = message["params"]["_meta"]["planwave/idempotencyKey"]
            assert given.get("idempotency_key", key) == key
            about = f"mcp_{name}", given["item"], given["text"]
            append(os.environ["ACT_LOG"], json.dumps([*about, key]))
            return {"content": [{"type": "text", "text": " ".join(about)}]}
    return None


append(os.environ["MARK"], f"pid {os.getpid()}")
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = result_of(message)
        unknown = {"error": {"code": -32601, "message": "unknown"}}
        rest = unknown if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **rest}) + "\n")
        sys.stdout.flush()
