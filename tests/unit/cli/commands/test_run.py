import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.cli.commands import models
from planwave.errors import StoreError
from planwave.providers.protocols import ModelProfile, ProviderInfo
from planwave.service.service import Service
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.cli.fake_factories import FakeEmbeddedModel, fake_factories
from tests.support.graph.builders import make_graph, text_node
from tests.support.llm.fake_providers import FakeProviders
from tests.support.nodes.held_nodes import FailingNode
from tests.support.service.dependencies import dependencies

NAME = "qwen2.5-coder-1.5b"
GRAPH = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])


class Nobody(FakeProviders):
    """No provider can be used yet."""

    infos = tuple(
        ProviderInfo(info.name, info.kind, False, "no", "do it") for info in FakeProviders.infos
    )


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(
        models,
        "download_with_progress",
        lambda console, settings, name, fetch=None: names.append(name),
    )
    return names


def planwave(
    *args: str, stdin: str | None = None, store: MemoryStore | None = None, **more: Any
) -> Result:
    more.setdefault("service", lambda _: Service(dependencies(GRAPH, store=store or MemoryStore())))
    return CliRunner().invoke(app, list(args), obj=fake_factories(**more), input=stdin)


def test_embedded_model_is_downloaded_when_no_provider_can_plan(fetched: list[str]) -> None:
    done = planwave("run", "goal", providers=Nobody(), embedded=FakeEmbeddedModel(NAME))
    assert fetched == [NAME]
    assert "runs on this machine" in done.stdout


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ([], []),
        (["--provider", "openai"], []),
        (["--provider", "local"], [NAME]),
        (["--model", NAME], [NAME]),
    ],
)
def test_embedded_model_is_downloaded_only_when_selected(
    fetched: list[str], args: list[str], names: list[str]
) -> None:
    planwave("run", "goal", *args, embedded=FakeEmbeddedModel(NAME))
    assert fetched == names


class Toy(FakeProviders):
    """Every model is too small to plan."""

    def profile(self, provider: str, model: str) -> ModelProfile:
        return ModelProfile(small=True, plans=False)


def test_model_that_cannot_plan_is_rejected_before_download(fetched: list[str]) -> None:
    done = planwave(
        "run",
        "goal",
        "--provider",
        "local",
        providers=Toy(),
        embedded=FakeEmbeddedModel("smollm2-135m"),
    )
    assert (done.exit_code, fetched) == (2, [])
    assert "local/smollm2-135m is too small to write plans" in done.stderr


def test_model_that_cannot_plan_is_downloaded_for_nodes(fetched: list[str]) -> None:
    data = {"userPrompt": "hi", "provider": "local"}
    graph = {"nodes": [{"id": "a", "type": "agent", "data": data}], "edges": []}
    planwave(
        "exec",
        "-",
        stdin=json.dumps(graph),
        providers=Toy(),
        embedded=FakeEmbeddedModel("smollm2-135m"),
    )
    assert fetched == ["smollm2-135m"]


@pytest.mark.parametrize(("provider", "names"), [("local", [NAME]), ("openai", []), (None, [])])
def test_exec_downloads_the_model_of_its_nodes(
    fetched: list[str], provider: str | None, names: list[str]
) -> None:
    data = {"userPrompt": "hi", "provider": provider} if provider else {"userPrompt": "hi"}
    graph = {"nodes": [{"id": "a", "type": "agent", "data": data}], "edges": []}
    planwave("exec", "-", stdin=json.dumps(graph), embedded=FakeEmbeddedModel(NAME))
    assert fetched == names


def test_graph_without_model_calls_downloads_nothing(fetched: list[str]) -> None:
    source = json.dumps(GRAPH.to_document())
    done = planwave("exec", "-", stdin=source, providers=Nobody(), embedded=FakeEmbeddedModel(NAME))
    assert (done.exit_code, fetched) == (0, [])


@pytest.mark.parametrize(("goal", "says"), [(" ", "empty"), ("x" * 40_000, "goal_chars")])
def test_invalid_goal_downloads_nothing(fetched: list[str], goal: str, says: str) -> None:
    done = planwave("run", goal, providers=Nobody(), embedded=FakeEmbeddedModel(NAME))
    assert (done.exit_code, done.stdout, fetched) == (2, "", [])
    assert says in done.stderr


