"""A step that calls a tool, on the command line: checked, run, asked about, answered later."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.support.nodes.node_packages import run_command

TOOLS = '''
import planwave

@planwave.tool(effect="read")
def look_up(number: int) -> dict[str, int]:
    """Look an order up."""
    return {"number": number, "cents": 100}

@planwave.tool(effect="write", approval="always")
def refund(number: int) -> str:
    """Refund an order."""
    with open("made.txt", "a") as file:
        file.write(f"{number}\\n")
    return f"{number} is refunded"
'''


def graph(tool: str, **arguments: Any) -> str:
    nodes: list[Any] = [
        {"id": "start", "type": "start", "data": {"initialInput": {"order": 1042}}},
        {"id": "n", "type": "call_tool", "data": {"tool": tool, "arguments": arguments}},
    ]
    edges = [{"source": "start", "target": "n", "data": {"channel": "flow"}}]
    return json.dumps({"nodes": nodes, "edges": edges})


class Folder:
    """A folder with tools and a graph."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "shop.py").write_text(TOOLS, "utf-8")

    def planwave(self, *arguments: str, graph: str | None = None) -> tuple[int, str]:
        """Run a command; return its exit code, and all that it wrote."""
        if graph is not None:
            (self.path / "graph.json").write_text(graph, "utf-8")
        command = ["planwave", "--storage", str(self.path / "s"), "--import", "shop", *arguments]
        done = run_command(command, self.path)
        return done.returncode, done.stdout + done.stderr


def test_a_misspelt_tool_and_a_wrong_argument_are_found_before_the_run(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    code, text = folder.planwave("check", "graph.json", graph=graph("look_upp", number=1))
    assert (code, "did you mean 'look_up'?" in text) == (3, True), text
    code, text = folder.planwave("check", "graph.json", graph=graph("look_up", nummber="x"))
    assert code == 3
    assert "there is no field 'nummber'" in text
    assert '"number" is a required property' in text
    code, text = folder.planwave("exec", "graph.json", graph=graph("look_up", number="x"))
    assert (code, 'not of type "integer"' in text) == (3, True), text


def test_the_result_of_the_tool_is_that_of_the_run(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    document = graph("look_up", number="{{ input.order }}")
    code, text = folder.planwave("exec", "graph.json", graph=document)
    assert code == 0, text
    assert re.search(r'"cents":\s*100', text), text


def test_a_call_that_a_person_approves_is_made_with_the_arguments_of_the_answer(
    tmp_path: Path,
) -> None:
    folder = Folder(tmp_path)
    document = graph("refund", number="{{ input.order }}")
    code, text = folder.planwave("exec", "graph.json", graph=document)
    assert (code, "paused" in text) == (0, True), text
    assert not (tmp_path / "made.txt").exists()
    code, text = folder.planwave("show", "last")
    assert "May the tool refund be called" in text, text
    answered = ("--decision", "approve", "--value", '{"number": 7}')
    code, text = folder.planwave("answer", "last", *answered)
    assert code == 0, text
    assert (tmp_path / "made.txt").read_text("utf-8") == "7\n"
    code, text = folder.planwave("logs", "last")
    assert 'call refund {"number": 7}' in text
