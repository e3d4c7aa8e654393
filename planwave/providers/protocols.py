"""Requests, replies and ports of model calls, independent of providers and SDKs.

Nodes and the planner use the port ``Models``; ``providers/client.py`` implements it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Protocol

from planwave.events.usage import PART_TOKENS
from planwave.graph.plan import canonical_json

ProviderKind = Literal["openai", "anthropic", "openai-compatible", "local"]
Api = Literal["chat", "responses", "messages"]
"""The API of a provider by which a model is called: OpenAI's two, and Anthropic's."""


class ToolSpec(NamedTuple):
    """A tool that a model may call; ``parameters`` is the JSON Schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    @property
    def texts(self) -> tuple[str, ...]:
        """What the model reads of it."""
        return (self.name, self.description, canonical_json(dict(self.parameters)))


class ToolCall(NamedTuple):
    """A call that a model asks for; ``arguments`` is its JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One turn of a conversation.

    Attributes:
        role: Who speaks; ``system`` only after the first turn; ``tool`` gives the result of the call ``tool_call_id`` to the model.
        text: The text of the turn; of a tool, its result as text.
        images: http(s) or base64 ``data:`` URLs, only in turns of the user.
        tool_calls: The calls that a turn of the assistant asks for.
        tool_call_id: The call whose result a ``tool`` turn holds.
        tool_name: The tool of that call.
        is_error: The call failed or was refused; only in ``tool`` turns.
        native: A turn of the assistant in the form of ``ModelReply.native``, with its reasoning; text
            and tool calls are in it too. It is sent where it can be, and is no part of the identity.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    images: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    native: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call.

    ``schema`` requests a JSON reply (JSON Schema, object at the root). ``messages`` are the
    conversation so far; ``prompt`` follows as the next turn of the user, and may be empty if the
    conversation ends with one. The first ``fixed_chars`` characters of ``prompt`` are, with ``system``,
    the same in many calls: a provider may keep what it computed for them. It changes no reply.
    A reply may call ``tools`` instead of, or besides, giving text, and has to with ``must_call``; ``web_search`` lets the provider
    search the web while it replies. ``grammar`` (GBNF) is the form of the text, for models that can keep
    to one (``ModelProfile``).
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
    fixed_chars: int = 0
    tools: tuple[ToolSpec, ...] = ()
    web_search: bool = False
    grammar: str | None = None
    must_call: bool = False

    @property
    def fixed_beginning(self) -> str:
        """The part of ``prompt`` that many calls begin with."""
        return self.prompt[: self.fixed_chars]

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that the model may call."""
        return tuple(tool.name for tool in self.tools)

    @property
    def tool_results(self) -> tuple[PromptMessage, ...]:
        """The results of tools in the conversation: ``tool_name``, ``text``, ``is_error``."""
        return tuple(message for message in self.messages if message.role == "tool")

    @property
    def images(self) -> tuple[str, ...]:
        """The images of all turns."""
        return tuple(url for message in self.messages for url in message.images)

    @property
    def texts(self) -> tuple[str, ...]:
        """All text of the request: also what it says of tools and their calls."""
        calls = (call for message in self.messages for call in message.tool_calls)
        return (
            self.system or "",
            *(message.text for message in self.messages),
            self.prompt,
            *(text for call in calls for text in (call.name, call.arguments)),
            *(text for tool in self.tools for text in tool.texts),
        )

    def hash(self) -> str:
        """Return the identity of the call: sha256 in canonical JSON over every field that forms the reply.

        Fields added later count only if present, so that calls recorded before are still found.
        """
        fields = asdict(self)
        del fields["fixed_chars"]
        for name in ("messages", "tools", "web_search", "grammar", "must_call"):
            if not fields[name]:
                del fields[name]
        for message in fields.get("messages", ()):
            _drop_absent_parts(message)
        return hashlib.sha256(canonical_json(fields).encode("utf-8")).hexdigest()


def _drop_absent_parts(message: dict[str, Any]) -> None:
    """Leave out of the identity what a turn without tools does not have, and its native form."""
    del message["native"]
    for name in ("tool_calls", "tool_call_id", "tool_name", "is_error"):
        if not message[name]:
            del message[name]


class CallSettings(NamedTuple):
    """Settings of a model call; None leaves a setting to the request."""

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None

    def of(self, request: ModelRequest) -> ModelRequest:
        """Return a copy of a request with these settings."""
        changes: Mapping[str, Any] = self._asdict()
        return replace(request, **{k: v for k, v in changes.items() if v is not None})


UNSET: Final = CallSettings()
"""Leaves every setting to the request."""

CHARS_PER_TOKEN: Final = 4


def text_tokens(*texts: str) -> int:
    """Estimate the number of tokens of texts."""
    return math.ceil(sum(map(len, texts)) / CHARS_PER_TOKEN)


EMBEDDED: Final = "local"
"""The name of the provider of the embedded model."""
MAX_RESERVED_REPLY: Final = 4_096
"""The most tokens that a budget reserves for a reply; few replies are longer."""


