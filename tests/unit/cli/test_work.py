import asyncio
import json
from typing import Any

from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.service.service import Service
from planwave.storage.memory import MemoryStore
from tests.fakes.composition import fake_factories
from tests.fakes.service import make_graph, dependencies, text_node

GRAPH = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])
FAULTY = {"nodes": [{"id": "a", "type": "no-such-type"}], "edges": []}


def planwave(*args: str, stdin: str | None = None, store: MemoryStore | None = None) -> Result:
    obj = fake_factories(service=lambda _: Service(dependencies(GRAPH, store=store or MemoryStore())))
    return CliRunner().invoke(app, list(args), obj=obj, input=stdin)


def plans_in(store: MemoryStore) -> list[Any]:
    return asyncio.run(store.plans())


def test_a_faulty_file_is_named() -> None:
    done = planwave("exec", "-", stdin=json.dumps(FAULTY))
    assert done.exit_code == 3
    assert done.stderr.startswith("✗ stdin: ")


def test_input_that_does_not_fit_a_file_is_refused_before_anything_is_kept() -> None:
    store = MemoryStore()
    source = json.dumps(GRAPH.to_document())
    done = planwave("exec", "-", "--input", '{"zz": {"output": 1}}', stdin=source, store=store)
    assert done.exit_code == 2
    assert "zz" in done.stderr
    assert plans_in(store) == []


def test_input_that_does_not_fit_a_new_plan_says_that_the_plan_is_kept() -> None:
    store = MemoryStore()
    done = planwave("run", "goal", "--input", "hello", "--storage", "there", store=store)
    assert done.exit_code == 2
    (plan,) = plans_in(store)
    assert f"the plan is kept: planwave show {plan.plan_id} --storage there\n" in done.stderr


def test_input_that_is_no_json_is_refused_before_any_model_is_asked() -> None:
    store = MemoryStore()
    done = planwave("run", "goal", "--input", "{broken", store=store)
    assert done.exit_code == 2
    assert "--input '{broken'" in done.stderr
    assert (done.stdout, plans_in(store)) == ("", [])
