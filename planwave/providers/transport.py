"""The HTTP side of model calls: guarded transport, SDK clients, pydantic-ai models.

It imports httpx2 and pydantic-ai; the SDK of a provider is imported at its first call.

The SDKs wait ten minutes for a silent server, accept a truncated stream as complete and buffer a line
of any length. ``GuardedTransport`` is below every SDK and raises errors in these cases. It fits
each request to what the server takes, and gives the SDKs each stream in the form that they expect.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import httpx2
from pydantic_ai.models import Model

from planwave.providers.capabilities import Capabilities, CapabilityTable, default_api
from planwave.providers.errors import ResponseError
from planwave.providers.protocols import Api
from planwave.providers.streams.compression import Decompressor
from planwave.providers.streams.errors import (
    ReadDeadlineExceeded,
    Redirected,
    StreamCut,
    StreamGarbage,
)
from planwave.providers.streams.events import EventReader
from planwave.providers.streams.readers import READERS, StreamReader, body_error
from planwave.providers.streams.tool_calls import offered_names

if TYPE_CHECKING:
    from planwave.providers.registry import ProviderConfig

_CONNECT_S = 10.0
_ERROR_BYTES = 256 * 1024
"""Bytes read of an error response; the message is at its beginning."""
_MAX_CACHED_MODELS = 64
_STRICT_KINDS = ("openai", "local", "anthropic")
"""Whose streams have a last event. Some OpenAI-compatible servers omit ``[DONE]``; for these the finish
reason decides."""
_EXCHANGE_HEADER = "x-planwave-exchange"
_FIELDS = (b":", b"data", b"event", b"id", b"retry")
"""What a line of an event stream begins with."""
_BOM = b"\xef\xbb\xbf"

_T = TypeVar("_T")

TimeoutFactory = Callable[[float], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True)
class CallDeadlines:
    """Seconds until the first byte, between bytes, and for a whole attempt."""

    first_byte_s: float
    chunk_gap_s: float
    call_s: float


@dataclass(slots=True)
class Exchange:
    """The requests of one attempt, and what their responses report; the SDKs pass neither on.

    Attributes:
        model: The model that is called.
        api: The API by which it is called.
        capabilities: What the server takes of the model.
        headers: The header by which a request is known as one of this exchange; it is not sent.
        sent: The body of the last request as it was sent.
        readers: The readers of the streams that have begun.
    """

    model: str
    api: Api
    capabilities: Capabilities
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    sent: Mapping[str, Any] = field(default_factory=dict[str, Any])
    readers: list[StreamReader] = field(default_factory=list[StreamReader])


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport that enforces deadlines, a line limit and a complete end of every response.

    Args:
        inner: Sends the requests.
        deadlines: The deadlines of each response.
        api: The API of requests outside of an exchange.
        must_end: Whether a stream without its last event is cut.
        drop_headers: Headers that are not sent.
        clock: A monotonic clock, seconds.
        timeout: Limits the time of one wait.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        deadlines: CallDeadlines,
        *,
        api: Api = "chat",
        must_end: bool = True,
        drop_headers: tuple[str, ...] = (),
        clock: Callable[[], float],
        timeout: TimeoutFactory,
    ) -> None:
        self._inner = inner
        self._deadlines = deadlines
        self._api: Api = api
        self._must_end = must_end
        self._drop_headers = drop_headers
        self._clock = clock
        self._timeout = timeout
        self._exchanges: dict[str, Exchange] = {}
        self._numbers = count()

    @contextmanager
    def exchange(self, model: str, api: Api, capabilities: Capabilities) -> Generator[Exchange]:
        """Open an exchange; requests with its headers belong to it."""
        number = str(next(self._numbers))
        exchange = Exchange(model, api, capabilities, {_EXCHANGE_HEADER: number})
        self._exchanges[number] = exchange
        try:
            yield exchange
        finally:
            del self._exchanges[number]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        number = request.headers.pop(_EXCHANGE_HEADER, "")
        api: Api = "responses" if request.url.path.endswith("/responses") else self._api
        exchange = self._exchanges.get(number) or Exchange("", api, Capabilities())
        request = self._fitted(request, exchange)
        timer = _DeadlineTimer(self._deadlines, self._clock, self._timeout)
        response = await timer.wait_for(lambda: self._inner.handle_async_request(request))
        if response.has_redirect_location:
            await response.aclose()
            raise Redirected(f"answered {response.status_code}")
        if not isinstance(response.stream, httpx2.AsyncByteStream):
            return response
        is_stream = response.status_code == 200 and exchange.sent.get("stream", True)
        headers = response.headers.copy()
        try:
            decompressor = Decompressor(headers.pop("content-encoding", ""))
        except StreamGarbage:
            await response.aclose()
            raise
        if decompressor:
            headers.pop("content-length", None)
        body: httpx2.AsyncByteStream = _GuardedBody(
            response.stream, timer, decompressor, None if is_stream else _ERROR_BYTES
        )
        if is_stream:
            reader = READERS[exchange.api](
                offered_names(exchange.sent),
                exchange.capabilities.finish_reasons,
                exchange.capabilities.usage,
                must_end=self._must_end,
            )
            exchange.readers.append(reader)
            headers["content-type"] = "text/event-stream"
            body = _EventBody(body, reader)
        return httpx2.Response(
            response.status_code, headers=headers, stream=body, extensions=response.extensions
        )

    def _fitted(self, request: httpx2.Request, exchange: Exchange) -> httpx2.Request:
        """Return a request as this server takes it."""
        for name in self._drop_headers:
            request.headers.pop(name, None)
        request.headers["accept-encoding"] = "identity"
        try:
            body: Any = json.loads(request.content)
        except ValueError:
            return request
        exchange.sent = fitted_body(body, exchange.api, exchange.capabilities)
        if exchange.sent == body:
            return request
        headers = request.headers.copy()
        headers.pop("content-length", None)
        return httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            content=json.dumps(exchange.sent).encode(),
            extensions=request.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _DeadlineTimer:
    """The deadlines of one attempt."""

    def __init__(
        self, deadlines: CallDeadlines, clock: Callable[[], float], timeout: TimeoutFactory
    ) -> None:
        self._limits = deadlines
        self._clock = clock
        self._timeout = timeout
        self._call_ends = clock() + deadlines.call_s
        self._first_ends: float | None = clock() + deadlines.first_byte_s

    async def wait_for(self, operation: Callable[[], Awaitable[_T]]) -> _T:
        """Wait for the next bytes; time that the consumer takes between calls does not count."""
        if self._first_ends is not None:
            ends, code = self._first_ends, "first-byte-timeout"
            limit_s = self._limits.first_byte_s
        else:
            limit_s, code = self._limits.chunk_gap_s, "chunk-timeout"
            ends = self._clock() + limit_s
        if self._call_ends <= ends:
            ends, code, limit_s = self._call_ends, "call-timeout", self._limits.call_s
        remaining_s = ends - self._clock()
        if remaining_s <= 0:  # a timeout alone never fires on a read that is always ready
            raise ReadDeadlineExceeded(code, limit_s)
        try:
            async with self._timeout(remaining_s):
                return await operation()
        except TimeoutError as error:
            raise ReadDeadlineExceeded(code, limit_s) from error

    def note_first_byte(self) -> None:
        """Record the first byte of the body."""
        self._first_ends = None


class _GuardedBody(httpx2.AsyncByteStream):
    """A response body with deadlines, without compression; an SDK may iterate it again to drain the rest."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        timer: _DeadlineTimer,
        decompressor: Decompressor,
        max_bytes: int | None,
    ) -> None:
        self._inner = inner
        self._bytes_left = max_bytes
        self._timer = timer
        self._decompressor = decompressor

    async def __aiter__(self) -> AsyncIterator[bytes]:
        source = aiter(self._inner)
        while True:
            try:
                chunk = await self._timer.wait_for(lambda: anext(source, None))
            except httpx2.TransportError as error:
                if isinstance(error, ResponseError):
                    raise
                raise StreamCut("the connection broke off") from error
            if chunk is None:
                return
            self._timer.note_first_byte()
            for piece in self._decompressor.feed(chunk):
                if self._bytes_left is None:
                    yield piece
                    continue
                yield piece[: self._bytes_left]
                self._bytes_left -= len(piece)
                if self._bytes_left <= 0:
                    return

    async def aclose(self) -> None:
        await self._inner.aclose()