def test_invalid_graph_downloads_nothing(fetched: list[str]) -> None:
    nodes = [
        {"id": "a", "type": "agent", "data": {"provider": "local", "userPrompt": "hi"}},
        {"id": "b", "type": "no-such-type"},
    ]
    source = json.dumps({"nodes": nodes, "edges": []})
    done = planwave("exec", "-", stdin=source, embedded=FakeEmbeddedModel(NAME))
    assert (done.exit_code, fetched) == (3, [])


def test_goal_is_read_from_stdin() -> None:
    done = planwave("plan", "-", "--json", stdin="Tides,\nexplained\n")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["user_prompt"] == "Tides,\nexplained"


def test_run_shows_progress_and_result() -> None:
    done = planwave("run", "goal")
    assert done.exit_code == 0, done.output
    assert "planning with openai/gpt" in done.stdout
    assert "completed  b" in done.stdout
    assert done.stdout.rstrip().splitlines()[-3] == "two"
    assert "Stored in" not in done.stdout


@pytest.mark.parametrize(
    ("option", "states"),
    [("--run-to", ["completed", "not_reached"]), ("--run-from", ["completed", "completed"])],
)
def test_run_to_and_run_from_select_nodes(option: str, states: list[str]) -> None:
    source = json.dumps(GRAPH.to_document())
    done = planwave("exec", "-", option, "a", "--json", stdin=source)
    assert done.exit_code == 0, done.output
    assert [node["status"] for node in json.loads(done.stdout)["nodes"]] == states


def test_failed_run_exits_1() -> None:
    from planwave.graph.model import Node

    graph = make_graph(Node("x", "broken", "X"))
    done = planwave(
        "run", "goal", service=lambda _: Service(dependencies(graph, types=[FailingNode()]))
    )
    assert done.exit_code == 1
    assert "it broke" in done.stdout


def test_plan_suggests_show_command(tmp_path: Path) -> None:
    done = planwave("plan", "goal")
    assert done.exit_code == 0
    assert "planwave show 01900000-0000-7000-8000-000000000001" in done.stdout


class FullDisk(MemoryStore):
    async def append(self, execution_id: str, epoch: int, events: Any) -> None:
        raise StoreError("the disk is full", hint="make room")


def test_store_error_is_reported() -> None:
    done = planwave("run", "goal", store=FullDisk())
    assert done.exit_code == 1
    assert done.stderr.endswith("✗ the disk is full\n  → make room\n")


FAULTY = {"nodes": [{"id": "a", "type": "no-such-type"}], "edges": []}


def plans_in(store: MemoryStore) -> list[Any]:
    return asyncio.run(store.plans())


def test_invalid_file_is_named() -> None:
    done = planwave("exec", "-", stdin=json.dumps(FAULTY))
    assert done.exit_code == 3
    assert done.stderr.startswith("✗ stdin: ")


def test_invalid_input_is_rejected_before_anything_is_stored() -> None:
    store = MemoryStore()
    source = json.dumps(GRAPH.to_document())
    done = planwave("exec", "-", "--input", '{"zz": {"output": 1}}', stdin=source, store=store)
    assert done.exit_code == 2
    assert "zz" in done.stderr
    assert plans_in(store) == []


def test_invalid_input_for_new_plan_names_the_stored_plan() -> None:
    store = MemoryStore()
    done = planwave("run", "goal", "--input", "hello", "--storage", "there", store=store)
    assert done.exit_code == 2
    (plan,) = plans_in(store)
    assert f"the plan is stored: planwave show {plan.plan_id} --storage there\n" in done.stderr


def test_malformed_input_is_rejected_before_planning() -> None:
    store = MemoryStore()
    done = planwave("run", "goal", "--input", "{broken", store=store)
    assert done.exit_code == 2
    assert "--input '{broken'" in done.stderr
    assert (done.stdout, plans_in(store)) == ("", [])
