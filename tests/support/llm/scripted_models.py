"""Models without a network: replies from a list, or from a function of the request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from planwave.providers.protocols import (
    CallScope,
    Delta,
    ModelReply,
    ModelRequest,
    Usage,
)


class ScriptedReply(NamedTuple):
    """One scripted reply; ``pieces`` is how it is streamed, the whole text at once by default."""

    text: str
    finish_reason: str = "stop"
    pieces: Sequence[str] | None = None
    reasoning: str = ""
    output_tokens: int = 7


@dataclass
class ScriptedModels:
    """Satisfies ``Models``: each call takes the next reply; an exception is raised instead."""

    script: Sequence[ScriptedReply | str | Exception]
    requests: list[ModelRequest] = field(default_factory=list)
    scopes: list[CallScope | None] = field(default_factory=list)
    streamed: int = 0
    closed: int = 0

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncIterator[Delta | ModelReply]:
        reply = self.script[len(self.requests)]
        self.requests.append(request)
        self.scopes.append(scope)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            reply = ScriptedReply(reply)
        try:
            if reply.reasoning:
                yield Delta(reply.reasoning, "reasoning")
            for piece in reply.pieces or [reply.text]:
                self.streamed += len(piece)
                yield Delta(piece)
            yield ModelReply(
                reply.text,
                request.provider,
                request.model,
                reply.finish_reason,
                Usage(11, reply.output_tokens, 0.01),
            )
        finally:
            self.closed += 1


ReplyFunction = Callable[[ModelRequest], Iterable[str | Delta | ModelReply]]


class FunctionModels:
    """Models whose reply is a function of the request: the pieces of its text.

    A plain str is a text delta; unless a ``ModelReply`` is among the pieces, one is added.
    """

    def __init__(self, reply: ReplyFunction) -> None:
        self._reply = reply
        self.requests: list[ModelRequest] = []
        self.scopes: list[CallScope | None] = []

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncIterator[Delta | ModelReply]:
        self.requests.append(request)
        self.scopes.append(scope)
        texts: list[str] = []
        for piece in self._reply(request):
            if isinstance(piece, ModelReply):
                yield piece
                return
            delta = Delta(piece) if isinstance(piece, str) else piece
            if delta.kind == "text":
                texts.append(delta.text)
            yield delta
        yield ModelReply(
            "".join(texts), request.provider, request.model, "stop", Usage(3, len(texts), 0.5)
        )