class _EventBody(httpx2.AsyncByteStream):
    """An event stream in the form that the SDKs expect; what is none, by its first bytes, is an error."""

    def __init__(self, inner: httpx2.AsyncByteStream, reader: StreamReader) -> None:
        self._inner = inner
        self._reader = reader
        self._events = EventReader()
        self._pieces = self._read()

    def __aiter__(self) -> AsyncIterator[bytes]:
        # The SDK of OpenAI iterates again, for what follows the last event that it reads.
        return self._pieces

    async def _read(self) -> AsyncIterator[bytes]:
        beginning: bytes | None = b""
        async for chunk in self._inner:
            if beginning is not None:
                beginning += chunk
                if not (start := beginning.removeprefix(_BOM).lstrip()):
                    continue
                if not any(start.startswith(field[: len(start)]) for field in _FIELDS):
                    raise await self._body_error(beginning)
                chunk, beginning = beginning, None
            for event in self._events.feed(chunk):
                for piece in self._reader.read(event):
                    yield piece
        for event in self._events.end():
            for piece in self._reader.read(event):
                yield piece
        self._reader.end()

    async def _body_error(self, beginning: bytes) -> ResponseError:
        """Return what a body that is no event stream says."""
        raw = beginning
        async for chunk in self._inner:
            raw += chunk
            if len(raw) > _ERROR_BYTES:
                break
        text = raw[:_ERROR_BYTES].removeprefix(_BOM).decode("utf-8", "replace")
        return body_error(text)

    async def aclose(self) -> None:
        await self._inner.aclose()


