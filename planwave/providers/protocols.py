"""Requests, replies and ports of model calls, independent of providers and SDKs.

Nodes and the planner use the port :class:`Models`; ``providers/client.py`` implements it.
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
    """One turn of a conversation; ``images`` are http(s) or base64 ``data:`` URLs, only in user turns."""

    role: Literal["user", "assistant"]
    text: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call.

    ``schema`` requests a JSON reply (JSON Schema, object at the root). ``messages`` are the
    conversation so far; ``prompt`` follows as the next turn of the user, and may be empty if the
    conversation ends with one.
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
        """All text of the request."""
        return (self.system or "", *(message.text for message in self.messages), self.prompt)

    def hash(self) -> str:
        """Return the identity of the call: sha256 over every field in canonical JSON.

        ``messages`` counts only if present, so that calls recorded before it existed are still found.
        """
        fields = asdict(self)
        if not self.messages:
            del fields["messages"]
        return hashlib.sha256(canonical_json(fields).encode("utf-8")).hexdigest()


class CallSettings(NamedTuple):
    """Settings of a model call; None leaves a setting to the request."""

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None

    def of(self, request: ModelRequest) -> ModelRequest:
        """Return a request with these settings in place of its own."""
        changes: Mapping[str, Any] = self._asdict()
        return replace(request, **{k: v for k, v in changes.items() if v is not None})


UNSET: Final = CallSettings()
"""Leaves every setting to the request."""

CHARS_PER_TOKEN: Final = 4


def text_tokens(*texts: str) -> int:
    """Estimate the number of tokens of texts."""
    return math.ceil(sum(map(len, texts)) / CHARS_PER_TOKEN)


class Delta(NamedTuple):
    """A piece of a reply as it arrives."""

    text: str
    kind: Literal["text", "reasoning"] = "text"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; ``cost_usd`` is None if the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A finished reply. ``finish_reason`` is ``stop`` or ``length``; others are errors."""

    text: str
    provider: str
    model: str
    finish_reason: str
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1
    duration_s: float = 0.0
    recorded: bool = False
    """Whether the reply came from the recorder and its cost was counted before. False if the process
    that paid for it stopped before it counted the cost."""


class CallReport(NamedTuple):
    """How one attempt at a call ended, for metrics.

    Attributes:
        outcome: ``completed``, ``recorded`` (from the recorder, nothing was paid), ``cancelled``, or
            the code of the ``ProviderError``.
        duration_s: Of the attempt, without the time in the queue of the provider.
        usage: The tokens, if known.
        will_retry: Another attempt follows.
    """

    provider: str
    model: str
    outcome: str
    duration_s: float = 0.0
    usage: Usage | None = None
    will_retry: bool = False


ORDINALS_PER_ANSWER: Final = 1_000
"""Distance between the ordinals of calls before and after an answer."""


class CallScope:
    """The owner of a call: one attempt of one node of one execution.

    ``next_ordinal`` numbers the calls of an attempt 0, 1, 2 …; an attempt that is repeated after a
    crash and makes the same calls in the same order gets the recorded replies. An attempt that
    resumes after an answer continues with other numbers.

    Args:
        execution_id: The execution.
        path: The path of the node.
        attempt: The number of the attempt, from 1.
        answers: The number of answers this attempt has received.
        time_left_s: Returns the seconds until the timeout of the attempt, the limit of a wait.
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
        """Return the number of the next call in the attempt."""
        ordinal = self._ordinal
        self._ordinal += 1
        return ordinal


class CallKey(NamedTuple):
    """The identity of one recorded call."""

    execution_id: str
    path: str
    attempt: int
    ordinal: int
    request_hash: str


class Recorder(Protocol):
    """Port: stores replies so that no call is paid for twice; ``storage/`` implements it."""

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        """Return the recorded reply (JSON), or None."""
        ...

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Store a reply, unless one is stored; durable when this returns."""
        ...


class Models(Protocol):
    """Port: streams one reply; the last item is the :class:`ModelReply`, all others are deltas."""

    def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncIterator[Delta | ModelReply]:
        """Call the model.

        Raises:
            ProviderError: The call failed after its retries; deltas already yielded are invalid.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The capabilities of a model that planning and running depend on."""

    small: bool = False
    """Needs the positional schema, one exemplar and token caps (the embedded models)."""
    plans: bool = True
    """Whether the model can write plans; all models can run steps."""
    structured_output: bool = True
    tools: bool = True
    images: bool = True
    """Whether prompts may have images."""
    max_output_tokens: int | None = None
    """The default limit of a reply; None leaves it to the provider."""


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """One provider, as shown to users and to the planner.

    ``models`` is empty for an endpoint configured without a list; then any name is accepted.
    """

    name: str
    kind: str
    available: bool
    reason: str
    how_to_enable: str = ""
    models: tuple[str, ...] = ()
    default_model: str | None = None
    open_models: bool = True
    """Whether names outside ``models`` are accepted (hosted providers add models every month)."""


class Providers(Protocol):
    """Port: the known providers, and the choice of one for a request."""

    def list(self) -> list[ProviderInfo]:
        """Return all known providers, available ones first."""
        ...

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Return the provider and model of a request; None selects the default.

        Raises:
            UnknownProvider, UnavailableProvider, UnknownModel: The message lists the available ones.
        """
        ...

    def profile(self, provider: str, model: str) -> ModelProfile: ...

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        """Return the price in US dollars, or None if unknown."""
        ...


class LocalProvider(Protocol):
    """Port: the embedded model server, one more endpoint that speaks the OpenAI chat protocol.

    Nothing loads before the first :meth:`endpoint`. ``providers/local/models.py`` implements it.
    """

    @property
    def models(self) -> tuple[str, ...]:
        """The available names, the default first."""
        ...

    @property
    def default_model(self) -> str: ...

    @property
    def slots(self) -> int:
        """Calls that a server runs at once; further calls would wait inside the server."""
        ...

    def availability(self) -> tuple[bool, str, str]:
        """Return ``(available, reason, how_to_enable)``; cheap, starts nothing."""
        ...

    async def endpoint(self, model: str) -> tuple[str, str]:
        """Return ``(base_url ending in /v1, api_key)`` of a running server, starting it if needed.

        Raises:
            ProviderError: The model is missing or the server cannot start.
        """
        ...

    def profile(self, model: str) -> ModelProfile: ...

    async def close(self) -> None:
        """Stop the running servers."""
        ...
