from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import planwave
from planwave import errors


def fresh(code: str) -> Any:
    """Run code in an interpreter of its own; give what it prints as JSON."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_importing_planwave_loads_nothing_but_itself_and_a_little_of_the_standard_library() -> None:
    loaded = fresh(
        "import sys; before = set(sys.modules)\n"
        "import planwave, json; print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    rooms = [name for name in loaded if name.startswith("planwave")]
    others = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert rooms == ["planwave"]
    assert others == {"planwave"}
    assert {"asyncio", "typing_extensions", "logging"}.isdisjoint(loaded)


@pytest.mark.slow
def test_building_and_running_a_graph_without_a_model_loads_no_sdk() -> None:
    heavy = ["openai", "anthropic", "pydantic_ai", "fastapi", "sqlalchemy", "minijinja", "jinja2"]
    heavy += ["typer", "yaml", "planwave.providers.registry", "planwave.providers.client"]
    runs = fresh(
        "import sys, json, planwave\n"
        "def run(text):\n"
        "    nodes = [{'id': 'a', 'type': 'text', 'data': {'text': text}}]\n"
        "    done = planwave.run_sync({'nodes': nodes, 'edges': []}, goal='x')\n"
        f"    return done.status, done.text, [m for m in {heavy!r} if m in sys.modules]\n"
        "print(json.dumps([run('{goal}'), run('{{ goal | upper }}')]))"
    )
    assert runs == [["completed", "{goal}", []], ["completed", "X", ["jinja2"]]]


@pytest.mark.parametrize("name", planwave.__all__)
def test_every_public_name_loads_and_says_what_it_is(name: str) -> None:
    assert getattr(planwave, name).__doc__
    assert name in dir(planwave)


def test_public_names_and_their_homes_are_the_same() -> None:
    homes = planwave._MODULE_OF  # pyright: ignore[reportPrivateUsage]
    assert sorted([*homes, "errors"]) == list(planwave.__all__) == dir(planwave)


def test_the_exceptions_that_programs_catch_most_are_public_and_the_others_in_errors_alone() -> (
    None
):
    public = {
        name
        for name in planwave.__all__
        if isinstance(kind := getattr(planwave, name), type) and issubclass(kind, Exception)
    }
    assert public == {
        "PlanwaveError", "InputError", "GraphInvalid", "PlanInvalid", "ExecutionFailed", "NodeError",
        "PermanentError", "NotFound", "Conflict",
    }  # fmt: skip
    for name in public:
        assert getattr(planwave, name) is getattr(errors, name)


def test_an_exception_that_is_not_public_says_where_it_is() -> None:
    with pytest.raises(AttributeError, match=r"it is planwave\.errors\.StoreError$"):
        planwave.StoreError  # type: ignore[attr-defined]  # noqa: B018


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        planwave.runn  # type: ignore[attr-defined]  # noqa: B018
