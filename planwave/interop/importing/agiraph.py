"""agiraph: plans of tasks with dependencies.

Its executor runs a task once all its ``dependencies`` are done, in waves; ``edges`` are drawn and never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final, cast

from planwave.interop.importing.conversion import Conversion, SourceNode
from planwave.interop.importing.importer import Source
from planwave.interop.importing.reading import list_of, object_of, objects_in, text_of

_RESULT_FIELDS: Final = ("result", "error", "execution_time")
_PARTS: Final = (
    ("Reads", "input_description", "input_contract", "Needs"),
    ("Writes", "output_description", "output_contract", "Produces"),
)


def convert(source: Source) -> Conversion:
    """Make a described agent of each task, and an edge of each dependency."""
    plan, at = cast("Mapping[str, Any]", source.value), source.pointer
    conversion = Conversion(
        "agiraph", title=text_of(plan, "title"), user_prompt=text_of(plan, "user_prompt")
    )
    conversion.set_option(
        "scheduling", "waves", at, "tasks run in waves there; here that is an option of the run"
    )
    if conversion.user_prompt:
        message = "each task also reads the goal of the plan here; there only its own description"
        conversion.note("import-changed", message, f"{at}/user_prompt")
    by_id: dict[str, SourceNode] = {}
    tasks = [
        (task, _task(conversion, f"{at}/nodes/{i}", task, by_id))
        for i, task in objects_in(plan, "nodes")
    ]
    dependencies: set[tuple[str, str]] = set()
    for task, node in tasks:
        _add_dependencies(conversion, task, node, by_id, dependencies)
    for number, drawn in objects_in(plan, "edges"):
        _drawn_edge(conversion, f"{at}/edges/{number}", drawn, by_id, dependencies)
    return conversion


def task_description(task: Mapping[str, Any]) -> str:
    """Return a description that also says what a task reads and writes, which has fields of its own there."""
    lines = [text_of(task, "description")]
    for label, field, contract, word in _PARTS:
        text = text_of(task, field)
        if not text and (items := object_of(task, contract)):
            text = f"{word}: " + ", ".join(f"{name} ({what})" for name, what in items.items())
        lines.append(f"{label}: {text}" if text else "")
    return "\n".join(filter(None, lines))


def _task(
    conversion: Conversion,
    pointer: str,
    task: Mapping[str, Any],
    by_id: dict[str, SourceNode],
) -> SourceNode:
    task_id = text_of(task, "id")
    node = conversion.source_node(
        pointer, "task", text_of(task, "name") or task_id, parameters=task
    )
    data = {name: text for name in ("provider", "model") if (text := text_of(task, name))}
    description = task_description(task).strip() or node.name.strip()
    target = node.becomes("agent", data, node_id=task_id, description=description)
    if not description:
        node.lose("nothing says what the task does", "", f"{pointer}/description")
    elif not text_of(task, "description").strip():
        node.change("it has no description: its name, or what it reads and writes, is its task")
    if by_id.setdefault(task_id, node) is not node:
        message = f"two tasks have the id {task_id!r}: which one the others need is not known"
        node.lose(message, task_id, f"{pointer}/id", code="import-renamed")
    if "provider" in data:
        conversion.needs("provider", data["provider"], target)
    for name in _RESULT_FIELDS:
        if task.get(name) not in (None, ""):
            node.note("import-ignored", f"{name} of a stored run is left out", f"{pointer}/{name}")
    return node


def _add_dependencies(
    conversion: Conversion,
    task: Mapping[str, Any],
    node: SourceNode,
    by_id: Mapping[str, SourceNode],
    dependencies: set[tuple[str, str]],
) -> None:
    task_id, seen = text_of(task, "id"), set[str]()
    for number, before in enumerate(map(str, list_of(task, "dependencies"))):
        first = by_id.get(before)
        edge = conversion.source_edge(f"{node.pointer}/dependencies/{number}", first, node)
        dependencies.add((before, task_id))
        if first is None:
            message = f"it needs the result of {before!r}, which is not there"
            node.lose(message, before, edge.pointer, code="import-dangling")
        elif before in seen:
            edge.drop("import-ignored", f"it needs the result of {before!r} once")
        else:
            edge.becomes(first.target, node.entry)
        seen.add(before)


def _drawn_edge(
    conversion: Conversion,
    pointer: str,
    drawn: Mapping[str, Any],
    by_id: Mapping[str, SourceNode],
    dependencies: Set[tuple[str, str]],
) -> None:
    ends = text_of(drawn, "from"), text_of(drawn, "to")
    edge = conversion.source_edge(pointer, by_id.get(ends[0]), by_id.get(ends[1]))
    if ends in dependencies:
        edge.drop("import-ignored", "the dependency of the same ends counts")
    else:
        edge.drop(
            "import-ignored",
            "it is drawn and was never read: no task has it among its dependencies",
        )
