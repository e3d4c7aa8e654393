"""Every exception that planwave raises deliberately, by the part that caused it.

::

    PlanwaveError                 root: code, HTTP status, message, hint
    ├── InputError               422  the caller's input is invalid
    │   ├── LimitExceeded        413  a configured limit was exceeded
    │   ├── GraphInvalid         422  a graph document has errors
    │   │   ├── InvalidOperation 422  a change of a plan cannot be applied
    │   │   ├── InvalidAnswer    422  an answer to a request cannot be taken
    │   │   ├── InvalidChanges   422  what a fork is to change cannot be changed so
    │   │   ├── InvalidInputs    422  the inputs of an execution do not fit its graph
    │   │   └── PlanInvalid      422  a model's plan could not be repaired
    │   ├── UnknownProvider, UnavailableProvider, UnknownModel  422
    │   ├── NotFound             404  no plan, execution, node or file of that name
    │   ├── Conflict             409  the request is not possible in the present state
    │   ├── Gone                 410  the requested item no longer exists
    │   ├── PreconditionFailed   412  the item has changed since the caller read it
    │   ├── PreconditionRequired 428  a change must name the version that the caller has read
    │   ├── Unauthorized         401  the token is missing or wrong
    │   ├── Forbidden            403  the Host or Origin is not allowed
    │   └── TooManyRequests      429  too many requests; says when to retry
    │       ├── QueueFull        429  the queue of executions is full
    │       └── QuotaExceeded    429  one access token has as many of something as it may
    ├── SlowConsumer             503  a subscriber fell too far behind; says where to resume
    ├── ShuttingDown             503  the service is shutting down and accepts no new work
    ├── Unreachable              503  no service answers at the address
    ├── NodeError                502  one node failed; its retry policy applies
    │   ├── PermanentError       502  a failure that another attempt cannot change
    │   ├── TemplateError        422  an expression cannot be parsed or resolved
    │   ├── ResultNotJson        502  a node returned a value that cannot be stored
    │   ├── NodeTimeout          502  an attempt ran longer than ``timeoutS``
    │   ├── OutboundError        502  a request to another service was refused or failed
    │   ├── McpError             502  an MCP server did not start, or a call of it failed
    │   └── ProviderError        502  a model call failed after all retries
    ├── ToolError                500  a call of a tool failed; the model sees the message
    ├── ExecutionFailed          502  a run from Python failed; holds its result
    ├── StoreError               503  the store failed to read or write
    │   ├── StaleEpoch           409  an owner that lost the execution tried to append
    │   └── SchemaTooNew         503  a newer planwave wrote the database
    └── InvalidTransition        500  a bug: the driver reported an impossible outcome

Codes are kebab-case and stable; clients branch on ``code``, never on message text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, Protocol

from typing_extensions import TypedDict

_NEVER_RETRIED: Final = frozenset({"invalid-arguments", "rejected", "unknown-tool"})
"""Codes of calls of tools that fail in the same way whenever they are made."""
_MAX_SHOWN: Final = 20
"""How many errors of a graph the message of an exception lists."""


class DiagnosticLike(Protocol):
    """The parts of a diagnostic that an error uses; ``graph.diagnostics.Diagnostic`` has them."""

    @property
    def code(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def hint(self) -> str | None: ...
    def as_json(self) -> Mapping[str, Any]: ...


class ErrorCause(TypedDict):
    """The failure of a nested node, with its own code."""

    node: str
    code: str
    message: str
    hint: NotRequired[str]


class ErrorDocument(TypedDict):
    """Why something failed."""

    code: str
    message: str
    hint: NotRequired[str]
    url: NotRequired[str]
    """The URL whose request failed, without credentials and query."""
    node: NotRequired[str]
    """The node whose failure is the first one of a nested run."""
    cause: NotRequired[ErrorCause]
    """The failure at which a nested run began to fail, however deep it is nested."""


class PlanwaveError(Exception):
    """Root of all exceptions that planwave raises deliberately.

    Attributes:
        code: Stable machine-readable code.
        status_hint: HTTP status for an API response.
        retryable: Whether a node that raises it may be started again by its retry policy.
        message: The error and its location, one sentence.
        hint: How to correct it, or None.
        limit: The name of the limit that was reached, or None.
    """

    code: str = "internal-error"
    status_hint: int = 500
    retryable: bool = True
    limit: str | None = None

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def as_json(self) -> ErrorDocument:
        """Return the form that is stored in events and shown to people: text, whatever a node raised."""
        document: ErrorDocument = {"code": str(self.code), "message": str(self.message or "")}
        if self.hint:
            document["hint"] = str(self.hint)
        return document


def reason_of(error: BaseException) -> str:
    """Return the text of an error; of one of the system without its number: ``Permission denied: 'x'``."""
    if not (isinstance(error, OSError) and error.strerror):
        return str(error)
    return f"{error.strerror}: {error.filename!r}" if error.filename else error.strerror


class InputError(PlanwaveError):
    """The caller's input is invalid."""

    code = "invalid-input"
    status_hint = 422
    retryable = False