class SdkClient:
    """The SDK client of one connection, with its models."""

    def __init__(
        self,
        connection: ProviderConfig,
        base_url: str | None,
        api_key: str,
        deadlines: CallDeadlines,
        capabilities: CapabilityTable | None = None,
        *,
        clock: Callable[[], float],
        timeout: TimeoutFactory,
    ) -> None:
        self._connection = connection
        self._models: dict[tuple[str, Api], Model] = {}
        kind = connection.kind
        self.strict_end = kind in _STRICT_KINDS
        is_own = connection.name == "openai"
        foreign = () if is_own else ("openai-organization", "openai-project")
        secure = not (base_url or "").lower().startswith("http:")
        self._transport = GuardedTransport(
            httpx2.AsyncHTTPTransport(
                verify=secure,  # a certificate store takes 30 ms to load and plain HTTP needs none
                trust_env=False,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            ),
            deadlines,
            api=self.api(),
            must_end=self.strict_end,
            drop_headers=foreign,
            clock=clock,
            timeout=timeout,
        )
        self._http = httpx2.AsyncClient(
            transport=self._transport,
            trust_env=False,
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
        )
        self._provider = self._make_provider(base_url, api_key)
        self.capabilities = capabilities or CapabilityTable(kind, connection.settings)

    @property
    def base_url(self) -> str:
        """The URL that requests go to, that of the provider where none is set."""
        return str(self._provider.base_url)

    def api(self, *, web_search: bool = False) -> Api:
        """Return the API that a model is called by: OpenAI searches the web only in one of its two."""
        if web_search and self._connection.kind == "openai":
            return "responses"
        return default_api(self._connection.kind)

    @contextmanager
    def exchange(self, model: str, *, web_search: bool = False) -> Generator[Exchange]:
        """Open the exchange of one attempt at a call."""
        api = self.api(web_search=web_search)
        with self._transport.exchange(model, api, self.capabilities.of(api, model)) as exchange:
            yield exchange

    def model(self, name: str, *, web_search: bool = False) -> Model:
        """Return the pydantic-ai model of this name; cached."""
        key = (name, self.api(web_search=web_search))
        model = self._models.get(key)
        if model is None:
            if len(self._models) >= _MAX_CACHED_MODELS:
                self._models.clear()
            model = self._models[key] = self._make_model(*key)
        return model

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    def _make_provider(self, base_url: str | None, api_key: str) -> Any:
        common: Mapping[str, Any] = {
            "api_key": api_key,
            "http_client": self._http,
            "max_retries": 0,
            "timeout": httpx2.Timeout(None, connect=_CONNECT_S),
        }
        match self._connection.kind:
            case "anthropic":
                # Lazy: test_a_call_loads_no_sdk_of_another_provider
                from anthropic import AsyncAnthropic
                from pydantic_ai.providers.anthropic import AnthropicProvider

                url = base_url or "https://api.anthropic.com"
                is_own = self._connection.name == "anthropic"
                headers = None if is_own else _headers_without_custom(api_key)
                # The SDK's own tracing would replace the trace context of the call by the caller's.
                client = AsyncAnthropic(
                    base_url=url,
                    default_headers=headers,
                    open_telemetry={"traces": False},
                    **common,
                )
                return AnthropicProvider(anthropic_client=client)
            case "openai":
                # Lazy: test_a_call_loads_no_sdk_of_another_provider
                from openai import AsyncOpenAI
                from pydantic_ai.providers.openai import OpenAIProvider

                url = base_url or "https://api.openai.com/v1"
                return OpenAIProvider(openai_client=AsyncOpenAI(base_url=url, **common))
            case _:
                # Lazy: test_a_call_loads_no_sdk_of_another_provider
                from openai import AsyncOpenAI
                from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

                client = AsyncOpenAI(base_url=base_url, **common)
                return OpenAICompatibleProvider(self._connection.name, openai_client=client)

    def _make_model(self, name: str, api: Api) -> Model:
        if api == "messages":
            # Lazy: test_a_call_loads_no_sdk_of_another_provider
            from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings

            # A search that a program of the model makes gives no citations.
            callers = AnthropicModelSettings(anthropic_web_tools_allowed_callers=["direct"])
            return AnthropicModel(name, provider=self._provider, settings=callers)
        # Lazy: test_a_call_loads_no_sdk_of_another_provider
        from pydantic_ai.models.openai import (
            OpenAIChatModel,
            OpenAIResponsesModel,
            OpenAIResponsesModelSettings,
        )
        from pydantic_ai.profiles.openai import OpenAIModelProfile

        # Send schemas unchanged: the default transformer empties open objects.
        # Reasoning in the text is told by `reply_text.py`, whatever its tags and how they arrive.
        profile = OpenAIModelProfile(json_schema_transformer=None, thinking_tags=("\0", "\0"))
        if api == "responses":
            # The responses API stores replies unless told not to; the chat API stores none.
            settings = OpenAIResponsesModelSettings(openai_store=False)
            return OpenAIResponsesModel(
                name, provider=self._provider, profile=profile, settings=settings
            )
        if self._connection.kind != "openai":
            # Other servers support neither strict schemas nor the newer name of the token limit.
            profile["supports_json_schema_output"] = True
            profile["openai_supports_strict_tool_definition"] = False
            profile["openai_chat_supports_max_completion_tokens"] = False
        return OpenAIChatModel(name, provider=self._provider, profile=profile)


