"""Routes: an answer of a model, by chat completions and by responses, whole or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from planwave.api.access_rules import access_token
from planwave.api.dependencies import (
    AUTHENTICATED,
    PREASSIGNED_ID,
    PreassignedExecutionIdDep,
    app_state,
)
from planwave.api.json_body import json_body
from planwave.api.problems import ProblemError, problems
from planwave.api.responses import UNFINISHED, json_response
from planwave.api.routes.openai.models import models_of
from planwave.api.routes.openai.streams import AnswerStream
from planwave.api.schemas.examples import EXECUTION_ID, success
from planwave.api.streaming.sse import wait_for_disconnect
from planwave.errors import PlanwaveError, SlowConsumer
from planwave.events import Event
from planwave.events.chat_chunks import AnswerHead
from planwave.events.stream.parts import End
from planwave.ids import new_id
from planwave.interop.openai.answer import Answer, AnswerPart, answer_parts, whole_answer
from planwave.interop.openai.chat_format import ChatChunks, chat_completion
from planwave.interop.openai.chat_request import ChatCompletionRequest
from planwave.interop.openai.errors import HAS_RUN, failure_body, failure_status, with_outcome
from planwave.interop.openai.published_models import PublishedModel, PublishedModels
from planwave.interop.openai.responses_format import ResponseEvents, ResponseObject
from planwave.interop.openai.responses_request import ResponsesRequest
from planwave.service.flows.chat_entries import ChatTurn
from planwave.service.service import Service
from planwave.shapes.openai import ChatCompletionResponse, ResponsesResponse

router = APIRouter(tags=["openai"], dependencies=AUTHENTICATED)

EXECUTION_HEADER: Final = "x-planwave-execution-id"
_NO_RETRY: Final = {"x-should-retry": "false"}
_FAILED: Final = "the execution failed"
_EXAMPLE_HEAD: Final = AnswerHead(EXECUTION_ID, 1_769_860_800, "triage")
_EXAMPLE: Final = Answer("Unplug it.", "", End())
_ERRORS: Final = problems(404, 409, 422, 502)


class AnswerRun:
    """The execution that answers one request.

    Args:
        request: The request.
        models: Those of the client.
        model: The one that it named.
        turn: What it asks.
        execution_id: The id for the execution.
    """

    def __init__(
        self,
        request: Request,
        models: PublishedModels,
        model: PublishedModel,
        turn: ChatTurn,
        execution_id: str,
    ) -> None:
        self._request = request
        self._models = models
        self._model = model
        self._turn = turn
        self._cancels_on_disconnect = False
        self._status = HAS_RUN
        self.execution_id = execution_id
        service = app_state(request).service
        self.head = AnswerHead(execution_id, int(service.now().timestamp()), model.id)
        self.headers = {EXECUTION_HEADER: execution_id}

    async def start(self) -> None:
        """Start the execution; see ``PublishedModels.start``."""
        self._cancels_on_disconnect = await self._models.start(
            self._model, self._turn, self.execution_id
        )

    async def answer(self, stops: list[str]) -> Answer:
        """Start the execution and return its whole answer.

        Where the service goes down, the execution goes on later. A repeated request with an idempotency key
        gets its answer, so its client is told to repeat it; without a key it would run once more.

        Raises:
            PlanwaveError: It was not started; or the service goes down, and the request has a key.
        """
        await self.start()
        leaving = asyncio.get_running_loop().create_task(self._leave_with_client())
        try:
            answer = await whole_answer(self.parts(stops))
            await app_state(self._request).service.executions.wait_end_written(self.execution_id)
            return answer
        except PlanwaveError as error:
            self._request.scope[UNFINISHED] = True
            if PREASSIGNED_ID not in self._request.scope:
                failure = {"message": error.message, "code": error.code}
                return Answer("", "", End(error=failure))
            raise ProblemError(
                error.status_hint, error.code, error.message, hint=error.hint, headers=self.headers
            ) from error
        finally:
            leaving.cancel()
            await asyncio.wait([leaving])

    async def _leave_with_client(self) -> None:
        await wait_for_disconnect(self._request.receive)
        await self.leave()

    async def parts(self, stops: list[str]) -> AsyncGenerator[AnswerPart]:
        """Yield the parts of the answer; what failed in the flow is for those who may read it."""
        service = app_state(self._request).service
        token = access_token(self._request)
        shows_failure = token is None or "read" in token.scopes
        async for part in answer_parts(self._events(service), stops):
            if isinstance(part, End) and part.error is not None:
                state = await service.executions.state(self.execution_id)
                self._status = failure_status(state)
                told = part
                if not shows_failure:
                    code = part.error["code"]
                    told = End(usage=part.usage, error={"message": _FAILED, "code": code})
                error = with_outcome(told.error or {}, state, shows_causes=shows_failure)
                yield replace(told, error=error)
            else:
                yield part

    async def _events(self, service: Service) -> AsyncGenerator[Event]:
        """Yield all events; a client that reads slowly gets them later, and a streamed text with its end."""
        after = 0
        counts = self._cancels_on_disconnect
        async with service.followers.following(self.execution_id, counts=counts):
            while True:
                try:
                    async with aclosing(
                        service.executions.watch(self.execution_id, after=after)
                    ) as events:
                        async for event in events:
                            after = event.seq or after
                            yield event
                    return
                except SlowConsumer:
                    continue

    async def leave(self) -> bool:
        """Do what the flow wants where the client has left; return whether the execution goes on."""
        if self._cancels_on_disconnect:
            await self._models.cancel(self.execution_id)
        return not self._cancels_on_disconnect

    def stream(self, encoder: ChatChunks | ResponseEvents, stops: list[str]) -> Response:
        """Return the answer as a stream."""
        parts = self.parts(stops)
        return AnswerStream(self._request, self.start, parts, encoder, self.leave, self.headers)

    def failure(self, end: End) -> Response | None:
        """Return the response where the execution failed."""
        if end.error is None:
            return None
        failed = json_response(failure_body(end.error, self._status), self._status)
        failed.headers.update({**self.headers, **_NO_RETRY})
        return failed

    def whole(self, content: Mapping[str, Any]) -> Response:
        """Return the whole answer."""
        answered = json_response(content)
        answered.headers.update(self.headers)
        return answered


async def _prepare(
    request: Request, body: ChatCompletionRequest | ResponsesRequest, preassigned_id: str | None
) -> AnswerRun:
    models = models_of(request)
    model = await models.get(body.model)
    return AnswerRun(request, models, model, body.turn(), preassigned_id or new_id())


@router.post(
    "/v1/chat/completions",
    operation_id="createChatCompletion",
    summary="Have a flow answer a conversation",
    responses={
        **success(ChatCompletionResponse, "The answer.", chat_completion(_EXAMPLE_HEAD, _EXAMPLE)),
        **_ERRORS,
    },
)
async def create_chat_completion(
    request: Request,
    preassigned_id: PreassignedExecutionIdDep,
    body: Annotated[ChatCompletionRequest, json_body(ChatCompletionRequest)],
) -> Response:
    """Run a flow that is published as a model, and return its answer as a chat completion.

    `x-planwave-execution-id` is the id of its execution. `planwave/planner` plans the last message as a
    goal, and answers with the result of the plan.
    """
    stops = body.settings().stop
    run = await _prepare(request, body, preassigned_id)
    if body.stream:
        return run.stream(ChatChunks(run.head, includes_usage=body.includes_usage), stops)
    answer = await run.answer(stops)
    return run.failure(answer.end) or run.whole(chat_completion(run.head, answer))


@router.post(
    "/v1/responses",
    operation_id="createResponse",
    summary="Have a flow answer, by the responses API",
    responses={
        **success(
            ResponsesResponse,
            "The answer.",
            ResponseObject(_EXAMPLE_HEAD, None, None).whole(_EXAMPLE),
        ),
        **_ERRORS,
    },
)
async def create_response(
    request: Request,
    preassigned_id: PreassignedExecutionIdDep,
    body: Annotated[ResponsesRequest, json_body(ResponsesRequest)],
) -> Response:
    """Run a flow that is published as a model, and return its answer as a response.

    Responses are not kept: each request has the whole conversation.
    """
    run = await _prepare(request, body, preassigned_id)
    response = ResponseObject(run.head, body.instructions, body.metadata)
    if body.stream:
        return run.stream(ResponseEvents(response), [])
    answer = await run.answer([])
    return run.failure(answer.end) or run.whole(response.whole(answer))
