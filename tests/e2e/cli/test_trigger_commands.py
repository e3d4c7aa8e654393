"""``planwave triggers``: the same by itself and through a service that holds the storage directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from tests.support.cli.command_process import isolated_directory
from tests.support.server.running_server import running_server
from tests.support.triggers.hook_sender import hook_flow

TOKEN = "hush-hush-hush"
FLOW = hook_flow(auth="none", secrets=[], sample={"order": 7})


@pytest.fixture(scope="module", params=["alone", "served"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The environment of commands in a directory that nobody holds, or with a service elsewhere."""
    directory = tmp_path_factory.mktemp("storage")
    if request.param == "alone":
        yield {"PLANWAVE_STORAGE_DIR": str(directory)}
        return
    with running_server(directory=directory, token=TOKEN, unsigned_webhooks=True) as running:
        yield {"PLANWAVE_URL": running.base_url, "PLANWAVE_TOKEN": TOKEN}


@pytest.fixture(autouse=True)
def working_directory(
    place: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PLANWAVE_UNSIGNED_WEBHOOKS", "true")


def planwave(*args: str, stdin: Any = None) -> Result:
    given = None if stdin is None else json.dumps(stdin)
    return CliRunner().invoke(app, list(args), obj=cli_factories(), input=given)


def said(*args: str, stdin: Any = None) -> Any:
    done = planwave(*args, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def flow() -> str:
    """The name of a flow with a webhook, which no other test uses."""
    name = f"flow {uuid4()}"
    said("flow", "save", name, "-", stdin=FLOW)
    return name


def listed(trigger_id: str) -> Any:
    return next(e for e in said("triggers")["triggers"] if e["trigger_id"] == trigger_id)


def test_trigger_is_added_listed_switched_and_removed(flow: str) -> None:
    added = said("triggers", "add", flow)
    own = added["trigger_id"]
    assert (added["flow"], added["kind"], added["problem"]) == (flow, "webhook", None)
    assert listed(own) == added
    assert not said("triggers", "disable", own)["enabled"]
    assert not listed(own)["enabled"]
    assert said("triggers", "enable", own[-12:])["enabled"]
    assert said("triggers", "rm", own) == {"removed": own}
    assert own not in [each["trigger_id"] for each in said("triggers")["triggers"]]


@pytest.mark.parametrize("bound", [None, 1])
def test_trigger_starts_the_live_revision_or_the_one_it_is_bound_to(
    flow: str, bound: int | None
) -> None:
    chosen = () if bound is None else ("--revision", str(bound))
    own = said("triggers", "add", flow, *chosen)["trigger_id"]
    hook, echo = FLOW["nodes"]
    nodes = [hook, {**echo, "data": {"text": "now {{ input.body }}"}}]
    said("flow", "save", flow, "-", stdin={**FLOW, "nodes": nodes})
    trigger = listed(own)
    assert (trigger["revision"], trigger["live_revision"]) == (bound, bound or 2)
    run = said("triggers", "fire", own)["execution_id"]
    assert planwave("watch", run).exit_code == 0
    document = said("show", run)
    assert (document["revision"], document["flow"]) == (bound or 2, flow)


def test_trigger_is_bound_to_a_revision_that_there_is(flow: str) -> None:
    done = planwave("triggers", "add", flow, "--revision", "2")
    assert (done.exit_code, "has no revision 2" in done.output) == (2, True)


def test_test_delivery_starts_an_execution(flow: str) -> None:
    own = said("triggers", "add", flow, "--node", "hook")["trigger_id"]
    executions = [
        said("triggers", "fire", own, *value)["execution_id"]
        for value in ((), ("--value", "[1]"), ("--value", "no json"))
    ]
    deliveries = listed(own)["deliveries"]
    assert [each["execution_id"] for each in deliveries] == executions[::-1]
    shown = planwave("watch", executions[2])
    assert shown.exit_code == 0, shown.output
    assert said("show", executions[2])["node_results"]["echo"] == "got no json"


def test_list_for_people_says_what_is_listened_for(flow: str) -> None:
    own = said("triggers", "add", flow)["trigger_id"]
    said("triggers", "fire", own)
    text = planwave("triggers").output
    assert flow in text
    assert f"path: /hooks/{own}" in text
    assert "a test delivery" in text
    done = planwave("triggers", "add", flow)
    assert done.exit_code == 2
    assert "has a trigger" in done.output
    removed = planwave("triggers", "rm", own)
    assert "Removed the webhook" in removed.output


def test_unknown_trigger_is_an_error() -> None:
    done = planwave("triggers", "enable", "nobody")
    assert done.exit_code == 2
    assert "planwave triggers" in done.output
