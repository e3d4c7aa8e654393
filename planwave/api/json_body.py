"""JSON bodies: parsed strictly, then validated by a pydantic model.

::

    class PlanBody(BaseModel):
        model_config = ConfigDict(extra="forbid")
        prompt: str

    @router.post("/api/plan")
    async def create_plan(body: Annotated[PlanBody, json_body(PlanBody)]) -> …

As a dependency it comes after the access check, which FastAPI's own body parameters do not. The
OpenAPI document shows the model as the request's body (``openapi.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, get_args

from fastapi import Depends
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from planwave.api.dependencies import app_state
from planwave.api.problems import ProblemError
from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic, limit_exceeded, short_repr
from planwave.graph.json_values import pointer_part
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.graph.suggestions import closest_match
from planwave.validation import describe_error, json_type

BODY_MODEL_ATTRIBUTE: Final = "planwave_body"
"""Attribute of a dependency made here: ``(model, may_be_empty)``."""
_JSON: Final = "application/json"
_ENVELOPE_DEPTH: Final = 1
"""Levels of nesting around a graph, which alone the limit ``json_depth`` is about."""
_CODES: Final = {"missing": "missing-field", "extra_forbidden": "unknown-field"}
_Model = TypeVar("_Model", bound=BaseModel)


class InvalidBody(GraphInvalid):
    """A body that cannot be used; ``diagnostics`` holds everything that is wrong, with pointers."""

    code = "invalid-body"


def json_body(model: type[_Model], *, may_be_empty: bool = False) -> Any:
    """Return the dependency (a ``Depends``) that parses the body as a ``model``.

    Values are taken strictly: ``"1"`` is no integer. Use ``Literal`` rather than enumerations.

    Args:
        model: What the body has to be: an object, unless it is a ``RootModel``.
        may_be_empty: No body at all stands for ``{}``.

    Raises (in the request):
        ProblemError: 415: it is not ``application/json``.
        InvalidBody: 400 ``invalid-json``; 413 ``limit-exceeded``; 422 ``duplicate-key``,
            ``invalid-number``, ``invalid-text``, ``invalid-body``.
    """

    async def read(request: Request) -> _Model:
        raw = await request.body()
        if not raw and may_be_empty:
            return model()
        require_media_type(request, _JSON)
        return _validated(model, read_json(raw, app_state(request).settings.limits.json_depth))

    setattr(read, BODY_MODEL_ATTRIBUTE, (model, may_be_empty))
    return Depends(read)


def body_model(call: Callable[..., Any] | None) -> tuple[type[BaseModel], bool] | None:
    """Return the body model of a dependency, and whether the body may be empty."""
    return getattr(call, BODY_MODEL_ATTRIBUTE, None)


def read_json(raw: bytes, json_depth: int) -> Any:
    """Read JSON strictly.

    Raises:
        InvalidBody: The text is not JSON (400), or holds values that cannot be stored.
    """
    try:
        return parse_strict_json(raw, max_depth=json_depth + _ENVELOPE_DEPTH)
    except GraphInvalid as error:
        issues = [
            _too_deep(json_depth) if each.code == "limit-exceeded" else each
            for each in error.diagnostics
        ]
        raise _invalid_body(issues) from error


def _too_deep(json_depth: int) -> Diagnostic:
    """Report the limit as configured: the parser's own limit includes the envelope."""
    return limit_exceeded("json_depth", json_depth, f"more than {json_depth}", "nesting")


def _invalid_body(issues: Sequence[Diagnostic]) -> InvalidBody:
    refusal = InvalidBody(issues)
    if len(codes := {each.code for each in issues}) == 1:
        refusal.code = codes.pop()
    refusal.status_hint = {"invalid-json": 400, "limit-exceeded": 413}.get(refusal.code, 422)
    return refusal


def media_type(request: Request) -> str:
    """Return the media type of a body, without its parameters; "" where the request names none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_media_type(request: Request, *accepted: str) -> None:
    """Require a body in UTF-8, of one of these types, that is sent as it is.

    Raises:
        ProblemError: 415.
    """
    _, *parameters = request.headers.get("content-type", "").lower().split(";")
    charsets = [p.strip().removeprefix("charset=").strip('"') for p in parameters]
    if media_type(request) not in accepted or any(c not in ("", "utf-8", "utf8") for c in charsets):
        what = "JSON in UTF-8" if accepted == (_JSON,) else "JSON or a file, in UTF-8"
        raise ProblemError(
            415,
            "unsupported-media-type",
            f"a body is {what}, not {short_repr(request.headers.get('content-type', ''))}",
            hint=f"send Content-Type: {' or '.join(accepted)}",
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(
            415,
            "unsupported-media-type",
            "a body is sent as it is, not encoded",
            hint="leave out Content-Encoding",
        )


def _validated(model: type[_Model], value: Any) -> _Model:
    if not (isinstance(value, dict) or model.__pydantic_root_model__):
        message = f"the body is {json_type(value)}, not an object"
        raise InvalidBody([Diagnostic("invalid-field", "error", message)])
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise InvalidBody([_issue(model, value, each) for each in errors]) from error


def _issue(model: type[BaseModel], value: Any, detail: Any) -> Diagnostic:
    kind, pointer = detail["type"], _pointer(value, detail["loc"], detail["type"])
    hint = None
    if kind == "extra_forbidden" and (inner := _model_at(model, detail["loc"])) is not None:
        near = closest_match(str(detail["loc"][-1]), _names(inner))
        hint = f"did you mean {near!r}? " if near else ""
        hint += f"known are: {', '.join(_names(inner))}"
    code = _CODES.get(kind, "invalid-field")
    message = describe_error(pointer or "the body", detail)
    return Diagnostic(code, "error", message, pointer, hint=hint)


def _model_at(model: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel] | None:
    """Return the model of the object that a location is in; None where it is of another kind."""
    inner: type[BaseModel] | None = model
    for part in place[:-1]:
        fields = {} if inner is None else inner.model_fields
        field = next((each for name, each in fields.items() if part in (name, each.alias)), None)
        if field is not None:  # else the position in a list, or the name of a branch
            inner = _model_in(field.annotation)
    return inner


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the one model in an annotation, such as ``list[Model] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = {each for each in map(_model_in, get_args(annotation)) if each is not None}
    return models.pop() if len(models) == 1 else None


def _names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _pointer(value: Any, place: Sequence[int | str], kind: str) -> str:
    """Return the JSON pointer of a pydantic location, without the names of union branches."""
    parts: list[str] = []
    for at, part in enumerate(place):
        is_missing = kind == "missing" and at == len(place) - 1
        if not is_missing:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                continue
        parts.append(f"/{pointer_part(part)}")
    return "".join(parts)
