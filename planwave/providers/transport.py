"""The HTTP side of model calls: guarded transport, SDK clients, pydantic-ai models.

It imports httpx2 and pydantic-ai; the SDK of a provider is imported at its first call.

The SDKs wait ten minutes for a silent server, accept a truncated stream as complete and buffer a line
of any length. :class:`GuardedTransport` is below every SDK and raises errors in these cases.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
from pydantic_ai.models import Model

from planwave.providers.errors import TransportFault
from planwave.providers.protocols import Api

if TYPE_CHECKING:
    from planwave.providers.catalog import ProviderConfig

_CONNECT_S = 10.0
_MAX_LINE_BYTES = 4 * 1024 * 1024
_ERROR_BYTES = 256 * 1024
"""Bytes read of an error response; the message is at its beginning."""
_MAX_CACHED_MODELS = 64
_END_MARKERS = {"openai": (b"[DONE]",), "local": (b"[DONE]",), "anthropic": (b"message_stop",)}
"""The last message of a complete stream. Some OpenAI-compatible servers omit ``[DONE]``; for these
the finish reason decides."""
_RESPONSE_ENDS = (b"response.completed", b"response.incomplete", b"response.failed")
"""The last messages of OpenAI's responses API, one of which ends a stream."""

_T = TypeVar("_T")

TimeoutFactory = Callable[[float], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True)
class CallDeadlines:
    """Seconds until the first byte, between bytes, and for a whole attempt."""

    first_byte_s: float
    chunk_gap_s: float
    call_s: float


class StreamCut(TransportFault, httpx2.ReadError):
    """The connection ended before the stream did."""


class StreamGarbage(TransportFault, httpx2.DecodingError):
    """The response is not an event stream, or has a line that is too long."""

    code = "stream-garbage"
    retry = False


class Redirected(TransportFault, httpx2.RemoteProtocolError):
    """A redirect; never followed, because the key is for the configured address."""

    code = "redirected"
    retry = False
    is_permanent = True


class ReadDeadlineExceeded(TransportFault, httpx2.ReadTimeout):
    """A deadline passed."""

    retry = False

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport that enforces deadlines, a line limit and a complete end of every response."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        deadlines: CallDeadlines,
        *,
        end_markers: tuple[bytes, ...],
        drop_headers: tuple[str, ...],
        clock: Callable[[], float],
        timeout: TimeoutFactory,
    ) -> None:
        self._inner = inner
        self._deadlines = deadlines
        self._end_markers = end_markers
        self._drop_headers = drop_headers
        self._clock = clock
        self._timeout = timeout

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for name in self._drop_headers:
            request.headers.pop(name, None)
        timer = _DeadlineTimer(self._deadlines, self._clock, self._timeout)
        response = await timer.wait_for(lambda: self._inner.handle_async_request(request))
        if response.has_redirect_location:
            await response.aclose()
            raise Redirected(f"answered {response.status_code}")
        is_stream = response.status_code == 200
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if is_stream and kind in ("application/json", "text/html"):
            await response.aclose()
            raise StreamGarbage(f"answered {kind} instead of an event stream")
        if not isinstance(response.stream, httpx2.AsyncByteStream):
            return response
        markers = self._end_markers if is_stream else ()
        if markers and request.url.path.endswith("/responses"):
            markers = _RESPONSE_ENDS
        max_bytes = None if is_stream else _ERROR_BYTES
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_GuardedBody(response.stream, timer, markers, max_bytes),
            extensions=response.extensions,
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
        else:
            ends, code = self._clock() + self._limits.chunk_gap_s, "chunk-timeout"
        if self._call_ends <= ends:
            ends, code = self._call_ends, "call-timeout"
        left = ends - self._clock()
        if left <= 0:  # a timeout alone never fires on a read that is always ready
            raise ReadDeadlineExceeded(code)
        try:
            async with self._timeout(left):
                return await operation()
        except TimeoutError as error:
            raise ReadDeadlineExceeded(code) from error

    def note_first_byte(self) -> None:
        """Record the first byte of the body."""
        self._first_ends = None


class _GuardedBody(httpx2.AsyncByteStream):
    """A response body with deadlines and checks; an SDK may iterate it again to drain the rest."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        timer: _DeadlineTimer,
        end_markers: tuple[bytes, ...],
        max_bytes: int | None,
    ) -> None:
        self._inner = inner
        self._bytes_left = max_bytes
        self._timer = timer
        self._markers = end_markers
        self._line = 0
        self._tail = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        source = aiter(self._inner)
        while True:
            try:
                chunk = await self._timer.wait_for(lambda: anext(source, None))
            except httpx2.TransportError as error:
                if isinstance(error, TransportFault):
                    raise
                raise StreamCut("the connection broke off") from error
            if chunk is None:
                break
            self._timer.note_first_byte()
            self._check_line_length(chunk)
            self._look_for_end(chunk)
            if self._bytes_left is None:
                yield chunk
                continue
            yield chunk[: self._bytes_left]
            self._bytes_left -= len(chunk)
            if self._bytes_left <= 0:
                break
        if self._markers:
            raise StreamCut("the stream ended without its last message")

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _check_line_length(self, chunk: bytes) -> None:
        first = chunk.find(b"\n")
        line = self._line + (len(chunk) if first < 0 else first)
        if line > _MAX_LINE_BYTES:
            raise StreamGarbage(f"a line of more than {_MAX_LINE_BYTES} bytes")
        self._line = line if first < 0 else len(chunk) - chunk.rfind(b"\n") - 1

    def _look_for_end(self, chunk: bytes) -> None:
        if not self._markers:
            return
        window = self._tail + chunk
        if any(marker in window for marker in self._markers):
            self._markers = ()
        else:
            self._tail = window[-max(map(len, self._markers)) :]


class SdkClient:
    """The SDK client of one connection, with its models."""

    def __init__(
        self,
        connection: ProviderConfig,
        base_url: str | None,
        api_key: str,
        deadlines: CallDeadlines,
        *,
        clock: Callable[[], float],
        timeout: TimeoutFactory,
    ) -> None:
        self._connection = connection
        self._models: dict[tuple[str, Api], Model] = {}
        kind = connection.kind
        self.strict_end = kind in _END_MARKERS
        is_own = connection.name == "openai"
        foreign = () if is_own else ("openai-organization", "openai-project")
        secure = not (base_url or "").lower().startswith("http:")
        transport = GuardedTransport(
            httpx2.AsyncHTTPTransport(
                verify=secure,  # a certificate store takes 30 ms to load and plain HTTP needs none
                trust_env=False,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            ),
            deadlines,
            end_markers=_END_MARKERS.get(kind, ()),
            drop_headers=foreign,
            clock=clock,
            timeout=timeout,
        )
        self._http = httpx2.AsyncClient(
            transport=transport,
            trust_env=False,
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
        )
        self._provider = self._make_provider(base_url, api_key)

    def api(self, *, web_search: bool = False) -> Api:
        """Return the API that a model is called by: OpenAI searches the web only in one of its two."""
        match self._connection.kind:
            case "anthropic":
                return "messages"
            case "openai" if web_search:
                return "responses"
            case _:
                return "chat"

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
        profile = OpenAIModelProfile(json_schema_transformer=None)
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