def reserved_reply(max_tokens: int | None) -> int:
    """Return the tokens that a budget reserves for a reply; None is a call without a limit."""
    return MAX_RESERVED_REPLY if max_tokens is None else min(max_tokens, MAX_RESERVED_REPLY)


class Delta(NamedTuple):
    """A piece of a reply as it arrives; ``discarded`` takes back the text so far, which was none."""

    text: str
    kind: Literal["text", "reasoning", "discarded"] = "text"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; ``cost_usd`` is None if the price is unknown.

    ``input_tokens`` are all tokens of the prompt: those read from the provider's cache, those written
    to it, and the rest. ``reasoning_tokens`` are those of ``output_tokens`` that the model thought with,
    where its provider says so.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the usage as events and records hold it; counts of ``PART_TOKENS`` that are 0 are left out."""
        fields = asdict(self)
        for name in PART_TOKENS:
            if not fields[name]:
                del fields[name]
        return fields


class Source(NamedTuple):
    """A page that a reply cites."""

    url: str
    title: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A finished reply. ``finish_reason`` is ``stop`` or ``length``; others are errors.

    ``text`` may be empty where there are ``tool_calls``. ``native`` is the reply with all its parts as
    JSON, reasoning and its signatures too, in the form of pydantic-ai's messages; None for plain text.
    """

    text: str
    provider: str
    model: str
    finish_reason: str
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1
    duration_s: float = 0.0
    tool_calls: tuple[ToolCall, ...] = ()
    sources: tuple[Source, ...] = ()
    native: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    """What the log says of the call, such as a tool that the provider does not take; not recorded."""
    recorded: bool = False
    """Whether the reply came from the recorder and its cost was counted before. False if the process
    that paid for it stopped before it counted the cost."""
    response_id: str = ""
    """The provider's id of the reply; not recorded."""
    response_model: str = ""
    """The model that the provider says replied, such as a dated version; not recorded."""


class CallReport(NamedTuple):
    """How one attempt at a call ended, for metrics and traces.

    Attributes:
        outcome: ``completed``, ``recorded`` (nothing was paid), ``cancelled``, or the code of the error.
        duration_s: Of the attempt, without the time in the queue of the provider.
        reply: The complete reply that was paid for; None without one.
        will_retry: Another attempt follows.
        first_token_s: To the first text of the reply, reasoning too, or the end of one that only calls tools.
        server: The URL of the server; None if no request was made.
        retry_after_s: How long the provider asks to wait; None if it does not.
        execution_id, path: What called; None outside of an execution, such as for a plan.
        number: The number of the attempt at this call, from 1.
    """

    provider: str
    model: str
    outcome: str
    duration_s: float = 0.0
    reply: ModelReply | None = None
    will_retry: bool = False
    first_token_s: float | None = None
    server: str | None = None
    retry_after_s: float | None = None
    execution_id: str | None = None
    path: str | None = None
    number: int = 1


ORDINALS_PER_ANSWER: Final = 1_000
"""Distance between the ordinals of calls before and after an answer."""


