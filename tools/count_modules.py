"""Count the planwave modules that five operations enter, by calls into their functions.

The operations run against a fake model on loopback: ``POST /api/plan``, ``POST /api/execute``, an
execution from its start to its end with a WebSocket, the turn of an agent until it waits for the
approval of a tool call, and ``planwave run``. Module-level code, which runs at imports, does not count.
Prints one line for each operation, with its limit, and the lines of code; with ``-v`` also the names.
Exits 1 above a limit: a limit may only go down, or up with a sentence in docs/architecture.md that says
for what.
Usage: ``python tools/count_modules.py [-v]``.
"""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2
from typer.testing import CliRunner
from websockets.sync.client import connect

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from planwave import bootstrap  # noqa: E402
from planwave.cli.app import app  # noqa: E402
from planwave.config.files import load_settings  # noqa: E402
from planwave.settings import Settings  # noqa: E402
from tests.support.llm.fake_llm_server import (  # noqa: E402
    ToolCallReply,
    fake_llm_in_thread,
    schema_of,
    tools_of,
)
from tests.support.llm.planner_replies import DIAMOND_REPLY  # noqa: E402

PACKAGE = f"{ROOT / 'planwave'}{os.sep}"
LIMITS = {
    "POST /api/plan": 128,
    "POST /api/execute": 96,
    "start with WebSocket": 199,
    "an agent's turn to its approval": 221,
    "run": 278,
}
"""What is reached (125, 94, 187, 219, 259), and what is entered besides where it falls into the operation: the
document of an execution where its WebSocket ends after it was written (12 modules), and in ``run`` the server, which a
command starts after its first second (16)."""
APPROVED: dict[str, Any] = {
    "nodes": [
        {
            "id": "tool",
            "type": "flow_tool",
            "data": {
                "name": "note",
                "description": "Take a note.",
                "flow": {"name": "Note"},
                "approval": "always",
            },
        },
        {"id": "clerk", "type": "agent", "data": {"userPrompt": "Take a note."}},
    ],
    "edges": [
        {
            "source": "tool",
            "sourceHandle": "tools",
            "target": "clerk",
            "targetHandle": "tools",
            "data": {"channel": "link"},
        }
    ],
}
"""An agent with a tool whose calls a person approves."""
NOTE = {"nodes": [{"id": "start", "type": "start"}], "edges": []}

BY_TIME = {
    f"{PACKAGE}{each}"
    for each in ("api/server.py", "service/loop_monitor.py", "storage/sqlite/connection.py")
}
"""What time calls, and no operation: on a slow machine they fall into one, by chance."""