class LimitExceeded(InputError):
    """A configured limit was exceeded.

    Attributes:
        value: Its value.
        met: The actual value.
    """

    code = "limit-exceeded"
    status_hint = 413

    def __init__(
        self, limit: str, value: float, met: float, *, what: str = "", hint: str | None = None
    ) -> None:
        of = f" for {what}" if what else ""
        super().__init__(
            f"limit {limit}{of} is {value:.12g}, met {met:.12g}",
            hint=hint or f"shorten the input or raise the limit {limit}",
        )
        self.limit = limit
        self.value = value
        self.met = met


class GraphInvalid(InputError, ValueError):
    """A graph document has errors; ``diagnostics`` holds all findings."""

    code = "graph-invalid"

    def __init__(self, diagnostics: Sequence[DiagnosticLike], message: str | None = None) -> None:
        errors = [d for d in diagnostics if d.severity == "error"]
        super().__init__(
            message or _all_messages(errors) or "the graph is invalid",
            hint=errors[0].hint if errors else None,
        )
        self.diagnostics: tuple[Any, ...] = tuple(diagnostics)


def _all_messages(errors: Sequence[DiagnosticLike]) -> str:
    """Return the messages of several errors as one text, up to a limit."""
    if len(errors) <= 1:
        return "".join(each.message for each in errors)
    listed = [f"({n}) {each.message}" for n, each in enumerate(errors[:_MAX_SHOWN], 1)]
    if len(errors) > _MAX_SHOWN:
        listed.append(f"and {len(errors) - _MAX_SHOWN} more")
    return f"{len(errors)} errors: {'; '.join(listed)}"


class InvalidOperation(GraphInvalid):
    """An operation on a plan cannot be applied; pointers are like ``/operations/2/node/id``."""

    code = "invalid-operation"


class InvalidAnswer(GraphInvalid):
    """An answer to a request cannot be taken: ``invalid-answer``, ``unknown-decision``, ``invalid-form``, ``value-not-editable``."""

    code = "invalid-answer"

    def __init__(self, diagnostics: Sequence[DiagnosticLike], code: str | None = None) -> None:
        super().__init__(diagnostics)
        self.code = code or diagnostics[0].code


class InvalidChanges(GraphInvalid):
    """What a fork is to change cannot be changed so; ``diagnostics`` holds every finding."""

    code = "invalid-changes"


class InvalidInputs(GraphInvalid):
    """The inputs of an execution do not fit what its graph declares; pointers are like ``/inputs/city``."""

    code = "invalid-inputs"


