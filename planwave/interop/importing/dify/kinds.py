"""The steps of Dify's apps: what each becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from planwave.interop.importing.dify.assignments import assigner
from planwave.interop.importing.dify.code_steps import code
from planwave.interop.importing.dify.conditions import conditions_of
from planwave.interop.importing.dify.extractors import parameter_extractor, question_classifier
from planwave.interop.importing.dify.flow import cases_of
from planwave.interop.importing.dify.jinja import jinja_template
from planwave.interop.importing.dify.list_steps import list_operator
from planwave.interop.importing.dify.models import agent, llm
from planwave.interop.importing.dify.regions import iteration, loop
from planwave.interop.importing.dify.requests import http_request
from planwave.interop.importing.dify.starts import start
from planwave.interop.importing.dify.steps import Step
from planwave.interop.importing.dify.values import Read, ValueKind
from planwave.interop.importing.reading import list_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, output_of, quoted

_MAX_HANDLE: Final = 200
"""Characters of the name of a branch."""


def _begin_round(step: Step) -> None:
    step.becomes("start", {})


def _if_else(step: Step) -> None:
    """Become a ``conditional`` whose handles are the ids of the cases."""
    chain: list[str] = []
    handles: list[str] = []
    for number, case in enumerate(cases_of(step.data)):
        handle = text_of(case, "case_id") or text_of(case, "id")
        made = conditions_of(case, lambda selector: step.scope.resolve(selector, step))
        if made.missing is not None:
            where = f"/cases/{number}" if "cases" in step.data else "/conditions"
            step.lose(made.missing.message, case.get("conditions"), where, made.missing.code)
        chain.append(f"{quoted(handle)} if {made.expression or 'false'} else ")
        handles.append(handle)
    handles = [*dict.fromkeys([*handles, "false"])]
    condition = inserted("".join(chain) + quoted("false"))
    if not all(0 < len(handle) <= _MAX_HANDLE and handle == handle.strip() for handle in handles):
        step.lose("one of its cases has no id that names a branch", handles, "/cases")
    main = step.becomes("conditional", {"condition": condition, "outputHandles": handles})
    step.exits = {handle: [(main, handle[:_MAX_HANDLE] or "output")] for handle in handles}
    step.outputs["result"] = Read("true")


def _answer(step: Step) -> None:
    """Become a ``text``, the result of the run, or a ``send_message`` where the run goes on."""
    text = step.text(text_of(step.data, "answer"), "/answer", missing='""')
    if _is_last(step):
        main = step.becomes("text", {"text": text})
        step.outputs["answer"] = Read(output_of(main.id), kind="text")
        return
    step.becomes("send_message", {"message": text})
    step.node.change("it is sent as a message during the run, and is no part of the result")


def _end(step: Step) -> None:
    """Become a ``transform`` that gives the object of its outputs."""
    fields: dict[str, str] = {}
    for number, each in objects_in(step.data, "outputs"):
        name = text_of(each, "variable")
        read = step.read(each.get("value_selector"), f"/outputs/{number}")
        if read is not None and name:
            fields[name] = inserted(read.else_("none"))
    if fields:
        step.becomes("transform", {"fields": fields})
    else:
        step.becomes("transform", {"expression": "{{ {} }}"})


def _is_last(step: Step) -> bool:
    return all(edge.source is not step for edge in step.app.edges.get(step.scope.region, ()))


def _template(step: Step) -> None:
    """Become a ``text`` with the same Jinja2 template."""
    variables = [each for _, each in objects_in(step.data, "variables")]
    text = jinja_template(step, text_of(step.data, "template"), variables, "/template")
    main = step.becomes("text", {"text": text})
    step.outputs["output"] = Read(output_of(main.id), kind="text")


_KIND_OF_OUTPUT: Final[Mapping[str, ValueKind]] = {"string": "text"}


def _aggregator(step: Step) -> None:
    """Become a ``transform`` that takes the first value that is there."""
    settings = object_of(step.data, "advanced_settings")
    if settings.get("group_enabled") is True:
        fields: dict[str, str] = {}
        for number, group in objects_in(settings, "groups"):
            name = text_of(group, "group_name")
            pointer = f"/advanced_settings/groups/{number}/variables"
            fields[name] = inserted(_first(step, group, pointer))
            kind = _kind_of(group)
            step.outputs[f"{name}.output"] = Read("", kind=kind)
        main = step.becomes("transform", {"fields": fields})
        for name in fields:
            kind = step.outputs[f"{name}.output"].kind
            step.outputs[f"{name}.output"] = Read(output_of(main.id, "output", [name]), kind=kind)
        return
    main = step.becomes(
        "transform", {"expression": inserted(_first(step, step.data, "/variables"))}
    )
    step.outputs["output"] = Read(output_of(main.id), kind=_kind_of(step.data))


def _kind_of(fields: Mapping[str, Any]) -> ValueKind:
    output_type = text_of(fields, "output_type")
    return "list" if output_type.startswith("array") else _KIND_OF_OUTPUT.get(output_type, "any")


def _first(step: Step, fields: Mapping[str, Any], pointer: str) -> str:
    """Return the expression of the first of several values whose step ran."""
    chain = ""
    for number, selector in enumerate(list_of(fields, "variables")):
        read = step.read(selector, f"{pointer}/{number}")
        if read is None:
            continue
        if read.guard is None:
            return f"{chain}{read.expression}"
        chain += f"{read.operand} if {read.guard} else "
    return f"{chain}none"


def _tool(step: Step) -> None:
    name = text_of(step.data, "tool_name") or text_of(step.data, "tool_label") or "tool"
    made = step.placeholder(
        f"the tool {name!r} of Dify has no counterpart",
        hint="call a tool, an MCP server or a flow that does the same in its place",
    )
    step.app.conversion.needs("tool", name, made)


def _no_counterpart(message: str, hint: str | None = None) -> Callable[[Step], None]:
    def become_placeholder(step: Step) -> None:
        step.placeholder(message, hint)

    return become_placeholder


KINDS: Final[Mapping[str, Callable[[Step], None]]] = MappingProxyType(
    {
        "start": start,
        "iteration-start": _begin_round,
        "loop-start": _begin_round,
        "loop-end": _no_counterpart("a loop here ends after a round, not within one"),
        "llm": llm,
        "answer": _answer,
        "end": _end,
        "if-else": _if_else,
        "question-classifier": question_classifier,
        "parameter-extractor": parameter_extractor,
        "template-transform": _template,
        "variable-aggregator": _aggregator,
        "variable-assigner": _aggregator,
        "http-request": http_request,
        "iteration": iteration,
        "loop": loop,
        "agent": agent,
        "assigner": assigner,
        "code": code,
        "tool": _tool,
        "knowledge-retrieval": _no_counterpart(
            "a search in a knowledge base has no counterpart",
            "ask your search service over HTTP, or by a tool of an agent",
        ),
        "document-extractor": _no_counterpart("the text of documents cannot be read here"),
        "list-operator": list_operator,
        "human-input": _no_counterpart(
            "its form differs between versions", "ask by an approval in its place"
        ),
    }
)
"""What becomes of each type of step; any other one is a placeholder."""
