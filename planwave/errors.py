"""Every exception planwave raises on purpose, and whose fault it is.

::

    PlanwaveError                 root: code, HTTP status, message, hint
    ├── InputError        422     what the caller handed in
    │   ├── LimitExceeded 413     a configured limit was passed
    │   ├── GraphInvalid  422     a graph document with error diagnostics
    │   ├── PlanInvalid   422     a model's plan that could not be repaired
    │   ├── UnknownProvider / UnavailableProvider / UnknownModel 422
    │   ├── NotFound      404     no plan, execution, node or file of that name
    │   ├── Conflict      409     right request, wrong moment
    │   ├── Gone          410     what was asked for is over
    │   ├── PreconditionFailed      412     what the caller builds upon has changed meanwhile
    │   ├── Unauthorized  401     no token, or not the right one
    │   ├── Forbidden     403     a host or an origin that is not allowed
    │   └── Busy          429     too much at once; says when to come back
    │       └── QueueFull 429     as many executions wait as may
    ├── SlowConsumer                   a watcher fell too far behind; says where to go on
    ├── ShuttingDown          503     the service is going down and takes nothing new
    ├── Unreachable       503     no service answers where one was expected
    ├── NodeError                 one node of one execution; says whether trying again may help
    │   ├── TemplateError         an expression that cannot be parsed or resolved
    │   ├── ResultNotJson         a node returned what cannot be stored
    │   ├── NodeTimeout           an attempt ran past ``timeoutS``
    │   └── ProviderError         a model call failed after the retry layer gave up
    ├── StoreError        503     the store cannot keep what it is given
    │   ├── StaleEpoch    409     an append by an owner that lost the execution
    │   └── SchemaTooNew  503     a database written by a newer planwave
    └── InvalidTransition      500     our bug: the driver told the schedule something impossible

Codes are kebab-case and stable; clients branch on ``code``, never on message text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol


class DiagnosticLike(Protocol):
    """What an error needs of a diagnostic; ``graph.diagnostics.DiagnosticResponse`` satisfies it."""

    @property
    def severity(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def hint(self) -> str | None: ...
    def as_json(self) -> dict[str, Any]: ...


class PlanwaveError(Exception):
    """Root of all planned failures.

    Attributes:
        code: Stable machine-readable code.
        status_hint: HTTP status an API should answer with.
        message: What happened and where, one sentence.
        hint: The way out, or None.
    """

    code: str = "internal-error"
    status_hint: int = 500

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def as_json(self) -> dict[str, Any]:
        """Give ``{"code", "message", "hint"?}``, the form stored in events and shown to people."""
        shown: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            shown["hint"] = self.hint
        return shown


class InputError(PlanwaveError):
    """The caller handed in something that cannot be used."""

    code = "invalid-input"
    status_hint = 422


class LimitExceeded(InputError):
    """A configured limit was passed: ``limit`` is its name, ``value`` the limit, ``met`` what came."""

    code = "limit-exceeded"
    status_hint = 413

    def __init__(self, limit: str, value: float, met: float, *, what: str = "") -> None:
        of = f" for {what}" if what else ""
        super().__init__(
            f"limit {limit}{of} is {value:.12g}, met {met:.12g}",
            hint=f"shorten the input or raise PLANWAVE_LIMIT_{limit.upper()}",
        )
        self.limit = limit
        self.value = value
        self.met = met


class GraphInvalid(InputError, ValueError):
    """A graph document has error diagnostics; ``diagnostics`` holds all of them."""

    code = "graph-invalid"

    def __init__(self, diagnostics: Sequence[DiagnosticLike], message: str | None = None) -> None:
        errors = [d for d in diagnostics if d.severity == "error"]
        first = errors[0].message if errors else "the graph cannot be used"
        others = len(errors) - 1
        more = f" (and {others} more fault{'s' if others > 1 else ''})" if others > 0 else ""
        super().__init__(message or f"{first}{more}", hint=errors[0].hint if errors else None)
        self.diagnostics: tuple[Any, ...] = tuple(diagnostics)


class PlanInvalid(GraphInvalid):
    """The model's plan stayed faulty after all repairs.

    Attributes:
        diagnostics: Every diagnostic of the last attempt.
        attempts: One record an attempt: ``{"reply", "finish_reason", "diagnostics"}``.
    """

    code = "plan-invalid"

    def __init__(
        self, diagnostics: Sequence[DiagnosticLike], attempts: Sequence[dict[str, Any]]
    ) -> None:
        errors = [d for d in diagnostics if d.severity == "error"]
        first = errors[0].message if errors else "no usable reply"
        super().__init__(
            diagnostics, f"no valid plan after {len(attempts)} attempt(s); the last one: {first}"
        )
        self.attempts = tuple(attempts)
        self.hint = "rephrase the goal, or choose a stronger model with --provider and --model"


class UnknownProvider(InputError, ValueError):
    """No provider of that name is known."""

    code = "unknown-provider"


class UnavailableProvider(InputError, ValueError):
    """The provider is known but not configured here; the hint says how to enable it."""

    code = "unavailable-provider"


class UnknownModel(InputError, ValueError):
    """The provider does not offer a model of that name."""

    code = "unknown-model"


class NotFound(InputError):
    """Nothing of that name exists."""

    code = "not-found"
    status_hint = 404


class Conflict(InputError):
    """The request makes sense but not in the present state."""

    code = "conflict"
    status_hint = 409


class Gone(InputError):
    """What the request is about was there and is over."""

    code = "gone"
    status_hint = 410


class PreconditionFailed(InputError):
    """What the request builds upon is not what there is any more."""

    code = "outdated"
    status_hint = 412


class Unauthorized(InputError):
    """The request carries no token, or not the right one."""

    code = "unauthorized"
    status_hint = 401


class Forbidden(InputError):
    """The request comes through a host or from an origin that is not allowed here."""

    code = "forbidden"
    status_hint = 403


class TooManyRequests(InputError):
    """Too much is asked at once; ``retry_after_s`` says when to come back."""

    code = "too-many-requests"
    status_hint = 429

    def __init__(self, message: str, *, retry_after_s: float, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or f"try again in {retry_after_s:.0f} s")
        self.retry_after_s = retry_after_s


class QueueFull(TooManyRequests):
    """As many executions wait to be started as may."""

    code = "queue-full"


class SlowConsumer(PlanwaveError):
    """A watcher fell too far behind and was dropped; ``cursor`` is the last ``seq`` it was given."""

    code = "too-slow"
    status_hint = 503

    def __init__(self, cursor: int) -> None:
        super().__init__(
            f"this watcher fell too far behind after event {cursor} and was dropped",
            hint=f"go on from there with after={cursor}",
        )
        self.cursor = cursor


class ShuttingDown(PlanwaveError):
    """The service is going down: it takes nothing new, and its streams end."""

    code = "server-draining"
    status_hint = 503

    def __init__(self) -> None:
        super().__init__(
            "the service is going down and takes nothing new", hint="try again in a moment"
        )


class Unreachable(PlanwaveError):
    """No service answers where one was expected."""

    code = "service-unreachable"
    status_hint = 503

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="is `planwave serve` running there?")


class NodeError(PlanwaveError):
    """One node failed. ``retryable`` says whether the node's own retry policy may try again."""

    code = "node-failed"
    status_hint = 502

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.retryable = retryable