def _headers_without_custom(api_key: str) -> dict[str, Any]:
    """Return headers that undo ``ANTHROPIC_CUSTOM_HEADERS``, which is for Anthropic's service."""
    # Lazy: test_a_call_loads_no_sdk_of_another_provider
    from anthropic import Omit

    lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
    names = [name.strip() for name, colon, _ in (line.partition(":") for line in lines) if colon]
    key = f"Bearer {api_key}"
    return {name: key if name.lower() == "authorization" else Omit() for name in names}


_TOKEN_FIELDS: Final = ("max_tokens", "max_completion_tokens")


def fitted_body(body: Mapping[str, Any], api: Api, capabilities: Capabilities) -> Mapping[str, Any]:
    """Return the body of a request as a server takes it; the same one where it fits.

    Only chat completions have options that other servers do not take.
    """
    if api != "chat":
        return body
    fitted = dict(body)
    if not capabilities.stream_usage:
        fitted.pop("stream_options", None)
    for name in _TOKEN_FIELDS:
        if name in fitted and name != capabilities.max_tokens_field:
            fitted[capabilities.max_tokens_field] = fitted.pop(name)
            break
    if not capabilities.reasoning_effort:
        fitted.pop("reasoning_effort", None)
    if not capabilities.required_tool_choice and fitted.get("tool_choice") not in (
        None, "auto", "none",
    ):  # fmt: skip
        fitted["tool_choice"] = "auto"
    if capabilities.system_role == "developer":
        turns = cast("list[dict[str, Any]]", body.get("messages", []))
        fitted["messages"] = [
            {**turn, "role": "developer"} if turn.get("role") == "system" else turn
            for turn in turns
        ]
    return fitted if fitted != body else body
