"""Arguments of the Python library: their types, and the one that is meant by a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypedDict, TypeVar, cast

from planwave.executor.options import RunOptions
from planwave.graph.suggestions import closest_match

if TYPE_CHECKING:
    from planwave.graph.model import Json
    from planwave.nodes.registry import Registry
    from planwave.nodes.services import PlanEvent
    from planwave.service.library.stores import StoreSource

P = ParamSpec("P")
R = TypeVar("R")

NOT_GIVEN: Final[Any] = ...
"""The default of an argument for which None is a value."""


class _StartArguments(TypedDict, total=False):
    options: RunOptions | None
    store: StoreSource | None
    check: bool
    require_approval: bool


class RunArguments(_StartArguments, total=False):
    """The keywords of ``planwave.run``, for the functions that pass them on to it."""

    images: Sequence[str]
    inputs: Mapping[str, Mapping[str, Json]] | None
    services: Any
    goal: str
    registry: Registry | None


class ModelArguments(TypedDict, total=False):
    """The keywords that say which model writes."""

    provider: str | None
    model: str | None


class ReplanArguments(ModelArguments, total=False):
    """The keywords of ``Run.replan``, without ``dry_run``."""

    dry_run: Literal[False]


class ProposalArguments(ModelArguments, total=False):
    """The keywords of ``Run.replan`` with ``dry_run``."""

    on_progress: Callable[[PlanEvent], None] | None


class PlanArguments(ProposalArguments, total=False):
    """The keywords of ``planwave.plan``."""

    answers: Mapping[str, str] | None


class GoalArguments(PlanArguments, _StartArguments, total=False):
    """The keywords of ``planwave.run_goal``."""


_OF_THE_OPTIONS: Final = tuple(field.name for field in fields(RunOptions))


def known_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function say which argument is meant in place of an unknown one."""
    return arguments_of(function)(function)


def arguments_of(twin: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments of a function as ``known_arguments`` does, by those of its twin.

    The function itself passes its keyword arguments on to the twin; ``help`` shows them beside its own.
    """
    by_place, of_twin = _argument_names(twin)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        function_name = _shown_name(function)
        names = list(dict.fromkeys([*of_twin, *_argument_names(function)[1]]))

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in names:
                    raise TypeError(
                        f"{function_name} has no argument {name!r}; {_way_out(name, names)}"
                    )
            if len(args) > len(by_place):
                raise TypeError(_too_many(function_name, by_place, names))
            return function(*args, **kwargs)

        own = signature(function)
        by_position = [p for p in own.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        each_of = [*own.parameters.values(), *signature(twin).parameters.values()]
        keywords = {each.name: each for each in each_of if each.kind is each.KEYWORD_ONLY}
        shown = own.replace(parameters=[*by_position, *keywords.values()])
        call.__dict__["__signature__"] = shown
        return call

    return decorate


def _argument_names(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Return the names of the arguments by position, and of those that have a name."""
    parameters = list(signature(function).parameters.values())
    by_place = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    by_name = [each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
    return by_place, [*by_place, *by_name]


def check_text(what: str, value: object, *, is_optional: bool = False) -> None:
    """Check that an argument is text.

    Raises:
        TypeError: It is of another type.
    """
    if not isinstance(value, str) and not (is_optional and value is None):
        raise TypeError(f"{what} is text, not {value!r}")


def check_plan_arguments(
    what: str, words: object, provider: object, model: object, on_progress: object
) -> None:
    """Check what a model is asked to plan.

    Args:
        what: What the words are, such as ``a goal``.
        words: What is to be done.
        provider: Who plans, or None.
        model: The same.
        on_progress: What the progress is reported to, or None.

    Raises:
        TypeError: An argument is of another type.
    """
    check_text(what, words)
    check_text("a provider", provider, is_optional=True)
    check_text("a model", model, is_optional=True)
    if on_progress is not None and not callable(on_progress):
        raise TypeError(f"on_progress is a function that takes an event, not {on_progress!r}")


def check_replan_arguments(
    words: object, provider: object, model: object, on_progress: object, *, dry_run: object
) -> None:
    """Check what a model is asked to change; see ``check_plan_arguments``.

    Raises:
        TypeError: An argument is of another type; the change is not only proposed, and has no progress to report.
    """
    what = "what is to be different"
    check_plan_arguments(what, "" if words is None else words, provider, model, on_progress)
    check_flags(dry_run=dry_run)
    if on_progress is not None and not dry_run:
        raise TypeError(
            "on_progress is for dry_run=True; the events of the run show a change that is made"
        )


def check_flags(**flags: object) -> None:
    """Check that arguments are True or False.

    Raises:
        TypeError: One is of another type.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {value!r}")


def answer_of(answer: Json, fields: Mapping[str, Json]) -> Json:
    """Return the answer of a call: a value, or an object of the fields that were given.

    Raises:
        TypeError: It has none, or both.
    """
    given = {name: value for name, value in fields.items() if value is not NOT_GIVEN}
    if given and answer is not NOT_GIVEN:
        raise TypeError(f"an answer is a value, or {', '.join(given)} by name, not both")
    if not given and answer is NOT_GIVEN:
        raise TypeError(
            "the answer is missing: write decision=…, or the value for a request without actions"
        )
    return given or answer


def check_fork_arguments(fields: object, changes: object, rerun: object) -> None:
    """Check what a fork is to change.

    Raises:
        TypeError: An argument is of another type.
    """
    if isinstance(rerun, str):
        raise TypeError(f"rerun must be a list of node ids: write rerun=[{rerun!r}]")
    if not isinstance(rerun, Collection) or isinstance(rerun, Mapping):
        raise TypeError(f"rerun must be a list of node ids, not {rerun!r}")
    forms = {
        "set": (fields, '{"node.field": value}'),
        "changes": (changes, '{node_id: {"description": …, "data": {…}} or {"outputs": {…}}}'),
    }
    for name, (value, form) in forms.items():
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(f"{name} must be {form}, not {value!r}")
        keys = cast("Mapping[object, object]", value or {})
        if (key := next((k for k in keys if not isinstance(k, str)), None)) is not None:
            raise TypeError(f"{name} must be {form}; the key {key!r} is not text")


def _shown_name(function: Callable[..., Any]) -> str:
    """Return how a caller writes a function: ``planwave.run``, ``run.fork``."""
    kind, _, name = function.__qualname__.rpartition(".")
    return f"{kind.lower()}.{name}" if kind else f"{_shown_module(function)}.{name}"


def _shown_module(function: Callable[..., Any]) -> str:
    """Return the module that a caller imports a function from."""
    return function.__module__ if function.__module__ == "planwave.testing" else "planwave"


def _too_many(function: str, by_place: Sequence[str], names: Sequence[str]) -> str:
    first, rest = _without_self(by_place), [f"{name}=…" for name in names[len(by_place) :]]
    if not first:
        return f"{function} takes no argument by position; write {', '.join(rest)}"
    message = f"{function} takes only {' and '.join(first)} by position"
    if not rest:
        return message
    return f"{message}; write {', '.join(rest)}"


def _without_self(names: Iterable[str]) -> list[str]:
    return [name for name in names if name != "self"]


def _way_out(name: str, arguments: Collection[str]) -> str:
    if name in _OF_THE_OPTIONS and "options" in arguments:
        return f"pass options=planwave.RunOptions({name}=…)"
    if near := closest_match(name, names := _without_self(arguments)):
        return f"did you mean {near!r}?"
    return f"its arguments are {', '.join(names)}"
