"""Node modules: Python modules that define node types or tools and belong to no installed package."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import InputError
from planwave.graph.suggestions import closest_match
from planwave.nodes.agents.tool_function import FunctionTool
from planwave.nodes.authoring.node_type import BaseNode
from planwave.source_locations import own_frame, shown_path

if TYPE_CHECKING:
    from planwave.nodes.registry import Registry

_CODE: Final = "broken-node-module"
_PLANWAVE: Final = "planwave."
_HINT: Final = (
    "correct it, or take it out of --import, PLANWAVE_NODE_MODULES and node_modules in "
    "planwave.toml"
)


def load_node_module(name: str, registry: Registry, *, is_installed: bool = False) -> None:
    """Import a module and register the node types and tools in it.

    Functions with ``@planwave.node`` or ``@planwave.tool`` register themselves. Registered here are the classes derived
    from ``NodeType`` or ``LinkType`` that the module defines or imports, if their name has no
    leading underscore. The module is looked for in the working directory, unless it ``is_installed``,
    then in the installed environment.

    Raises:
        InputError: ``broken-node-module``: there is no such module, it cannot be imported, holds
            neither a node type nor a tool, or one that cannot be registered.
    """
    before = registry.names(), registry.tools.names()
    try:
        with nullcontext() if is_installed else _working_directory_on_path():
            module = import_module(name)
    # Foreign code may fail in any way on import; some of it calls sys.exit.
    except (Exception, SystemExit) as error:
        raise _import_error(name, error, is_installed=is_installed) from error
    public = [value for key, value in vars(module).items() if not key.startswith("_")]
    for implementation in filter(_is_node_class, public):
        try:
            registry.register(implementation)
        except (TypeError, ValueError) as error:
            raise _load_error(name, error, _class_location(implementation)) from error
    classes = (BaseNode, FunctionTool)
    is_known = any(isinstance(value, classes) or _is_node_class(value) for value in public)
    if not is_known and (registry.names(), registry.tools.names()) == before:
        raise InputError(
            f"module {name!r} ({shown_path(module.__file__)}) declares no node type and no tool",
            code=_CODE,
            hint="declare one with @planwave.node() or @planwave.tool(), or as a class derived from "
            "planwave.NodeType",
        )


def _is_node_class(value: Any) -> bool:
    return (
        inspect.isclass(value)
        and issubclass(value, BaseNode)
        and not value.__module__.startswith(_PLANWAVE)
        and not inspect.isabstract(value)
        and hasattr(value, "node_type")  # one without a name is a base of others
    )


@contextmanager
def _working_directory_on_path() -> Generator[None]:
    """Import from the working directory first, as ``python -m`` does, inside this block only."""
    directory = os.getcwd()
    if directory in sys.path:
        yield
        return
    sys.path.insert(0, directory)
    try:
        yield
    finally:
        sys.path.remove(directory)


def _import_error(name: str, error: BaseException, *, is_installed: bool) -> InputError:
    is_missing = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
    if is_installed and is_missing:
        return InputError(
            f"there is no module {name!r} in the installed packages",
            code=_CODE,
            hint="a settings file of another directory names installed modules; one of the working "
            f"directory is named with --import {name}",
        )
    if is_missing or not _is_module_name(name):
        here = [path.stem for path in Path.cwd().glob("*.py")]
        close = closest_match(Path(name).name.removesuffix(".py"), here)
        return InputError(
            f"there is no module {name!r} in the working directory or the installed packages",
            code=_CODE,
            hint=f"did you mean {close!r}?" if close else _HINT,
        )
    location = None
    if isinstance(error, SyntaxError):
        location = f"{shown_path(error.filename)}:{error.lineno}"
        error = type(error)(error.msg)  # its text names file and line a second time
    elif frame := own_frame(error):
        location = f"{shown_path(frame.filename)}:{frame.lineno}"
    return _load_error(name, error, location)


def _is_module_name(name: str) -> bool:
    """Return whether a name can be imported; a path, such as ``./prices``, cannot."""
    return all(part.isidentifier() for part in name.split("."))


def _load_error(name: str, error: BaseException, location: str | None) -> InputError:
    where = f" ({location})" if location else ""
    return InputError(
        f"module {name!r} cannot be loaded: {type(error).__name__}: {error}{where}",
        code=_CODE,
        hint=_HINT,
    )


def _class_location(implementation: Any) -> str | None:
    try:
        file, (_, line) = (
            inspect.getsourcefile(implementation),
            inspect.getsourcelines(implementation),
        )
    except (OSError, TypeError):
        return None
    return f"{shown_path(file)}:{line}"
