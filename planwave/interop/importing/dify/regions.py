"""Iterations and loops: steps with steps inside, as ``loop`` and ``while``.

What a body reads of steps outside is worked out before it, in a ``transform``, and passed in through an
``inner`` around the loop, as ``outer``: a body here sees nothing outside by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planwave.interop.importing.dify.assignments import LoopVariables
from planwave.interop.importing.dify.conditions import conditions_of
from planwave.interop.importing.dify.flow import convert_steps
from planwave.interop.importing.dify.steps import OUTER, Scope, Step
from planwave.interop.importing.dify.values import Missing, Read
from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.reading import list_of, number_of, text_of
from planwave.interop.importing.templates import inserted, output_of

_ON_ERROR: Final = {
    "": "fail",
    "terminated": "fail",
    "continue-on-error": "null",
    "remove-abnormal-output": "skip",
}
_MAX_PARALLEL: Final = 100
_MAX_DEPTH: Final = 2
"""Loops inside each other, each of which may be two graphs deep; the limit ``nested_depth`` is 5. Dify's own
editor puts none into another."""


def iteration(step: Step) -> None:
    """Become a ``loop``."""
    items = step.read(step.data.get("iterator_selector"), "/iterator_selector")
    mode = text_of(step.data, "error_handle_mode")
    if mode not in _ON_ERROR:
        step.lose("this way to handle failing items is not known", mode, "/error_handle_mode")
    parallel = 1
    if step.data.get("is_parallel") is True:
        parallel = int(min(max(number_of(step.data, "parallel_nums") or 10, 1), _MAX_PARALLEL))
    data: dict[str, Any] = {"parallel": parallel, "onItemError": _ON_ERROR.get(mode, "fail")}

    def local(names: Sequence[str], reader: Step) -> Read | Missing:
        if tuple(names) == ("index",):
            return Read("index", kind="whole")
        if tuple(names) == ("item",):
            is_text = text_of(step.data, "iterator_input_type") == "array[string]"
            return Read("item", kind="text" if is_text else "any")
        if names[0] in ("item", "index"):
            return Read(names[0]).field(names[1:])
        return Missing(f"{names[0]!r} is no value of an iteration")

    body = _body(step, local)
    result = body.resolve(_selector(step), None)
    if isinstance(result, Missing):
        step.lose(result.message, ".".join(_selector(step)), "/output_selector", result.code)
        result = Read("none")
    _add_result(step, body, {"expression": inserted(result.else_("none"))})
    data["body"] = body.draft.document()
    _hold(step, body, "loop", data, {"items": "[]" if items is None else items.else_("[]")})
    output = Read(output_of(step.main.id), kind="list")
    if result.kind == "list" and step.data.get("flatten_output") is not False:
        output = Read(f"{output.expression} | sum(start=[])", kind="list")
    elif result.kind == "any" and step.data.get("flatten_output") is not False:
        step.node.change("if each item gives a list, they stay lists here; there they are joined")
    step.outputs["output"] = output


def loop(step: Step) -> None:
    """Become a ``while`` over the loop's variables, if what they are set to can be read."""
    rounds = number_of(step.data, "loop_count")
    if rounds is None or rounds < 1:
        step.lose(
            "the number of its rounds is not known", step.data.get("loop_count"), "/loop_count"
        )
        rounds = 1
    variables = LoopVariables(step)
    body = _body(step, variables.read)
    variables.check(body)
    end = conditions_of(
        {**step.data, "conditions": step.data.get("break_conditions") or []},
        lambda selector: _of_break(step, body, selector),
    )
    stop = end.expression
    if end.missing is not None:
        step.lose(
            end.missing.message,
            step.data.get("break_conditions"),
            "/break_conditions",
            end.missing.code,
        )
        stop = "false"
    if not step.data.get("break_conditions"):
        stop = "false"
    _add_result(step, body, {"fields": {n: inserted(e) for n, e in variables.results().items()}})
    condition = f"index < {int(rounds)}" + ("" if stop == "false" else f" and not ({stop})")
    data: dict[str, Any] = {"condition": inserted(condition), "body": body.draft.document()}
    _hold(step, body, "while", data, {"initial": variables.initial()})
    for name, kind in variables.kinds.items():
        step.outputs[name] = Read(output_of(step.main.id, "output", [name]), kind=kind)
    step.outputs["loop_round"] = Read(output_of(step.main.id, "iterations"), kind="whole")