class PlanInvalid(GraphInvalid):
    """The model's plan was still invalid after all repair attempts.

    Attributes:
        diagnostics: Every diagnostic of the last attempt.
        attempts: One record for each attempt: ``{"reply", "finish_reason", "diagnostics"}``.
    """

    code = "plan-invalid"
    retryable = True  # the model may write another plan

    def __init__(
        self, diagnostics: Sequence[DiagnosticLike], attempts: Sequence[Mapping[str, Any]]
    ) -> None:
        errors = [d for d in diagnostics if d.severity == "error"]
        last = _all_messages(errors) or "no usable reply"
        plural = "" if len(attempts) == 1 else "s"
        super().__init__(
            diagnostics,
            f"no valid plan after {len(attempts)} attempt{plural}; the last one: {last}",
        )
        self.attempts = tuple(attempts)
        self.hint = "rephrase the goal, or choose a stronger model"


class UnknownProvider(InputError, ValueError):
    """There is no provider of that name; ``closest`` is the known name closest to it, if one is close."""

    code = "unknown-provider"
    closest: str | None = None


class UnavailableProvider(InputError, ValueError):
    """The provider is known but not configured here; the hint says how to enable it."""

    code = "unavailable-provider"


class UnknownModel(InputError, ValueError):
    """The provider does not offer a model of that name; ``closest`` as in ``UnknownProvider``."""

    code = "unknown-model"
    closest: str | None = None


class NotFound(InputError):
    """No item of that name exists."""

    code = "not-found"
    status_hint = 404


class Conflict(InputError):
    """The request is not possible in the present state."""

    code = "conflict"
    status_hint = 409


class Gone(InputError):
    """The requested item existed and no longer does."""

    code = "gone"
    status_hint = 410


class PreconditionFailed(InputError):
    """The item has changed since the caller read it.

    Attributes:
        current: The present version of the item: the hash of its graph.
    """

    code = "outdated"
    status_hint = 412

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, current: str = ""
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.current = current


class PreconditionRequired(InputError):
    """A change must name the version of the item that the caller has read."""

    code = "precondition-required"
    status_hint = 428


class Unauthorized(InputError):
    """The token of the request is missing or wrong.

    Attributes:
        reason: Why, for the operator's log; the sender is never told.
    """

    code = "unauthorized"
    status_hint = 401

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.reason = reason


class Forbidden(InputError):
    """The Host or Origin of the request is not allowed, or its access token is for something else."""

    code = "forbidden"
    status_hint = 403


class TooManyRequests(InputError):
    """Too many requests; the caller may retry after ``retry_after_s`` seconds."""

    code = "too-many-requests"
    status_hint = 429
    retryable = True

    def __init__(self, message: str, *, retry_after_s: float, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or f"try again in {retry_after_s:.0f} s")
        self.retry_after_s = retry_after_s


class QueueFull(TooManyRequests):
    """The queue of executions waiting to start is full."""

    code = "queue-full"


class QuotaExceeded(TooManyRequests):
    """An access token has as many of something as it may.

    Attributes:
        limit: The name of the limit.
    """

    code = "quota-exceeded"

    def __init__(self, limit: str, message: str, *, retry_after_s: float, hint: str) -> None:
        super().__init__(message, retry_after_s=retry_after_s, hint=hint)
        self.limit = limit


class SlowConsumer(PlanwaveError):
    """A subscriber fell too far behind and was disconnected.

    Attributes:
        cursor: The ``seq`` of the last event it received.
    """

    code = "too-slow"
    status_hint = 503

    def __init__(self, cursor: int) -> None:
        super().__init__(
            f"this subscriber fell too far behind after event {cursor} and was disconnected",
            hint=f"resume with after={cursor}",
        )
        self.cursor = cursor


class ShuttingDown(PlanwaveError):
    """The service is shutting down: it accepts no new work, and its streams end."""

    code = "server-draining"
    status_hint = 503

    def __init__(self) -> None:
        super().__init__(
            "the service is shutting down and accepts no new work", hint="try again in a moment"
        )


class Unreachable(PlanwaveError):
    """No service answers at the address."""

    code = "service-unreachable"
    status_hint = 503

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="is `planwave serve` running there?")


