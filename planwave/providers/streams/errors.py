"""What the transport finds wrong with a response, in classes that the SDKs let through."""

from __future__ import annotations

import httpx2

from planwave.providers.errors import ResponseError


class StreamCut(ResponseError, httpx2.ReadError):
    """The connection ended before the stream did."""


class StreamGarbage(ResponseError, httpx2.DecodingError):
    """The response is not an event stream, or has a line that is too long.

    Attributes:
        content: The text that came in its place, else what is wrong with it.
    """

    code = "stream-garbage"
    retry = False

    def __init__(self, message: str, content: str = "") -> None:
        super().__init__(message)
        self.content = content or message


class ReportedError(ResponseError, httpx2.DecodingError):
    """An error that the server reports with status 200: as the body, or as an event of the stream.

    Attributes:
        body: The error, as JSON or as text.
    """

    code = "provider-error"

    def __init__(self, body: object) -> None:
        super().__init__("the server reports an error with status 200")
        self.body = body


class Redirected(ResponseError, httpx2.RemoteProtocolError):
    """A redirect; never followed, because the key is for the configured address."""

    code = "redirected"
    retry = False
    is_permanent = True


class ReadDeadlineExceeded(ResponseError, httpx2.ReadTimeout):
    """A deadline passed."""

    retry = False

    def __init__(self, code: str, limit_s: float) -> None:
        super().__init__(code)
        self.code, self.limit_s = code, limit_s
