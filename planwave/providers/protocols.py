"""What the rest of planwave says to a language model, and what it hears back.

Provider-neutral: nothing here knows an SDK. :class:`Models` is the port nodes and the planner use;
``providers/client.py`` satisfies it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Protocol

from planwave.graph.plan import canonical_json


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One turn of a conversation; ``images`` are http(s) or base64 ``data:`` URLs, users' alone."""

    role: Literal["user", "assistant"]
    text: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. ``schema`` asks for a JSON reply of that shape (JSON Schema, object at the root).

    ``messages`` are the conversation so far; ``prompt`` follows them as the user's next turn, and may
    be empty where they already end with one.
    """

    provider: str
    model: str
    prompt: str
    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    schema: Mapping[str, Any] | None = None
    schema_name: str = "reply"
    messages: tuple[PromptMessage, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All text that is sent."""
        return (self.system or "", *(message.text for message in self.messages), self.prompt)

    def hash(self) -> str:
        """Give the identity of the call: sha256 over every field in canonical JSON.

        Without a conversation it is what it was before there were any, so that calls recorded then
        are still found.
        """
        fields = asdict(self)
        if not self.messages:
            del fields["messages"]
        return hashlib.sha256(canonical_json(fields).encode("utf-8")).hexdigest()


class CallSettings(NamedTuple):
    """How a model is to be asked; what is None is up to who asks it."""

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None

    def of(self, request: ModelRequest) -> ModelRequest:
        """Give a request with these settings over its own."""
        changes: Mapping[str, Any] = self._asdict()
        return replace(request, **{k: v for k, v in changes.items() if v is not None})


UNSET: Final = CallSettings()
"""Leaves everything to who asks."""

CHARS_PER_TOKEN: Final = 4


def text_tokens(*texts: str) -> int:
    """Estimate how many tokens texts are together."""
    return math.ceil(sum(map(len, texts)) / CHARS_PER_TOKEN)


class Delta(NamedTuple):
    """A piece of a reply as it arrives."""

    text: str
    kind: Literal["text", "reasoning"] = "text"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; ``cost_usd`` is None where the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A finished reply. ``finish_reason`` is ``stop`` or ``length``; all else is an error."""

    text: str
    provider: str
    model: str
    finish_reason: str
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1
    duration_s: float = 0.0
    recorded: bool = False
    """True where the reply was served from the recorder and nothing was paid again; not where it was,
    and who had paid was cut off before telling of it."""


class CallReport(NamedTuple):
    """How one attempt at a call ended; told to whoever counts calls.

    Attributes:
        outcome: ``completed``, ``recorded`` (served again, nothing was paid), ``cancelled``, or the
            code of the ``ProviderError``.
        duration_s: Of the attempt alone, without waiting for the provider's turn.
        usage: What it took, where that is known.
        will_retry: Another attempt follows.
    """

    provider: str
    model: str
    outcome: str
    duration_s: float = 0.0
    usage: Usage | None = None
    will_retry: bool = False


ORDINALS_PER_ANSWER: Final = 1_000
"""How far apart the calls before and after an answer are numbered."""


class CallScope:
    """Where a call belongs: one attempt of one node of one execution.

    ``next_ordinal`` numbers the calls of an attempt 0, 1, 2 …; a re-entered attempt that asks the
    same things in the same order is served what was recorded. An attempt that goes on after an
    answer does not begin anew, so its numbers are others than those it had before.

    Args:
        execution_id: The execution.
        path: The node's path in it.
        attempt: Its attempt, from 1.
        answers: How often this attempt was answered so far.
        time_left_s: Gives the seconds the attempt has left; a call does not wait for longer than that.
    """

    __slots__ = ("_ordinal", "attempt", "execution_id", "path", "time_left_s")

    def __init__(
        self,
        execution_id: str,
        path: str,
        attempt: int,
        answers: int = 0,
        time_left_s: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self.execution_id = execution_id
        self.path = path
        self.attempt = attempt
        self.time_left_s = time_left_s
        self._ordinal = answers * ORDINALS_PER_ANSWER

    def next_ordinal(self) -> int:
        """Give this call's number within the attempt."""
        ordinal = self._ordinal
        self._ordinal += 1
        return ordinal


class CallKey(NamedTuple):
    """Identity of one recorded call."""

    execution_id: str
    path: str
    attempt: int
    ordinal: int
    request_hash: str


class Recorder(Protocol):
    """Port: keeps finished calls so that none is paid for twice. ``storage/`` satisfies it."""

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        """Give the recorded reply (JSON), or None."""
        ...

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Keep a reply; durable when this returns."""
        ...


class Models(Protocol):
    """Port: streams one reply; the last item is the :class:`ModelReply`, all others are deltas."""

    def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncIterator[Delta | ModelReply]:
        """Call the model.

        Raises:
            ProviderError: Classified failure, after the retry layer gave up; the text already
                streamed must not be used.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What a model can do, as far as planning and running care."""

    small: bool = False
    """Needs the positional schema, one exemplar and token caps (the embedded models)."""
    plans: bool = True
    """Whether it can write plans at all; one that cannot still runs the steps that name it."""
    structured_output: bool = True
    tools: bool = True
    images: bool = True
    """Whether it can be shown images."""
    max_output_tokens: int | None = None
    """What planwave asks for at most when the node says nothing; None leaves it to the provider."""


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """One provider as shown to people and to the planner.

    ``models`` may be empty for an endpoint that was configured without a list: then any name goes.
    """

    name: str
    kind: str
    available: bool
    reason: str
    how_to_enable: str = ""
    models: tuple[str, ...] = ()
    default_model: str | None = None
    open_models: bool = True
    """Names outside ``models`` are accepted too (hosted providers add models every month)."""


class Providers(Protocol):
    """Port: which providers there are and which one a request means."""

    def list(self) -> list[ProviderInfo]:
        """Give all known providers, available ones first."""
        ...

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Give the provider and model a request means; None means the default.

        Raises:
            UnknownProvider, UnavailableProvider, UnknownModel: Each says what is available.
        """
        ...

    def profile(self, provider: str, model: str) -> ModelProfile: ...

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        """Give the price in US dollars, or None where unknown."""
        ...


class LocalProvider(Protocol):
    """Port: the embedded model server, one more endpoint that speaks the OpenAI chat protocol.

    Nothing loads before the first :meth:`endpoint`. ``providers/local.py`` satisfies it.
    """

    @property
    def models(self) -> tuple[str, ...]:
        """Names that can be asked for, the default first."""
        ...

    @property
    def default_model(self) -> str: ...

    @property
    def slots(self) -> int:
        """Calls the server works on at once (its slots); more would only wait inside it."""
        ...

    def availability(self) -> tuple[bool, str, str]:
        """Give ``(available, reason, how_to_enable)``; cheap, starts nothing."""
        ...

    async def endpoint(self, model: str) -> tuple[str, str]:
        """Give ``(base_url ending in /v1, api_key)`` of a running server, starting it if needed.

        Raises:
            ProviderError: The model cannot be fetched or the server cannot start.
        """
        ...

    def profile(self, model: str) -> ModelProfile: ...

    async def close(self) -> None:
        """Stop the server if one runs."""
        ...