class NodeError(PlanwaveError):
    """One node failed; with ``retryable=False`` its retry policy does not start it again.

    Attributes:
        retry_delay_s: The shortest delay before another attempt; a longer one of the policy applies.
        cause: For the failure of a nested run, the failure of the node at which it began.
    """

    code = "node-failed"
    status_hint = 502
    retry_delay_s: float = 0.0

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
        cause: ErrorCause | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.cause = cause
        if retryable is not None:
            self.retryable = retryable

    def as_json(self) -> ErrorDocument:
        document = super().as_json()
        if self.cause is not None:
            document["cause"] = self.cause
        return document


class PermanentError(NodeError):
    """A failure that another attempt of the node cannot change: it is never retried."""

    retryable = False


class ToolError(PlanwaveError):
    """A call of a tool failed; the model sees the message, and may try something else.

    With ``retryable=False`` it ends a step that calls the tool without a model, whatever its retry policy
    says; so it is by default where the call was rejected, or its arguments do not fit.
    """

    code = "tool-failed"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message, code=code, hint=hint)
        self.retryable = self.code not in _NEVER_RETRIED if retryable is None else retryable


class ExecutionFailed(PlanwaveError):
    """A run from Python failed.

    Attributes:
        result: The ``RunResult``, with status, failures and the results of the nodes that completed.
        failures: The nodes that failed: ``result.failures``.
    """

    code = "execution-failed"
    status_hint = 502

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        result: Any = None,
        failures: Sequence[Any] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.result = result
        self.failures = tuple(failures)


NESTED_FAILED: Final = "nested-run-failed"
"""The code of a [NodeError][planwave.NodeError] if a graph nested in the node failed; the message names the node
that failed first. All other codes are errors of the node itself."""


class TemplateError(NodeError):
    """An expression cannot be parsed, resolved or rendered within its limits."""

    code = "template-error"
    status_hint = 422
    retryable = False


class ResultNotJson(NodeError):
    """A node returned a value that is not JSON and so cannot be stored."""

    code = "result-not-json"
    retryable = False


class NodeTimeout(NodeError, TimeoutError):
    """An attempt took longer than the node's ``timeoutS``."""

    code = "node-timeout"


class OutboundError(NodeError):
    """A request to a URL was refused before it was sent, or failed.

    Attributes:
        url: The URL that was to be requested, without credentials and query; None where it is unknown.
    """

    code = "host-unreachable"
    url: str | None = None

    def as_json(self) -> ErrorDocument:
        """Return the form that is stored, with the URL."""
        document = super().as_json()
        if self.url is not None:
            document["url"] = self.url
        return document


class McpError(NodeError):
    """An MCP server could not be started or reached, or a call of one of its tools failed."""

    code = "mcp-call-failed"


class ProviderError(NodeError):
    """A provider call failed after all retries.

    Attributes:
        provider: Provider name.
        model: Model name, or None if no model was called.
        status: HTTP status of the response, or None.
        retry_after_s: Seconds the provider asks to wait, or None.
        attempts: If it ended the making of a plan, the attempts before it, as in
            [PlanInvalid][planwave.PlanInvalid].
    """

    code = "provider-error"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        model: str | None = None,
        code: str | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint, retryable=retryable)
        self.provider = provider
        self.model = model
        self.status = status
        self.retry_after_s = retry_after_s
        self.attempts: tuple[dict[str, Any], ...] = ()


class StoreError(PlanwaveError):
    """The store failed to read or write."""

    code = "store-error"
    status_hint = 503


class StaleEpoch(StoreError):
    """An owner that has lost the execution (its epoch is over) tried to append."""

    code = "late-writer"
    status_hint = 409


class SchemaTooNew(StoreError):
    """A newer planwave wrote the database."""

    code = "schema-too-new"
    retryable = False


class InvalidTransition(PlanwaveError):
    """The driver reported an impossible outcome to the schedule: a bug in planwave."""

    code = "kernel-misuse"
    retryable = False
