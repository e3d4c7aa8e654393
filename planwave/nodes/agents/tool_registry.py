"""The tools that graphs may name: those the operator made available, each with where it comes from."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast, get_args, runtime_checkable

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Effect, Port
from planwave.graph.protocols import FlowContext
from planwave.graph.suggestions import closest_match
from planwave.nodes.agents.tool import Approval, Tool
from planwave.nodes.authoring.data_fields import port_of_schema
from planwave.nodes.authoring.entry_points import broken_package, load_entry_point
from planwave.nodes.authoring.signatures import require_choice
from planwave.source_locations import shown_path

ENTRY_POINTS: Final = "planwave.tools"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

T = TypeVar("T")


@runtime_checkable
class ToolSource(Protocol):
    """What holds a tool and knows the line that declares it; ``FunctionTool`` does."""

    @property
    def tool(self) -> Tool: ...
    @property
    def module(self) -> str: ...
    @property
    def line(self) -> int: ...


class ToolOrigin(NamedTuple):
    """Where a tool comes from.

    Attributes:
        kind: ``package`` for the tools of an entry point, ``module`` for all others.
        name: The name of the installed package or of the module.
        file: The file of the module, if it is known.
        line: The line in it, if it is known.
    """

    kind: str
    name: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        where = "" if self.file is None else f" ({shown_path(self.file)}"
        if where:
            where += ")" if self.line is None else f":{self.line})"
        return f"{self.kind} {self.name}{where}"


class RegisteredTool(NamedTuple):
    """A tool and its origin."""

    tool: Tool
    origin: ToolOrigin

    def as_document(self) -> dict[str, Any]:
        """Return the tool as JSON, for editors, planners and people."""
        tool = self.tool
        return {
            "name": tool.name,
            "description": tool.description,
            "effect": tool.effect,
            "approval": tool.approval,
            "timeout_s": tool.timeout_s,
            "parameters": dict(tool.parameters),
            "origin": {"kind": self.origin.kind, "name": self.origin.name},
        }


class ToolRegistry:
    """Tools by name.

    Attributes:
        effects: The effect of each tool by its name; always that of the moment.
        outputs: The port of the results of each tool that says what they are, by its name; the same.
    """

    def __init__(self) -> None:
        self._tools: dict[str, RegisteredTool] = {}
        self._entry_points: set[EntryPoint] = set()
        self.effects: Mapping[str, Effect] = _Effects(self._tools)
        self.outputs: Mapping[str, Port] = _Outputs(self._tools)

    def register(self, source: T, *, package: str | None = None) -> T:
        """Register a tool and return what was given.

        Args:
            source: A ``Tool``, or a function with ``@planwave.tool``.
            package: The installed package that it comes from.

        Raises:
            TypeError: It is no tool.
            ValueError: Its name cannot be that of a tool, or another tool has it; its effect, approval
                or time limit is not possible.
        """
        tool, origin = _tool_and_origin(source)
        if _NAME.fullmatch(tool.name) is None:
            raise ValueError(
                f"a tool cannot be called {tool.name!r}: a name has letters, digits, '_' and '-', "
                "64 at most"
            )
        _require_valid_options(tool)
        if package is not None:
            origin = origin._replace(kind="package", name=package)
        present = self._tools.get(tool.name)
        if present is not None and present.tool is not tool:
            raise ValueError(
                f"tool {tool.name!r} is registered already, by {present.origin}; "
                f"the one of {origin} needs another name"
            )
        if present is None or package is not None:
            self._tools[tool.name] = RegisteredTool(tool, origin)
        return source

    def with_entry_points(self, points: Iterable[EntryPoint] | None = None) -> list[Diagnostic]:
        """Add the tools of installed packages (entry point group ``planwave.tools``).

        An entry point names an argument of ``register``, or a list of them. If it cannot be
        loaded, or one of its names is taken, none of its tools is added. Each is read once.

        Returns:
            A warning for each entry point that was left out.
        """
        warnings: list[Diagnostic] = []
        for point in entry_points(group=ENTRY_POINTS) if points is None else points:
            if point in self._entry_points:
                continue
            self._entry_points.add(point)
            before = dict(self._tools)
            try:
                package = point.name if point.dist is None else point.dist.name
                for source in load_entry_point(point):
                    self.register(source, package=package)
            # Foreign code may fail in any way on import; some of it calls sys.exit.
            except (Exception, SystemExit) as error:  # noqa: BLE001
                self._tools.clear()
                self._tools.update(before)
                warnings.append(broken_package(point, error))
        return warnings

    def get(self, name: str) -> RegisteredTool | None:
        """Return a tool by its name; None if there is none."""
        return self._tools.get(name)

    def names(self) -> Sequence[str]:
        """Return the names of all tools, sorted."""
        return sorted(self._tools)

    def closest(self, name: str) -> str | None:
        """Return the name of a tool that is close to a misspelt one."""
        return closest_match(name, self.names())

    def __len__(self) -> int:
        return len(self._tools)


@cache
def default_tools() -> ToolRegistry:
    """Return the tools of this process: those that ``@planwave.tool`` adds."""
    return ToolRegistry()


@runtime_checkable
class HasTools(Protocol):
    """Node types with which tools are registered; ``Registry`` has them."""

    @property
    def tools(self) -> ToolRegistry: ...


def tools_of(context: FlowContext) -> ToolRegistry:
    """Return the tools that the nodes of a run may name."""
    catalogue: object = context.runtime.catalogue
    return catalogue.tools if isinstance(catalogue, HasTools) else ToolRegistry()


class _Effects(Mapping[str, Effect]):
    """A view of the effects of tools."""

    def __init__(self, tools: Mapping[str, RegisteredTool]) -> None:
        self._tools = tools

    def __getitem__(self, name: str) -> Effect:
        return self._tools[name].tool.effect

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


class _Outputs(Mapping[str, Port]):
    """A view of the results of tools, as the output of a step that calls one."""

    def __init__(self, tools: Mapping[str, RegisteredTool]) -> None:
        self._tools = tools

    def __getitem__(self, name: str) -> Port:
        schema = self._tools[name].tool.result_schema
        if schema is None:
            raise KeyError(name)
        return port_of_schema(DEFAULT_SOURCE_HANDLE, schema)

    def __iter__(self) -> Iterator[str]:
        return (name for name, each in self._tools.items() if each.tool.result_schema is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _tool_and_origin(source: object) -> tuple[Tool, ToolOrigin]:
    if isinstance(source, Tool):
        module = cast("str", getattr(source.call, "__module__", "?"))
        line = None
        tool = source
    elif isinstance(source, ToolSource):
        module, line, tool = source.module, source.line, source.tool
    else:
        raise TypeError(
            f"{source!r} is no tool; write @planwave.tool() above a function, or give a planwave.Tool"
        )
    return tool, ToolOrigin("module", module, _file_of(module), line)


def _require_valid_options(tool: Tool) -> None:
    what = f"tool {tool.name!r}"
    require_choice(what, "effect", tool.effect, get_args(Effect))
    require_choice(what, "approval", tool.approval, get_args(Approval))
    seconds = cast("object", tool.timeout_s)
    if seconds is not None and not (
        isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0
    ):
        raise ValueError(f"{what}: timeout_s is a number of seconds above 0, not {seconds!r}")


def _file_of(module: str) -> str | None:
    return getattr(sys.modules.get(module), "__file__", None)
