import json

from typer.testing import CliRunner, Result

from planwave.cli.app import app
from tests.support.cli.fake_factories import fake_factories
from tests.support.graph.builders import make_graph, text_node

GOOD = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")]).to_document()


def check(document: object, *args: str) -> Result:
    return CliRunner().invoke(
        app, ["check", "-", *args], input=json.dumps(document), obj=fake_factories()
    )


def test_check_accepts_valid_graph() -> None:
    done = check(GOOD)
    assert (done.exit_code, done.stdout) == (0, "✓ stdin can run: 2 nodes, no errors\n")
    shown = json.loads(check(GOOD, "--json").stdout)
    assert shown == {"ok": True, "diagnostics": [], "graph": GOOD}


def test_check_shows_the_graph_with_handles_and_channels() -> None:
    edge = {"source": "a", "target": "b", "data": {"channel": "flow"}}
    shown = json.loads(check({**GOOD, "edges": [edge]}, "--json").stdout)
    (found,) = shown["graph"]["edges"]
    assert (found["sourceHandle"], found["targetHandle"]) == ("output", "input")
    assert found["data"] == {"channel": "flow"}
    assert json.loads(check([], "--json").stdout)["graph"] is None


def test_check_lists_and_counts_errors() -> None:
    done = check({"nodes": [{"id": "a", "type": "x"}, {"id": "a", "type": "text"}], "edges": []})
    assert done.exit_code == 3
    assert "duplicate-id" in done.stderr
    assert "it cannot run" in done.stderr


def test_check_exits_4_when_only_a_provider_is_missing() -> None:
    node = {"id": "a", "type": "agent", "data": {"provider": "off", "userPrompt": "x"}}
    done = check({"nodes": [node], "edges": []})
    assert done.exit_code == 4
    assert "unavailable-provider" in done.stderr


def test_check_counts_warnings_and_succeeds() -> None:
    cut_off = {
        "id": "a",
        "type": "if",
        "data": {"conditions": [{"operator": "equal", "value": ""}]},
    }
    done = check({"nodes": [cut_off], "edges": []})
    assert done.exit_code == 0
    assert "[never-matches]" in done.stderr
    assert done.stdout == "✓ stdin can run: 1 node, no errors, 1 warning\n"


def test_check_finds_flows_that_the_storage_does_not_have() -> None:
    flow = {"id": "n", "type": "inner", "data": {"flow": {"name": "Nowhere"}}}
    done = check({"nodes": [flow], "edges": []})
    assert done.exit_code == 3
    assert "unknown-flow" in done.stderr
