"""The answer to a webhook: what a node of the flow replies, the result, or the execution's id."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import SlowConsumer
from planwave.jsonio import dumps_exact
from planwave.service.queries.caller_failures import failed_at_url_of_caller, partial_result
from planwave.service.service import Service
from planwave.service.triggers.reply_nodes import ReplyFinder

if TYPE_CHECKING:
    from planwave.events import Event

_ENDED: Final = frozenset({"execution.completed", "execution.failed", "execution.cancelled"})
_TEXT: Final = "text/plain; charset=utf-8"
JSON_TYPE: Final = "application/json"


class WebhookAnswer(NamedTuple):
    """The answer to a request; ``is_repeated`` if an earlier request got it."""

    status: int
    headers: Mapping[str, str]
    body: str
    execution_id: str
    is_repeated: bool = False

    def serialize(self) -> str:
        """Return the answer in the form of the store."""
        return dumps_exact([self.status, dict(self.headers), self.body, self.execution_id])


def stored_answer(text: str) -> WebhookAnswer:
    """Return an answer from the store, for a repeated request."""
    return WebhookAnswer(*json.loads(text), is_repeated=True)


def accepted_answer(execution_id: str) -> WebhookAnswer:
    """Return the answer before there is a result: 202 with the execution's id."""
    return _json_answer(202, {"execution_id": execution_id})


async def wait_for_answer(
    service: Service, execution_id: str, *, with_result: bool
) -> WebhookAnswer:
    """Wait for the reply of a node, or for the end of the execution.

    Args:
        service: Where the execution runs.
        execution_id: The execution.
        with_result: Whether an execution that completed without a reply answers with its outputs.

    Raises:
        ShuttingDown, StoreError: The service cannot tell.
    """
    finder = ReplyFinder()
    try:
        async for event in service.executions.watch(execution_id):
            if (reply := finder.reply_in(event)) is not None:
                return _answer_of(reply, execution_id)
            if event.type in _ENDED:
                return await _end_of(service, event, execution_id, with_result=with_result)
    except SlowConsumer:
        pass
    return accepted_answer(execution_id)


async def wait_at_most(
    seconds: float,
    service: Service,
    execution_id: str,
    *,
    with_result: bool,
) -> WebhookAnswer:
    """Wait as ``wait_for_answer`` does; after so many seconds the execution's id is the answer."""
    try:
        async with asyncio.timeout(seconds):
            return await wait_for_answer(service, execution_id, with_result=with_result)
    except TimeoutError:
        return accepted_answer(execution_id)


def _answer_of(reply: Mapping[str, Any], execution_id: str) -> WebhookAnswer:
    body, headers = reply["body"], dict(reply["headers"])
    is_text = isinstance(body, str)
    headers.setdefault("content-type", _TEXT if is_text else JSON_TYPE)
    text = body if is_text else dumps_exact(body)
    return WebhookAnswer(reply["status"], headers, text, execution_id)


async def _end_of(
    service: Service, event: Event, execution_id: str, *, with_result: bool
) -> WebhookAnswer:
    await service.executions.wait_end_written(execution_id)
    if event.type != "execution.completed":
        state = await service.executions.state(execution_id)
        # Which node failed, and how, is for the people who run the flow.
        document: dict[str, Any] = {"execution_id": execution_id}
        if with_result and (delivered := partial_result(state)):
            document |= {"status": state.status, **delivered}
        status = 400 if failed_at_url_of_caller(state) else 500
        return _json_answer(status, document)
    if not with_result:
        return accepted_answer(execution_id)
    result = (await service.executions.state(execution_id)).result()
    document = {"execution_id": execution_id, "status": "completed", "outputs": result.values}
    return _json_answer(200, document)


def _json_answer(status: int, content: dict[str, Any]) -> WebhookAnswer:
    headers = {"content-type": JSON_TYPE}
    return WebhookAnswer(status, headers, dumps_exact(content), content["execution_id"])