class ModuleRecorder(threading.local):
    """A profile function that records the files of called functions; imports are left out."""

    files: set[str] | None = None
    """The files since ``recording`` began, for all threads; None outside of it."""

    def __init__(self) -> None:
        self._import_depth = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record one call; installed with ``sys.setprofile``."""
        code = frame.f_code
        if code.co_name == "<module>":
            self._import_depth += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self._import_depth and code.co_filename.startswith(PACKAGE):
            files = ModuleRecorder.files
            if files is not None:
                files.add(code.co_filename)

    @contextmanager
    def recording(self) -> Iterator[set[str]]:
        """Record the files of the calls in all threads."""
        ModuleRecorder.files = files = set()
        try:
            yield files
        finally:
            ModuleRecorder.files = None


def reply_to(body: dict[str, Any]) -> str | ToolCallReply:
    """Return a plan of four steps, the text of a step, or a call of the tool that is offered."""
    if tools_of(body):
        return ToolCallReply([("note", {"input": "milk"})])
    return "Done." if schema_of(body) is None else DIAMOND_REPLY


def http_operations(url: str, recorder: ModuleRecorder) -> dict[str, set[str]]:
    """Call the service and return the files of each operation."""
    files: dict[str, set[str]] = {}
    with httpx2.Client(base_url=url, timeout=60) as client:
        with recorder.recording() as files["POST /api/plan"]:
            plan = client.post("/api/plan", json={"prompt": "Compare two ways"})
        body = {"plan_id": plan.raise_for_status().json()["plan_id"], "start": False}
        with recorder.recording() as files["POST /api/execute"]:
            execution = client.post("/api/execute", json=body)
        execution_id = execution.raise_for_status().json()["execution_id"]
        with recorder.recording() as files["start with WebSocket"]:
            client.post(f"/api/execute/{execution_id}/start").raise_for_status()
            read_to_end(f"{url.replace('http', 'ws', 1)}/ws/{execution_id}?mode=events")
        client.post("/api/flows", json={"name": "Note", "graph": NOTE}).raise_for_status()
        with recorder.recording() as files["an agent's turn to its approval"]:
            body = {"graph": APPROVED, "start": True}
            execution = client.post("/api/execute", json=body).raise_for_status().json()
            wait_for_request(client, execution["execution_id"])
    return files


def wait_for_request(client: httpx2.Client, execution_id: str) -> None:
    """Wait until an execution waits for a person.

    Raises:
        SystemExit: It does not.
    """
    for _ in range(300):
        state = client.get(f"/api/executions/{execution_id}").raise_for_status().json()
        if state["requests"]:
            return
        if state["status"] in ("completed", "failed", "cancelled"):
            break
        time.sleep(0.1)
    raise SystemExit(f"no call waits for an approval: {state['status']}, {state['error']}")


def read_to_end(url: str) -> None:
    """Read the messages of an execution until the service closes the connection."""
    with connect(url, proxy=None) as socket:
        for _ in socket:
            pass


def serve(settings: Settings, recorder: ModuleRecorder) -> dict[str, set[str]]:
    """Run the service in this thread and its client in another; return the files."""
    files: dict[str, set[str]] = {}

    def call(url: str) -> None:
        try:
            files.update(http_operations(url, recorder))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def on_listening(url: str) -> None:
        threading.Thread(target=call, args=(url,)).start()

    asyncio.run(bootstrap.serve(settings, on_listening))
    if not files:
        raise SystemExit("the service did not complete the operations")
    return files


def measure() -> dict[str, set[str]]:
    """Return the files that each operation enters, in an empty directory."""
    recorder = ModuleRecorder()
    with tempfile.TemporaryDirectory() as directory, fake_llm_in_thread(reply_to=reply_to) as llm:
        os.chdir(directory)
        os.environ |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": llm.openai_url}
        os.environ |= {"PLANWAVE_PORT": "0"}
        threading.setprofile(recorder)
        sys.setprofile(recorder)
        try:
            files = serve(load_settings(), recorder)
            with recorder.recording() as files["run"]:
                factories = bootstrap.cli_factories()
                result = CliRunner().invoke(app, ["run", "Compare two ways"], obj=factories)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # pyright: ignore[reportArgumentType]
            os.chdir(ROOT)
        if result.exit_code:
            raise SystemExit(result.output)
    return files


def lines_of_code(path: Path) -> int:
    """Return the number of lines of a module without blank lines, comments and docstrings."""
    text = path.read_text("utf-8")
    documented = set[int]()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(ast.Constant(str()), lineno=first, end_lineno=last):
                documented |= set(range(first, (last or first) + 1))
            case _:
                pass
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in documented
        for number, line in enumerate(text.splitlines(), 1)
    )


def main() -> int:
    """Print the number of modules of each operation."""
    measured = {operation: files - BY_TIME for operation, files in measure().items()}
    for operation, files in measured.items():
        print(f"{operation}: {len(files)} modules, at most {LIMITS[operation]}")
        if "-v" in sys.argv:
            print("  " + " ".join(sorted(file.removeprefix(PACKAGE) for file in files)))
    modules = sorted(Path(PACKAGE).rglob("*.py"))
    print(f"{len(modules)} modules, {sum(map(lines_of_code, modules)):,} lines of code")
    return int(any(len(files) > LIMITS[operation] for operation, files in measured.items()))


if __name__ == "__main__":
    sys.exit(main())
