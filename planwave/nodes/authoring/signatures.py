"""What a function says about itself: that it can be called by name, and the types it is annotated with."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

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
    function: Callable[..., Any], names: Mapping[str, Any], *, include_extras: bool = False
) -> Mapping[str, Any]:
    """Return the resolved annotations; leave out those that name something undefined.

    Args:
        function: The function.
        names: Types by name that are often imported under ``TYPE_CHECKING`` only.
        include_extras: Whether ``Annotated`` stays.
    """
    reach = {**names, **function.__globals__}
    hints: dict[str, Any] = {}
    for name, hint in inspect.get_annotations(function).items():
        alone = SimpleNamespace(__annotations__={name: hint})
        with suppress(NameError, AttributeError, TypeError, SyntaxError):
            hints.update(typing.get_type_hints(alone, reach, include_extras=include_extras))
    return hints


def fields_config(*, strict: bool) -> ConfigDict:
    """Return the configuration of a model whose fields are the parameters of a function."""
    return ConfigDict(extra="forbid", strict=strict, protected_namespaces=())
