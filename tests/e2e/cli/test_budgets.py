"""Budgets from outside: over HTTP and by the command line, with a model that is scripted at protocol level."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from planwave.client import AsyncClient
from planwave.errors import InputError
from planwave.nodes.services import NodeServices
from planwave.providers.client import ModelClient
from planwave.providers.registry import ProviderRegistry
from planwave.settings import Settings
from tests.e2e.cli.test_human_requests import typed, wait_for_event
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.llm.fake_llm_server import FakeLLMServer, TextReply, fake_llm_in_thread
from tests.support.server.running_server import NO_RATE_LIMITS, RunningServer, running_server

USED = (1_000, 500)
"""The tokens of each reply of the fake model."""


@pytest.fixture
def llm() -> Iterator[FakeLLMServer]:
    def reply_to(*_: Any) -> TextReply:
        return TextReply("done", usage=USED)

    with fake_llm_in_thread(reply_to=reply_to) as server:
        yield server


@pytest.fixture
def server(llm: FakeLLMServer) -> Iterator[RunningServer]:
    settings = Settings(openai_api_key=SecretStr("sk-test"), openai_base_url=llm.openai_url)
    providers = ProviderRegistry(settings)
    models = ModelClient(settings, providers)

    def services(goal: str) -> NodeServices:
        return NodeServices(models, providers, goal=goal)

    overrides = {"providers": providers, "node_services": services, "close": models.close}
    with running_server(limits=NO_RATE_LIMITS, overrides=overrides) as running:
        yield running


def chain(length: int) -> dict[str, Any]:
    """Steps that ask a model, one after the other."""
    ids = [f"s{number}" for number in range(1, length + 1)]
    data = {"provider": "openai", "model": "gpt-4o-mini", "prompt": "Go on: {{ input }}"}
    first = {**data, "prompt": "Begin"}
    return {
        "nodes": [
            {"id": each, "type": "llm", "data": data if number else first}
            for number, each in enumerate(ids)
        ],
        "edges": [
            {"source": one, "target": other, "data": {"channel": "flow"}}
            for one, other in pairwise(ids)
        ],
    }


async def paused(client: AsyncClient, execution_id: str) -> tuple[Mapping[str, Any], str]:
    """Wait for the request for a higher budget; return the execution and the id of the request."""
    found = await wait_for_event(client, execution_id, "execution.paused")
    (request,) = found["requests"]
    assert (request["path"], request["request"]["kind"]) == (None, "budget")
    return found, request["request_id"]


async def test_a_run_is_paused_at_its_budget_and_completes_once_it_is_raised(
    server: RunningServer, llm: FakeLLMServer
) -> None:
    async with AsyncClient(server.base_url) as client:
        options = {"budget": {"tokens": 6_000, "usd": None}}
        made = await client.execute(chain(3), options=options)
        execution_id = made["execution_id"]
        found, request_id = await paused(client, execution_id)
        assert found["budget"] == {
            "limits": {"tokens": 6_000},
            "used": {"tokens": 3_000},
            "warned": [],
        }
        assert found["node_states"] == {"s1": "completed", "s2": "completed", "s3": "waiting"}
        message = found["requests"][0]["request"]["message"]
        assert "used 3,000 of 6,000 tokens" in message
        assert "Most was used by 's1' (1,500 tokens), 's2' (1,500 tokens)" in message
        for value, problem in (
            ({"tokens": 3_000}, "3,000 tokens already used"),
            ({"calls": 9}, "does not limit 'calls'"),
            ({}, "the new limits are an object"),
        ):
            answer = {"decision": "raise", "value": value}
            with pytest.raises(InputError, match=problem):
                await client.answer(execution_id, request_id, answer)

        answer = {"decision": "raise", "value": {"tokens": 9_000}}
        await client.answer(execution_id, request_id, answer)
        assert (await client.wait(execution_id))["node_results"]["s3"] == "done"
        document = await client.document(execution_id)
        assert document["budget"] == {"limits": {"tokens": 9_000}, "used": {"tokens": 4_500}, "warned": []}  # fmt: skip
        assert document["usage"]["calls"] == len(llm.requests) == 3
        assert "Budget - raise (with a value) to 9,000 tokens" in document["execution_logs"]

        retried = await client.fork(execution_id, rerun=["s3"])
        assert (await client.wait(retried["execution_id"]))["node_results"]["s3"] == "done"
        forked = await client.execution(retried["execution_id"])
        assert forked["budget"]["limits"] == {"tokens": 9_000}
        assert forked["budget"]["used"]["tokens"] == 1_500  # its own: nothing of its parent's


async def test_a_stopped_run_is_cancelled_and_the_usual_budget_is_that_of_the_service(
    server: RunningServer,
) -> None:
    async with AsyncClient(server.base_url) as client:
        made = await client.execute(chain(2), options={"budget": {"calls": 1}})
        found, request_id = await paused(client, made["execution_id"])
        assert found["budget"]["limits"] == {"usd": 5, "tokens": 200_000, "calls": 1}
        assert 0 < found["budget"]["used"]["usd"] < 0.01
        assert found["budget"]["warned"] == ["calls"]
        await client.answer(
            made["execution_id"], request_id, {"decision": "stop", "note": "enough"}
        )
        await client.wait(made["execution_id"])
        ended = await client.execution(made["execution_id"])
        assert (ended["status"], ended["cause"]) == (
            "cancelled", "the budget was not raised: enough",
        )  # fmt: skip
        with pytest.raises(InputError):
            await client.execute(chain(1), options={"budget": {"tokens": 0}})


class TestCommand:
    @pytest.fixture(autouse=True)
    def empty(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llm: FakeLLMServer) -> None:
        isolated_directory(tmp_path, monkeypatch)
        Path("g.json").write_text(json.dumps(chain(2)), "utf-8")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)

    def test_the_run_stops_at_the_budget_and_an_answer_raises_it(self) -> None:
        stopped = invoke("exec", "g.json", "--budget-tokens", "4200")
        assert stopped.exit_code == 0
        assert "the run may need more than 4,200 tokens" in stopped.stdout
        assert "the run: waiting for an answer" in stopped.stdout
        (command,) = re.findall(r"answer with: planwave (.*?)(?:   \(or|$)", stopped.stdout, re.M)
        assert command.endswith("""--decision raise --value '{"tokens": 6000}'""")
        wrong = invoke_json("answer", "last", "--decision", "raise", code=2)
        assert [each["pointer"] for each in wrong["diagnostics"]] == ["/value"]
        assert invoke(*shlex.split(command)).exit_code == 0
        shown = invoke_json("show", "last")
        limits = {"usd": 5, "tokens": 6_000}
        assert (shown["status"], shown["budget"]["limits"]) == ("completed", limits)

    def test_the_budget_in_dollars_is_raised_at_a_terminal(self) -> None:
        script = [
            ("Decision: ", "raise\n"), ("New limit, usd", "1\n"), ("New limit, tokens", "\n"),
        ]  # fmt: skip
        code, seen = typed(["exec", "g.json", "--budget", "0.0026"], script)
        assert code == 0, seen
        shown = invoke_json("show", "last")
        assert shown["budget"]["limits"] == {"usd": 1, "tokens": 200_000}
