"""Read and validate what a node returned: its form, its handles, and that it is JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from planwave.errors import NodeError, PermanentError, PlanwaveError, ResultNotJson
from planwave.executor.program import BoundNode
from planwave.graph.json_values import NotJson, is_utf8_text, to_json
from planwave.graph.model import DataValue, Json
from planwave.graph.ports import has_output, outputs_text
from planwave.graph.protocols import ExecutionResult, NodeEvent, Resumable, Suspension
from planwave.source_locations import own_frame, shown_path

_T = TypeVar("_T")
_MAX_TEXT_CHARS: Final = 10_000


async def read_result(returned: Any, emit: Callable[[_T, NodeEvent], None], emitter: _T) -> Any:
    """Return the result of ``execute`` in any of its forms; emit the events of a generator."""
    if isawaitable(returned):
        return await returned
    if not hasattr(returned, "__aiter__"):
        return returned
    try:
        async for item in returned:
            if type(item) is not NodeEvent:
                return item
            emit(emitter, item)
    finally:  # also where an event was refused
        if isinstance(returned, AsyncGenerator):
            await returned.aclose()
    return None


def validate_result(
    step: BoundNode, result: object, emit: Callable[[_T, NodeEvent], None], emitter: _T
) -> ExecutionResult | Suspension:
    """Check that a result can be stored as JSON; emit the events in it."""
    if isinstance(result, ExecutionResult):
        outputs: Any = result.outputs  # what a node calls so; it may be anything
        if type(outputs) is not dict and not isinstance(outputs, Mapping):
            raise _invalid_result(step, f"outputs that are {type(outputs).__name__}, not by handle")
        plain = _check_outputs(step, result.outputs)
        for event in result.events:
            emit(emitter, event)
        return result if plain is None else result._replace(outputs=plain)
    if isinstance(result, Suspension):
        if not isinstance(step.implementation, Resumable):
            raise PermanentError(
                f"node {step.node.id!r} waits for an answer, but its type {step.node.type!r} "
                "cannot go on with one",
                code="not-resumable",
                hint="give the type a 'resume': derive it from planwave.ResumableType",
            )
        try:
            return result._replace(request=to_json(result.request), state=to_json(result.state))
        except NotJson as error:
            message = f"node {step.node.id!r} waits with a request that is {error}"
            raise ResultNotJson(message) from error
    raise _invalid_result(step, f"{type(result).__name__}, not an ExecutionResult or Suspension")


def _check_outputs(step: BoundNode, outputs: Mapping[Any, Any]) -> dict[str, DataValue] | None:
    """Check outputs; return them as they will be stored where that is not what they are."""
    handles, plain = step.handles, None
    for handle, value in outputs.items():
        if not isinstance(value, DataValue):
            raise _not_json(step, handle, f"{type(value).__name__} instead of a DataValue")
        if type(value.type) is not str:
            raise _not_json(step, handle, "of a type that is not text")
        try:
            stored = to_json(value.value)
        except NotJson as error:
            raise _not_json(step, handle, str(error)) from error
        if type(handle) is not str or handle not in handles:
            _check_handle(step, handle)
        if stored is not value.value:
            plain = dict(outputs) if plain is None else plain
            plain[handle] = value._replace(value=stored)
    return plain


def _check_handle(step: BoundNode, handle: object) -> None:
    if type(handle) is not str or not is_utf8_text(handle):
        raise _not_json(step, handle, "under a name that is not text")
    if not has_output(step.facts, handle):
        raise _invalid_result(
            step,
            f"a result on handle {handle!r}, which its type does not have; "
            f"its outputs are: {outputs_text(step.facts)}",
        )


def _invalid_result(step: BoundNode, reason: str) -> PermanentError:
    return PermanentError(
        f"node {step.node.id!r} of type {step.node.type!r} gave {reason}", code="invalid-result"
    )


def _not_json(step: BoundNode, handle: object, reason: str) -> ResultNotJson:
    return ResultNotJson(
        f"node {step.node.id!r} gave, on handle {handle!r}, a value that is {reason}",
        hint="return text, numbers, booleans, null, lists and objects with text keys",
    )


def without_secrets(
    result: ExecutionResult | Suspension, redact: Callable[[Json], Json]
) -> ExecutionResult | Suspension:
    """Return a result in which nothing is secret; the same object where nothing was."""
    if isinstance(result, Suspension):
        request, state = redact(result.request), redact(result.state)
        is_same = request is result.request and state is result.state
        return result if is_same else result._replace(request=request, state=state)
    outputs = {
        handle: value
        if (safe_value := redact(value.value)) is value.value
        else value._replace(value=safe_value)
        for handle, value in result.outputs.items()
    }
    is_same = all(outputs[handle] is value for handle, value in result.outputs.items())
    return result if is_same else result._replace(outputs=outputs)


def error_without_secrets(error: BaseException, redact: Callable[[Json], Json]) -> BaseException:
    """Return an exception of a node whose text holds no secret; the same object where it held none."""
    original = to_node_error(error)
    message, hint = redact(original.message), redact(original.hint)
    if message == original.message and hint == original.hint:
        return error
    safe_error = NodeError(str(message), code=original.code, hint=hint and str(hint))
    safe_error.retryable, safe_error.retry_delay_s = original.retryable, original.retry_delay_s
    safe_error.cause = redact(original.cause)
    safe_error.__cause__ = error  # a retry policy may name its class
    return safe_error


def to_node_error(error: BaseException) -> NodeError:
    """Return any exception of a node as a NodeError; planned errors keep code and hint.

    The hint of any other exception names the line that raised it. Of a group, as a ``TaskGroup`` raises
    it, the first exception counts.
    """
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    if isinstance(error, NodeError):
        return error
    if isinstance(error, PlanwaveError):
        return NodeError(error.message, code=error.code, hint=error.hint, retryable=error.retryable)
    text, name = _text_of(error), type(error).__name__
    return NodeError(
        f"{name}: {text}" if text else name,
        hint=_location_hint(error),
        retryable=isinstance(error, Exception),
    )


def _text_of(error: BaseException) -> str:
    """Return the text of an exception of any code: printable, and not longer than a page."""
    try:
        text = str(error)
    except Exception as cause:  # noqa: BLE001  (code of any package)
        return f"its text cannot be read ({type(cause).__name__})"
    if len(text) > _MAX_TEXT_CHARS:
        text = f"{text[:_MAX_TEXT_CHARS]}… ({len(text):,} characters)"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _location_hint(error: BaseException) -> str | None:
    """Return which line of a node's own code raised; a path shows nothing above its directory."""
    frame = own_frame(error)
    if frame is None:
        return None
    path = Path(shown_path(frame.filename))
    return f"raised at {path.name if path.is_absolute() else path}:{frame.lineno}, in {frame.name}"


def error_names(error: BaseException) -> set[str]:
    """Return the names by which a retry policy can name an exception of a node.

    These are its code, the names of its classes, and those of the exceptions it was raised from.
    """
    names = {str(to_node_error(error).code)}
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        names.update(kind.__name__ for kind in type(each).__mro__)
        if isinstance(each, PlanwaveError):
            names.add(str(each.code))
        is_group = isinstance(each, BaseExceptionGroup)
        each = cast("BaseExceptionGroup", each).exceptions[0] if is_group else each.__cause__
    return names
