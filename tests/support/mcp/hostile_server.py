"""A program that speaks MCP as far as it must, and misbehaves in one way: ``hostile_server.py MODE MARK``.

``silent``: never answers, and ignores the end of its input and SIGTERM. ``fork``: starts a child that
outlives it. ``babble``: writes other lines between its messages. ``endless``: writes a line without end
when a tool is called. ``chatty``: floods with notifications when a tool is called, and never answers.
``exit``: writes on standard error, and exits. ``untyped``: lists tools that break the protocol beside one
that does not. ``unlisted``: its list of tools is no list.
``greets``: answers to the start with something else. ``ancient``: speaks a version that nobody knows.
``halves``: gives half of a character in its result.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

MODE, MARK = sys.argv[1:3]
TOOL = {"name": "act", "inputSchema": {"type": "object", "properties": {}}}
BROKEN = [{"name": "b\x1bare", "inputSchema": {}}, {"inputSchema": {"type": "object"}}, "act"]


def mark_pid() -> None:
    with open(MARK, "a") as file:
        file.write(f"pid {os.getpid()}\n")


def write(message: dict[str, Any]) -> None:
    if MODE == "babble":
        sys.stdout.write('not a message\n{"jsonrpc": "2.0"}\n[1]\n\n')
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result_of(message: dict[str, Any]) -> dict[str, Any] | None:
    match message["method"]:
        case "initialize":
            if MODE == "greets":
                return {"hello": "there"}
            version = "1999-01-01" if MODE == "ancient" else message["params"]["protocolVersion"]
            info = {"name": MODE, "version": "1"}
            return {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
        case "tools/list":
            return {"tools": {"untyped": [*BROKEN, TOOL], "unlisted": "none"}.get(MODE, [TOOL])}
        case "tools/call":
            misbehave()
            text = "half \ud83d of it" if MODE == "halves" else "done"
            return {"content": [{"type": "text", "text": text}]}
    return None


def misbehave() -> None:
    while MODE == "endless":
        sys.stdout.write("x" * 65_536)
    while MODE == "chatty":
        write({"method": "notifications/message", "params": {"level": "info", "data": "x"}})


def main() -> None:
    mark_pid()
    if MODE == "exit":
        sys.stderr.write("cannot read\x1b[31m the file\n")
        sys.exit(7)
    if MODE == "silent":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)
    if MODE == "fork" and os.fork() == 0:
        mark_pid()
        time.sleep(600)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = result_of(message)
        if result is not None:
            write({"id": message["id"], "result": result})
        else:
            write({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})


main()