class CallScope:
    """The owner of a call: one attempt of one node of one execution, with one scope for all its calls.

    ``next_ordinal`` numbers the calls of an attempt 0, 1, 2 …; an attempt that is repeated after a
    crash and makes the same calls in the same order gets the recorded replies. An attempt that
    resumes after an answer continues with other numbers. Calls that are made side by side get their
    numbers beforehand, in a fixed order, and each its own ``at``.

    Args:
        execution_id: The execution.
        path: The path of the node.
        attempt: The number of the attempt, from 1.
        answers: The number of answers this attempt has received.
        time_left_s: Returns the seconds until the timeout of the attempt, the limit of a wait.

    Attributes:
        record_failures: Whether the next call is recorded also if it fails: another call follows that
            would not be made if this one succeeded after a crash.
        idle: Returns a block around a wait of some seconds or more, in which the execution of the call
            needs no running place.
        loading: Returns a block around the loading of an SDK or a model, which takes no time of the attempt.
        reserve: Called before a call that is paid for; it waits until the budget has what the call may use.
        warn: Called with why a call is not answered yet: it waits for the provider, or is made again.
    """

    __slots__ = (
        "_is_served",
        "_ordinal",
        "_whole",
        "attempt",
        "execution_id",
        "idle",
        "loading",
        "path",
        "record_failures",
        "reserve",
        "time_left_s",
        "warn",
    )

    def __init__(
        self,
        execution_id: str,
        path: str,
        attempt: int,
        answers: int = 0,
        time_left_s: Callable[[], float] = lambda: math.inf,
        idle: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        loading: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.execution_id = execution_id
        self.path = path
        self.attempt = attempt
        self.idle = idle
        self.loading = loading
        self.time_left_s = time_left_s
        self.record_failures = False
        self.reserve: Callable[[ModelRequest], Awaitable[None]] | None = None
        self.warn: Callable[[str], None] | None = None
        self._ordinal = answers * ORDINALS_PER_ANSWER
        self._whole = self
        self._is_served: bool | None = None

    @property
    def is_served(self) -> bool | None:
        """Whether calls may be served from records; None before the first call.

        Not if the attempt began without records, nor after a call that differs from the recorded one.
        """
        return self._whole._is_served

    @is_served.setter
    def is_served(self, is_served: bool) -> None:
        self._whole._is_served = is_served

    def at(self, ordinal: int) -> CallScope:
        """Return the scope of one call, whose number was taken by ``next_ordinal`` before."""
        scope = CallScope(
            self.execution_id,
            self.path,
            self.attempt,
            time_left_s=self.time_left_s,
            idle=self.idle,
            loading=self.loading,
        )
        scope._whole, scope._ordinal = self._whole, ordinal
        scope.record_failures, scope.reserve = self.record_failures, self.reserve
        scope.warn = self.warn
        return scope

    def next_ordinal(self) -> int:
        """Return the number of the next call in the attempt."""
        ordinal = self._ordinal
        self._ordinal += 1
        return ordinal


class CallTrace(Protocol):
    """Port: the trace of one attempt at a call; what makes it opens it when the attempt begins."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers that hand the trace context to the provider."""
        ...

    def end(self, report: CallReport) -> None:
        """End the trace with the attempt."""
        ...


OpenCallTrace = Callable[[ModelRequest, CallScope | None], CallTrace]
"""Opens the trace of an attempt at a call that is about to be made."""


NO_ATTEMPT: Final = 0
"""The attempt in the key of a note about all attempts of a node; a fork finds those of its parents."""
CONTINUES: Final = "continues"
"""The field that marks the note of an attempt that goes on in a fork."""


class CallKey(NamedTuple):
    """The identity of one recorded call."""

    execution_id: str
    path: str
    attempt: int
    ordinal: int
    request_hash: str


class Recorder(Protocol):
    """Port: stores the replies of external calls, so that none is paid for or acts twice.

    A reply is JSON; a failure may be stored in its place. ``storage/`` implements it.
    """

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        """Return the recorded reply, or None."""
        ...

    async def has_calls(self, key: CallKey) -> bool:
        """Return whether any call of the attempt is recorded that makes a call."""
        ...

    async def has_other(self, key: CallKey) -> bool:
        """Return whether another request is recorded under the number of a call.

        What is recorded beside a call, under its hash with more behind it, is of the same request.
        """
        ...

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Store a reply, unless one is stored; durable when this returns."""
        ...


class Models(Protocol):
    """Port: streams one reply; the last item is the ``ModelReply``, all others are deltas."""

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
    """Whether the model can call tools."""
    web_search: bool = False
    """Whether the provider can search the web while the model replies."""
    images: bool = True
    """Whether prompts may have images."""
    max_output_tokens: int | None = None
    """The default limit of a reply; None leaves it to the provider."""
    continues: bool = False
    """Whether the reply to a conversation that ends with the model's own text is the rest of that text."""
    grammars: bool = False
    """Whether the model can be held to a grammar."""
    cached_tokens: int | None = None
    """The least tokens of a beginning of prompts that the provider keeps in a cache; None where it keeps none."""


@dataclass(frozen=True, slots=True)
class ModelDownload:
    """A download of a model that is going on, maybe in another process: bytes so far, and of all."""

    model: str
    done_bytes: int
    size_bytes: int


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
    download: ModelDownload | None = None


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


def fallback_reason(providers: Providers) -> str | None:
    """Return why the embedded model is the default; None where another provider is available."""
    others = [info for info in providers.list() if info.kind != "local"]
    if any(info.available for info in others):
        return None
    hosted = [info.reason for info in others if info.kind in ("openai", "anthropic")]
    no_key = all(reason.endswith("is not set") for reason in hosted)
    return "no API key is set" if no_key else "no other provider is available"


def highest_price(providers: Providers, provider: str, model: str, tokens: Usage) -> float | None:
    """Return the most that a call may cost: its whole prompt may be written to the provider's cache."""
    least = providers.profile(provider, model).cached_tokens
    if least is not None and tokens.input_tokens >= least:
        tokens = replace(tokens, cache_write_tokens=tokens.input_tokens)
    return providers.price(provider, model, tokens)


class LocalProvider(Protocol):
    """Port: the embedded model server, one more endpoint that speaks the OpenAI chat protocol.

    Nothing loads before the first ``endpoint``. ``providers/local/models.py`` implements it.
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

    def running_download(self) -> ModelDownload | None:
        """Return how far a download of the default model is, None if there is none."""
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

    async def prepare(self, request: ModelRequest) -> None:
        """Load what an earlier call computed for the fixed beginning of a request, if it is kept.

        Called after ``endpoint``, before the call. It saves time only, and never fails.
        """
        ...

    def profile(self, model: str) -> ModelProfile: ...

    async def close(self) -> None:
        """Stop the running servers."""
        ...