NESTED_FAILED: Final = "nested-run-failed"
"""The code of a :class:`NodeError` where a graph inside the node failed; its message names the node
it began at. All others are faults of the node itself."""


class TemplateError(NodeError):
    """An expression cannot be parsed, resolved or rendered within its limits."""

    code = "template-error"
    status_hint = 422


class ResultNotJson(NodeError):
    """A node returned a value that is not JSON and so cannot be stored."""

    code = "result-not-json"


class NodeTimeout(NodeError):
    """An attempt took longer than the node's ``timeoutS``."""

    code = "node-timeout"


class ProviderError(NodeError):
    """A provider call failed after the one retry layer gave up.

    Attributes:
        provider: Provider name.
        model: Model name, or None where no model was reached.
        status: HTTP status of the answer, or None.
        retry_after_s: What the provider asked us to wait, seconds, or None.
        attempts: Where it ended a planning, what came before it, as in :class:`PlanInvalid`.
    """

    code = "provider-error"

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        model: str | None = None,
        code: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
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
    """The store cannot keep or give what was asked."""

    code = "store-error"
    status_hint = 503


class StaleEpoch(StoreError):
    """An append came from an owner whose epoch is over."""

    code = "late-writer"
    status_hint = 409


class SchemaTooNew(StoreError):
    """The database was written by a newer planwave."""

    code = "schema-too-new"


class InvalidTransition(PlanwaveError):
    """The schedule was told something impossible: a bug in planwave, never the user's fault."""

    code = "kernel-misuse"
