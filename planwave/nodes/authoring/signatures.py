"""What a function says about itself: that it can be called by name, and the types it is annotated with."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

from pydantic import ConfigDict


def require_function(what: str, function: Any) -> None:
    """Raise TypeError for anything but a function declared with ``def`` or ``async def``.

    Args:
        what: The thing that is made of it, for the message.
        function: The candidate.
    """
    if not inspect.isfunction(function):  # a ``partial`` hides its types
        raise TypeError(
            f"{what}: {function!r} is not a function; declare it with 'async def' or 'def'"
        )


def name_or_function(what: str, given: Any) -> tuple[str | None, Callable[..., Any] | None]:
    """Return the name that a decorator got, or the function that it stands above without arguments.

    Raises:
        TypeError: It is neither.
    """
    if given is None or isinstance(given, str):
        return given, None
    if not callable(given):
        raise TypeError(f"{what} is named by text, not {given!r}")
    return None, given


def require_named_parameter(what: str, parameter: inspect.Parameter, hint: str) -> None:
    """Raise TypeError for a parameter that cannot be filled by its name, or only by an object."""
    if parameter.name == "self" and parameter.annotation is parameter.empty:
        raise TypeError(
            f"{what} is a method; declare a function, which may call the method of an object"
        )
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(f"{what}: parameter {parameter.name!r} cannot be filled by name; {hint}")


def require_choice(what: str, name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ValueError for a value that is none of the choices."""
    if value not in choices:
        listed = ", ".join(map(repr, choices[:-1]))
        raise ValueError(f"{what}: {name} is {listed} or {choices[-1]!r}, not {value!r}")


def type_hints(
    what: str,
    function: Callable[..., Any],
    names: Mapping[str, Any],
    *,
    left_out: Collection[str] = (),
) -> Mapping[str, Any]:
    """Return the resolved annotations, with what ``Annotated`` adds.

    Names are looked up where the function is defined, also inside another function.

    Args:
        what: The thing that is made of the function, for the message.
        function: The function.
        names: Types by name that are often imported under ``TYPE_CHECKING`` only.
        left_out: Annotations that are not read, by parameter; ``return`` is that of the result.

    Raises:
        TypeError: An annotation names something undefined.
    """
    known = {**names, **function.__globals__}
    hints: dict[str, Any] = {}
    for name, hint in inspect.get_annotations(function).items():
        if name in left_out:
            continue
        alone = SimpleNamespace(__annotations__={name: hint})
        for scope in (known, {**known, **_local_names(function)}):
            with suppress(*_UNRESOLVED):
                hints |= typing.get_type_hints(alone, scope, include_extras=True)
                break
        else:
            where = "the result" if name == "return" else f"parameter {name!r}"
            raise TypeError(
                f"{what}: the annotation {hint!r} of {where} names no type that is known when the "
                "function is declared; import it outside of 'if TYPE_CHECKING'"
            )
    return hints


_UNRESOLVED: Final = (NameError, AttributeError, TypeError, SyntaxError)


def _local_names(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the local names of the function that defines this one and is running."""
    names: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is function.__globals__:
            names = {**frame.f_locals, **names}  # the innermost wins
        frame = frame.f_back
    return names


def fields_config() -> ConfigDict:
    """Return the configuration of a model whose fields are the parameters of a function."""
    return ConfigDict(extra="forbid", strict=True, protected_namespaces=())
