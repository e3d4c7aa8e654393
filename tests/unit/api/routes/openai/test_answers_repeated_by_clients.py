"""What has run is not run again: the clients of others repeat no request whose execution has begun."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.support.llm.fake_llm_server import TextReply
from tests.unit.api.routes.openai.test_answers import TOKEN, Models, Opens, models, said
from tests.unit.api.routes.openai.test_answers_broken_requests import executions, service_of

__all__ = ["models"]
START: dict[str, Any] = {"id": "s", "type": "start"}
WIRE: dict[str, Any] = {"source": "s", "target": "n", "data": {"channel": "flow"}}


def flow(kind: str, data: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return {"nodes": [START, {"id": "n", "type": kind, "data": data, **policy}], "edges": [WIRE]}


WAITS = flow("wait", {"seconds": 600})


async def _cancel(made: Models) -> None:
    await _begun(made)
    (run,) = await executions(made)
    await made.send("POST", f"/api/executions/{run['execution_id']}/cancel")


async def _shut_down(made: Models) -> None:
    await _begun(made)
    service_of(made).close_streams()


async def _begun(made: Models) -> None:
    async with asyncio.timeout(30):
        while [run["status"] for run in await executions(made)] != ["paused"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _nothing(_: Models) -> None:
    pass


ENDS: dict[str, tuple[dict[str, Any], Callable[[Models], Awaitable[None]]]] = {
    "failed": (flow("text", {"text": "{{ 1 / 0 }}"}), _nothing),
    "timeout": (flow("agent", {"userPrompt": "x"}, policy={"timeoutS": 0.1}), _nothing),
    "cancelled": (WAITS, _cancel),
    "shutdown": (WAITS, _shut_down),
}


async def _by_completions(made: Models) -> None:
    client = made.client().with_options(max_retries=2)
    await client.chat.completions.create(model="triage", messages=said("x"))


async def _by_responses(made: Models) -> None:
    await made.client().with_options(max_retries=2).responses.create(model="triage", input="x")


async def _by_langchain(made: Models) -> None:
    client = ChatOpenAI(
        base_url="http://127.0.0.1/v1",
        api_key=SecretStr(TOKEN),
        model="triage",
        http_async_client=made.http,
        max_retries=2,
    )
    await client.ainvoke("x")


@pytest.mark.parametrize("ask", [_by_completions, _by_responses, _by_langchain])
@pytest.mark.parametrize("end", ENDS)
async def test_request_whose_execution_has_begun_is_not_repeated(
    models: Opens, end: str, ask: Callable[[Models], Awaitable[None]]
) -> None:
    graph, act = ENDS[end]
    statuses: list[int] = []
    async with models(TextReply("late", hold_until=asyncio.Event())) as made:
        await made.publish(graph)

        async def note(answer: Any) -> None:
            if answer.request.url.path.startswith("/v1/"):
                statuses.append(answer.status_code)
                answer.headers.pop("x-should-retry")  # other clients do not know it

        made.http.event_hooks = {"response": [note]}
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(_expect_error(ask(made)))
            await act(made)
        assert asking.result() == "server_error"
        assert statuses == [422]
        assert len(await executions(made)) == 1


async def _expect_error(asked: Awaitable[None]) -> str | None:
    with pytest.raises(openai.APIStatusError) as caught:
        await asked
    return caught.value.type
