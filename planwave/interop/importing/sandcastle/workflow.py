"""Convert a workflow of Sandcastle: a step is an agent or an approval, a dependency an edge.

Its engine runs a step when its dependencies are done, gives a step with ``parallel_over`` each item of a list,
and adds to a prompt the outputs of dependencies that the prompt does not name. Templates here write that out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing.conversion import Conversion, SourceEdge, SourceNode
from planwave.interop.importing.drafts import Target, new_edge
from planwave.interop.importing.importer import Source
from planwave.interop.importing.json_schemas import usable_schema
from planwave.interop.importing.reading import list_of, number_of, object_of, objects_in, text_of
from planwave.interop.importing.sandcastle.references import (
    Reference,
    Shape,
    is_certain,
    is_named,
    part_of,
    pieces_of,
    reference_of,
)
from planwave.interop.importing.sandcastle.settings import (
    model_of,
    note_settings_of_step,
    note_settings_of_workflow,
    policy_of,
)
from planwave.interop.importing.templates import (
    inserted,
    json_expression,
    literal,
    output_of,
    path,
    quoted,
)

_ADDED: Final = "\n\nContext from previous steps:\n"
_DEFAULT_TURNS: Final = 10
_MOST_STEPS: Final = 100
_PROMPTED: Final = frozenset({"standard", "llm"})
"""Types of steps that ask a model."""
_HOUR_S: Final = 3600
_LONGEST_WAIT_S: Final = 30 * 86_400


class _Step(NamedTuple):
    """A step of the workflow.

    Attributes:
        id: Its id, which is also that of its node.
        kind: Its type.
        fields: What is written of it.
        node: Its entry in the report.
        needs: Its dependencies, in their order.
        edges: The entry of each dependency in the report.
        schema: The JSON Schema of its output, as far as it has one.
        read: What other steps read of its output.
    """

    id: str
    kind: str
    fields: Mapping[str, Any]
    node: SourceNode
    needs: list[str]
    edges: list[SourceEdge]
    schema: dict[str, Any]
    read: Shape

    @property
    def over(self) -> str:
        """The path of the list whose items it runs for, or ""."""
        return text_of(self.fields, "parallel_over").strip("{}")

    @property
    def prompt(self) -> str:
        return text_of(self.fields, "prompt")

    @property
    def question(self) -> Mapping[str, Any]:
        """What an approval asks."""
        return object_of(self.fields, "approval_config")

    @property
    def reply_read(self) -> Shape:
        """What other steps read of one reply."""
        return (self.read.items or Shape()) if self.over else self.read

    @property
    def result_schema(self) -> Mapping[str, Any]:
        """The JSON Schema of what other steps read, as far as it is known."""
        schema = self.schema
        if not schema and self.reply_read.fields:
            schema = self.reply_read.schema()
        return {"type": "array", "items": schema} if self.over else schema

    @property
    def handle(self) -> str:
        """The output of its node that has its result."""
        return "approve" if self.kind == "approval" else "output"


class _Scope(NamedTuple):
    """What the roots of references are called where a template stands."""

    input: str
    steps: Mapping[str, str]


class _Workflow:
    """The steps of one file, while they are converted."""

    def __init__(self, conversion: Conversion, document: Mapping[str, Any], at: str) -> None:
        self.conversion, self.document, self.at = conversion, document, at
        self.steps: dict[str, _Step] = {}
        self.before: dict[str, set[str]] = {}
        self.circular: set[str] = set()
        self.input_schema, _ = usable_schema(object_of(document, "input_schema"))
        self.targets: dict[str, Target] = {}
        """The node of each step that has its output."""
        self.outputs: dict[str, str] = {}
        """The expression of the output of each step."""
        self.entries: dict[str, Target] = {}
        """The node before it, which its dependencies lead to, where there is one."""
        self.input = _place_input(self)


def convert(source: Source) -> Conversion:
    """Make an agent or an approval of each step, and an edge of each dependency."""
    document, at = cast("Mapping[str, Any]", source.value), source.pointer
    conversion = Conversion("sandcastle", title=text_of(document, "name"))
    workflow = _Workflow(conversion, document, at)
    for number, fields in objects_in(document, "steps"):
        _read_step(workflow, f"{at}/steps/{number}", fields)
    for step in workflow.steps.values():
        _read_dependencies(workflow, step)
    workflow.before = {key: _ancestors(workflow, key) for key in workflow.steps}
    workflow.circular = {key for key, before in workflow.before.items() if key in before}
    _find_what_is_read(workflow)
    _place(workflow)
    for step in workflow.steps.values():
        _fill(workflow, step)
    for step in workflow.steps.values():
        _connect(workflow, step)
    note_settings_of_workflow(conversion, document, at)
    return conversion


# -- reading ---------------------------------------------------------------------------------------


def _read_step(workflow: _Workflow, pointer: str, fields: Mapping[str, Any]) -> None:
    step_id, kind = text_of(fields, "id"), text_of(fields, "type") or "standard"
    node = workflow.conversion.source_node(pointer, kind, step_id, parameters=fields)
    schema, is_whole = usable_schema(object_of(fields, "output_schema"))
    if not is_whole:
        message = (
            "parts of its output schema are no JSON Schema that is read here, and are left out"
        )
        node.change(message, f"{pointer}/output_schema")
    step = _Step(step_id, kind, fields, node, [], [], schema, Shape())
    written = fields.get("depends_on")
    needs = [written] if isinstance(written, str) else map(str, list_of(fields, "depends_on"))
    step.needs.extend(needs)
    if workflow.steps.setdefault(step_id, step) is not step:
        message = f"two steps have the id {step_id!r}: which one the others need is not known"
        node.lose(message, step_id, f"{pointer}/id", code="import-renamed")
        for number, need in enumerate(step.needs):
            edge = workflow.conversion.source_edge(f"{pointer}/depends_on/{number}", None, node)
            edge.drop("import-renamed", f"the step that needs {need!r} cannot run")


def _read_dependencies(workflow: _Workflow, step: _Step) -> None:
    for number, need in enumerate(step.needs):
        pointer = f"{step.node.pointer}/depends_on/{number}"
        first = workflow.steps.get(need)
        edge = workflow.conversion.source_edge(pointer, first and first.node, step.node)
        step.edges.append(edge)
        if first is None:
            message = f"it needs the step {need!r}, which is not there"
            step.node.lose(message, need, pointer, code="import-dangling")
        elif need in step.needs[:number]:
            edge.drop("import-ignored", f"it needs the step {need!r} once")


def _ancestors(workflow: _Workflow, key: str) -> set[str]:
    found, waiting = set[str](), [key]
    while waiting:
        for need in workflow.steps[waiting.pop()].needs:
            if need in workflow.steps and need not in found:
                found.add(need)
                waiting.append(need)
    return found


def _references(workflow: _Workflow, step: _Step) -> Iterable[Reference]:
    """Yield what a step reads, by its prompt or by the other paths that it has."""
    paths = [step.over] if step.over else []
    if step.kind == "approval":
        paths.append(text_of(step.question, "show_data"))
    else:
        for piece in pieces_of(step.prompt, workflow.steps.keys(), in_loop=bool(step.over)):
            if isinstance(piece, Reference):
                yield piece
    for each in paths:
        reference = reference_of(each, workflow.steps.keys(), in_loop=False)
        if reference is not None:
            yield reference


def _find_what_is_read(workflow: _Workflow) -> None:
    """Find the parts of each output that other steps read, also of the items of lists."""
    for step in workflow.steps.values():
        for reference in _references(workflow, step):
            if reference.root == "step":
                workflow.steps[reference.step].read.at(reference.fields)
        listed = reference_of(step.over, workflow.steps.keys(), in_loop=False)
        if listed is None or listed.root != "step":
            continue
        items = workflow.steps[listed.step].read.at(listed.fields).as_list()
        for reference in _references(workflow, step):
            if reference.root == "item":
                items.at(reference.fields)


# -- nodes -----------------------------------------------------------------------------------------


def _place_input(workflow: _Workflow) -> Target:
    """Make the start, which gives the input of the run to the steps."""
    schema = workflow.input_schema
    properties = object_of(schema, "properties")
    pointer = f"{workflow.at}/input_schema" if "input_schema" in workflow.document else workflow.at
    node = workflow.conversion.source_node(pointer, "input", "input", parameters=schema)
    given = {name: object_of(properties, name).get("default") for name in properties}
    defaults = {name: value for name, value in given.items() if value is not None}
    data: dict[str, Any] = {"initialInput": defaults}
    if schema:
        data["schema"] = schema | {"type": "object"}
    if schema != dict(object_of(workflow.document, "input_schema")):
        node.change("parts of it are no JSON Schema that is read here, and are left out")
    return node.becomes("start", data, node_id="input", name="Input")


def _place(workflow: _Workflow) -> None:
    """Make the node of each step, so that templates can name it by its id."""
    for step in workflow.steps.values():
        node_type = "placeholder"
        if step.kind in _PROMPTED:
            node_type = "inner" if step.over else "agent"
        elif step.kind == "approval":
            node_type = step.kind
        target = workflow.targets[step.id] = step.node.becomes(node_type, node_id=step.id)
        workflow.outputs[step.id] = output_of(target.id, step.handle)


def _fill(workflow: _Workflow, step: _Step) -> None:
    """Write what the node of a step does, now that all nodes have their ids."""
    note_settings_of_step(workflow.conversion, step.node, step.fields)
    _lose_unknown_references(workflow, step)
    target = workflow.targets[step.id]
    if step.kind == "approval":
        _fill_approval(workflow, step, target)
    elif step.kind not in _PROMPTED:
        message = f"steps of the type {step.kind!r} have no counterpart"
        step.node.becomes_placeholder(message)
    elif step.over:
        _fill_loop(workflow, step, target)
    else:
        target.node["data"] = _agent_data(workflow, step, _scope_of(workflow, step), target)
        policy = policy_of(step.node, step.fields, workflow.document)
        if policy.goes_on:
            default = {"handle": "output", "value": None}
            policy.fields.update({"onError": "default", "default": default})
        if policy.fields:
            target.node["policy"] = policy.fields


def _lose_unknown_references(workflow: _Workflow, step: _Step) -> None:
    for each in _references(workflow, step):
        if each.root == "none":
            message = f"{each.written} has no counterpart in templates here"
        elif each.root == "step" and each.step not in workflow.before[step.id]:
            message = f"it reads the output of {each.step!r}, which it does not depend on"
        else:
            continue
        step.node.lose(message, each.written, f"{step.node.pointer}/prompt")


def _scope_of(workflow: _Workflow, step: _Step) -> _Scope:
    before = workflow.before[step.id]
    outputs = {key: workflow.outputs[key] for key in before}
    return _Scope(output_of(workflow.input.id), outputs)


def _fill_approval(workflow: _Workflow, step: _Step, target: Target) -> None:
    """Ask a person, who sees what ``show_data`` names; what they approve is the output."""
    shown = reference_of(text_of(step.question, "show_data"), workflow.steps.keys(), in_loop=False)
    expression = "{'approved': true}"
    if shown is not None and shown.root in ("input", "step"):
        scope = _scope_of(workflow, step)
        value = _expression(workflow, shown, scope, None)
        expression = f"{value} if {value} is mapping else {{'value': {value}}}"
    message = text_of(step.question, "message") or "Approval required"
    data: dict[str, Any] = {
        "prompt": literal(message if message.strip() else "Approval required"),
        "editable": step.question.get("allow_edit") is True,
    }
    hours = number_of(step.question, "timeout_hours")
    if hours is not None and hours > 0:
        action = "approve" if text_of(step.question, "on_timeout") == "skip" else "reject"
        data |= {"timeoutS": min(hours * _HOUR_S, _LONGEST_WAIT_S), "timeoutAction": action}
    target.node["data"] = data
    step.node.change("a rejected run fails there; here it ends without the steps that follow")
    shown_node = step.node.becomes(
        "transform",
        {"expression": inserted(expression)},
        node_id=f"{step.id}.shown",
        name=f"Shown at {step.id}",
    )
    new_edge(target.graph, shown_node.id, target.id)
    workflow.entries[step.id] = shown_node


def _fill_loop(workflow: _Workflow, step: _Step, inner: Target) -> None:
    """Run an agent for each item of a list, in a graph of its own that gets what the prompts name."""
    listed = reference_of(step.over, workflow.steps.keys(), in_loop=False)
    names = _variables(workflow, step)
    graph = step.node.body()
    scope = _Scope(names.get("", "run"), names)
    items = quoted(step.over) if listed is None else _items(workflow, step, listed, scope)
    policy = policy_of(step.node, step.fields, workflow.document)
    loop = step.node.becomes("loop", node_id="each", name=f"Each of {step.over}", graph=graph)
    body = step.node.body()
    agent = step.node.becomes("agent", node_id=step.id, policy=policy.fields, graph=body)
    agent.node["data"] = _agent_data(workflow, step, scope, agent)
    loop.node["data"] = {"items": inserted(items), "body": body.document()}
    if policy.goes_on:
        loop.node["data"]["onItemError"] = "null"
    inner.node["data"] = {
        "inputs": {name: "any" for name in names.values()},
        "graph": graph.document(),
    }


def _variables(workflow: _Workflow, step: _Step) -> dict[str, str]:
    """Return the name in a loop of each step whose output it reads; of the input by ""."""
    read: dict[str, None] = {}
    for reference in _references(workflow, step):
        if reference.root == "input":
            read[""] = None
        elif reference.root == "step" and reference.step in workflow.before[step.id]:
            read[reference.step] = None
    read.update(dict.fromkeys(_added(workflow, step)))
    names: dict[str, str] = {}
    for number, key in enumerate(read):
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in key)
        name = f"step_{plain}"[:40] if key else "run"
        names[key] = name if name not in names.values() else f"{name}_{number}"
    return names


def _items(workflow: _Workflow, step: _Step, listed: Reference, scope: _Scope) -> str:
    value = _expression(workflow, listed, scope, None)
    whole = workflow.input_schema
    if listed.root == "step":
        whole = workflow.steps[listed.step].result_schema
    schema = part_of(whole, listed.fields)
    if schema.get("type") == "array":
        return value
    if not schema and listed.root == "step" and not listed.fields:
        value = f"({value} | fromjson({value}))"
    step.node.note("import-changed", "what is no list is run for once, as there", hint=None)
    return f"{value} if {value} is sequence else [{value}]"


def _agent_data(workflow: _Workflow, step: _Step, scope: _Scope, agent: Target) -> dict[str, Any]:
    fields, node = step.fields, step.node
    model = model_of(text_of(fields, "model") or text_of(workflow.document, "default_model"))
    data: dict[str, Any] = {"provider": model.provider, "model": model.name}
    workflow.conversion.needs("provider", model.provider, agent)
    system = text_of(object_of(fields, "llm_config"), "system_prompt")
    if step.kind == "llm" and system:
        data["systemPrompt"] = _template(workflow, step, system, scope)
    data["userPrompt"] = _template(workflow, step, step.prompt, scope)
    if added := _added(workflow, step):
        lines = [f"[{key}]: {inserted(scope.steps[key])}" for key in added]
        data["userPrompt"] += literal(_ADDED) + "\n".join(lines)
        names = ", ".join(added)
        message = f"the outputs of {names}, which the prompt does not name, are written at its end"
        node.note("import-changed", message, f"{node.pointer}/prompt")
    if not data["userPrompt"].strip():
        node.lose("its prompt is empty", "", f"{node.pointer}/prompt")
    turns = number_of(fields, "max_turns") or number_of(workflow.document, "default_max_turns")
    data["maxSteps"] = max(1, min(int(turns or _DEFAULT_TURNS), _MOST_STEPS))
    schema = _output_schema(step)
    if schema:
        data["outputSchema"] = schema
    return data


def _output_schema(step: _Step) -> dict[str, Any]:
    """Return the schema of the reply: its own, or one of the fields that other steps read."""
    node = step.node
    if step.schema or "output_schema" in step.fields:
        schema = step.schema
        if "properties" in schema and "type" not in schema:
            schema = schema | {"type": "object"}
        if schema.get("type") != "object":
            text = str(step.fields.get("output_schema"))
            message = "its output schema describes no object, which replies of models are here"
            node.lose(message, text, f"{node.pointer}/output_schema")
        return schema
    if not step.reply_read.fields:
        return {}
    names = ", ".join(step.reply_read.fields)
    node.change(
        f"other steps read {names} of its reply: it is asked for an object with these fields"
    )
    return step.reply_read.schema()


# -- edges -----------------------------------------------------------------------------------------


def _connect(workflow: _Workflow, step: _Step) -> None:
    """Add the edges into a step; those into a loop lead to the names by which it reads them."""
    entry = workflow.entries.get(step.id, workflow.targets[step.id])
    given = workflow.input
    names: Mapping[str, str] = {}
    if step.over and step.kind in _PROMPTED:
        names = _variables(workflow, step)
    for need, edge in zip(step.needs, step.edges, strict=True):
        if edge.outcome is None and need in workflow.targets:
            first = workflow.steps[need]
            edge.becomes(workflow.targets[need], entry, first.handle, names.get(need, "input"))
    graph = entry.graph
    for key, name in names.items():
        if key and key not in step.needs:
            new_edge(graph, workflow.targets[key].id, entry.id, workflow.steps[key].handle, name)
    circular = workflow.circular  # cycles will be broken
    is_reached = any(edge.edges for edge in step.edges) and circular.isdisjoint(
        {*workflow.before[step.id], step.id}
    )
    if "" in names or not is_reached:
        new_edge(graph, given.id, entry.id, target_handle=names.get("", "input"))


# -- templates -------------------------------------------------------------------------------------


def _added(workflow: _Workflow, step: _Step) -> list[str]:
    """Return the dependencies whose outputs are added to a prompt, because it does not name them."""
    before = workflow.before[step.id]
    return [
        key for key in dict.fromkeys(step.needs) if key in before and not is_named(key, step.prompt)
    ]


def _template(workflow: _Workflow, step: _Step, text: str, scope: _Scope) -> str:
    pieces = pieces_of(text, workflow.steps.keys(), in_loop=bool(step.over))
    return "".join(
        literal(piece) if isinstance(piece, str) else inserted(_shown(workflow, step, piece, scope))
        for piece in pieces
    )


def _shown(workflow: _Workflow, step: _Step, reference: Reference, scope: _Scope) -> str:
    """Return an expression of the text that a value is written as there: that of Python, or JSON."""
    expression = _expression(workflow, reference, scope, reference.written)
    kind = _schema_of(workflow, reference).get("type")
    match kind:
        case "boolean":
            value = expression if expression.startswith("(") else f"({expression})"
            is_sure = quoted(reference.written) not in expression
            otherwise = "" if is_sure else f"{value} if {value} is string else "
            return f"{otherwise}'True' if {value} else 'False'"
        case "number":
            return f"{expression} | string"
        case "object" | "array":
            _note_once(step, "objects and lists are written as JSON without spaces")
        case _:
            pass
    return expression


def _note_once(step: _Step, message: str) -> None:
    if all(note["message"] != message for note in step.node.notes):
        step.node.note("import-changed", message)


def _schema_of(workflow: _Workflow, reference: Reference) -> Mapping[str, Any]:
    """Return the schema of what a reference reads; an empty one where nothing is known."""
    match reference.root:
        case "input":
            return part_of(workflow.input_schema, reference.fields)
        case "step" if reference.step in workflow.steps:
            return part_of(workflow.steps[reference.step].result_schema, reference.fields)
        case _:
            return {}


def _input_of(workflow: _Workflow, reference: Reference, scope: _Scope) -> tuple[str, bool]:
    """Return the expression of a part of the input, whose fields may have a default, and whether it is there."""
    first, rest = reference.fields[:1], reference.fields[1:]
    default = part_of(workflow.input_schema, first).get("default") if first else None
    expression, is_sure = path(scope.input, first), is_certain(workflow.input_schema, first)
    written = None if default is None else json_expression(default)
    if written is not None:
        expression, is_sure = f"({expression} | default({written}))", True
    is_sure &= is_certain(part_of(workflow.input_schema, first), rest) if rest else True
    return path(expression, rest), is_sure


def _expression(
    workflow: _Workflow, reference: Reference, scope: _Scope, missing: str | None
) -> str:
    """Return the expression of a reference; where it has no value, ``missing`` stands there."""
    match reference.root:
        case "item" | "index":
            expression = path(reference.root, reference.fields)
            is_sure = not reference.fields
        case "input":
            expression, is_sure = _input_of(workflow, reference, scope)
        case "step" if reference.step in scope.steps:
            expression = path(scope.steps[reference.step], reference.fields)
            schema = workflow.steps[reference.step].result_schema
            is_sure = is_certain(schema, reference.fields)
        case _:
            return quoted(reference.written)  # the step is a placeholder for it
    return (
        expression if is_sure or missing is None else f"{expression} | default({quoted(missing)})"
    )