def _of_break(step: Step, body: Scope, selector: tuple[str, ...]) -> Read | Missing:
    """Read a value before a round: the loop's variables alone are there then."""
    if selector[:1] == (step.id,) and len(selector) > 1:
        return Read("value").field(selector[1:])
    if len(selector) > 1 and (special := step.app.special(selector, step)) is not None:
        return special
    owner = step.app.by_id.get(selector[0]) if selector else None
    if owner is not None and owner.scope is body:
        return Missing("it ends by the output of a step inside")
    return body.resolve(selector, step) if owner is not None else Missing("it names no value")


def _selector(step: Step) -> tuple[str, ...]:
    return tuple(map(str, list_of(step.data, "output_selector")))


def _body(step: Step, local: Any) -> Scope:
    """Convert the steps inside."""
    depth, around = 1, step.scope.region
    while around is not None:
        depth, around = depth + 1, around.scope.region
    if depth > _MAX_DEPTH:
        step.lose(f"it is inside {depth - 1} others: graphs here are not nested so deep", step.id)
    draft = GraphDraft("", step.node)
    step.app.drafts.append(draft)
    scope = Scope(step.app, draft, step)
    scope.locals = local
    convert_steps(step.app, scope)
    if not scope.steps:
        step.lose("it has no step inside to begin with", step.id)
    return scope


def _add_result(step: Step, body: Scope, data: Mapping[str, Any]) -> None:
    """Add the node that gives what a round gives, after all others."""
    result = step.node.becomes("transform", data, node_id="result", name="Result", graph=body.draft)
    for each in body.steps:
        used = {edge.handle for edge in step.app.edges.get(step, ()) if edge.source is each}
        for handle, exits in each.exits.items():
            for target, target_handle in () if handle in used else exits:
                new_edge(body.draft, target.id, result.id, target_handle)


def _hold(
    step: Step, body: Scope, node_type: str, data: dict[str, Any], begin: Mapping[str, Any]
) -> None:
    """Add the node with the body, and what passes in what the body reads outside."""
    results = [target for target in step.node.targets if target.graph is body.draft]
    step.node.targets.clear()
    (field, value), *_ = begin.items()
    if not body.captured:
        main = step.becomes(node_type, {field: _templated(value), **data})
        step.app.holders[id(body.draft)] = main
    else:
        main = _hold_in_inner(step, body, node_type, data, field, value)
    step.node.targets.extend(results)


def _hold_in_inner(
    step: Step, body: Scope, node_type: str, data: dict[str, Any], field: str, value: Any
) -> Target:
    draft = GraphDraft("", step.node)
    step.app.drafts.append(draft)
    held: dict[str, Any] = {"inputs": {OUTER: "json"}, "graph": draft.document()}
    main = step.becomes("inner", held)
    inside = step.add(node_type, {field: inserted(f"{OUTER}.begin"), **data}, graph=draft)
    if node_type == "while":
        held["outputs"] = {"iterations": f"{inside.id}.iterations"}
        main.node["data"]["outputs"] = held["outputs"]
    fields = {name: inserted(read.else_("none")) for name, read in body.captured.values()}
    before = step.add("transform", {"fields": {"begin": _templated(value), **fields}}, "outer")
    new_edge(main.graph, before.id, main.id, "output", OUTER)
    step.entries = [before]
    step.app.holders[id(draft)] = main
    step.app.holders[id(body.draft)] = inside
    return main


def _templated(value: str | Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return inserted(value)
    return {name: inserted(each) for name, each in value.items()}


def settle_paths(drafts: Sequence[GraphDraft], holders: Mapping[int, Target]) -> None:
    """Give each body its path in the report, once it is known which node holds it."""
    for draft in reversed(drafts):
        parts: list[str] = []
        holder = holders.get(id(draft))
        while holder is not None:
            parts.append(f"{holder.id}/")
            holder = holders.get(id(holder.graph))
        draft.path = "".join(reversed(parts))
