"""Steps of n8n that choose a way."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from planwave.interop.importing.drafts import GraphDraft
from planwave.interop.importing.n8n import conditions
from planwave.interop.importing.n8n.kinds import Kind, Making
from planwave.interop.importing.n8n.workflow import Step
from planwave.interop.importing.reading import number_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, quoted


def _if(making: Making) -> None:
    at = f"{making.at}/conditions"
    if making.step.version >= 2:
        condition = conditions.condition_of(making.fields, making.parameters.get("conditions"), at)
    else:
        condition = conditions.old_condition_of(making.fields, making.parameters, making.at)
    data = {
        "condition": inserted(f"'true' if {condition} else 'false'"),
        "outputHandles": ["true", "false"],
    }
    making.becomes("conditional", data)


def _switch_handles(step: Step) -> list[str]:
    if text_of(step.parameters, "mode") == "expression":
        count = int(
            number_of(step.parameters, "numberOutputs")
            or number_of(step.parameters, "outputsAmount")
            or 4
        )
        return [f"output-{i}" for i in range(min(max(count, 1), 50))]
    rules = _switch_rules(step)
    taken = set[str]()
    handles = [_handle(rule, number, taken) for number, (_, rule) in enumerate(rules)]
    options = object_of(step.parameters, "options")
    fallback = options.get("fallbackOutput", step.parameters.get("fallbackOutput", "none"))
    if fallback == "extra":
        handles.append(_free(text_of(options, "renameFallbackOutput") or "fallback", taken))
    else:
        handles.append(_free("none", taken))
    return handles


def _switch_rules(step: Step) -> list[tuple[int, Mapping[str, Any]]]:
    rules = object_of(step.parameters, "rules")
    return objects_in(rules, "values") or objects_in(rules, "rules")


def _handle(rule: Mapping[str, Any], number: int, taken: set[str]) -> str:
    name = text_of(rule, "outputKey") if rule.get("renameOutput", True) else ""
    return _free(name or f"case-{number}", taken)


def _free(name: str, taken: set[str]) -> str:
    """Return a name of an output that none has, in the characters that outputs have."""
    draft = GraphDraft()
    for each in taken:
        draft.new_id(each)
    draft.new_id("error")
    handle = draft.new_id(name.strip())
    taken.add(handle)
    return handle


def _switch(making: Making) -> None:
    step, handles = making.step, making.step.handles
    if text_of(step.parameters, "mode") == "expression":
        value = making.fields.translated(step.parameters.get("output"), f"{making.at}/output")
        condition = f"'output-' ~ ({value.atom} | int)"
    else:
        condition = _rules_condition(making)
    if making.options.get("allMatchingOutputs") is True:
        making.lose("several of its outputs may be taken at once", "allMatchingOutputs", "options")
    regular = [handle for handle in handles if handle != "error"]
    making.becomes("conditional", {"condition": inserted(condition), "outputHandles": regular})


def _rules_condition(making: Making) -> str:
    step, cases = making.step, list[str]()
    rules = _switch_rules(step)
    is_old = "rules" in object_of(step.parameters, "rules")
    place = "rules" if is_old else "values"
    for (number, rule), handle in zip(rules, step.handles, strict=False):
        at = f"{making.at}/rules/{place}/{number}"
        if is_old:
            kind = text_of(step.parameters, "dataType") or "number"
            operation = text_of(rule, "operation") or ("smaller" if kind == "number" else "equal")
            values = (step.parameters.get("value1"), rule.get("value2"))
            condition = conditions.rule_of(making.fields, kind, operation, values, at)
            if text_of(rule, "output") not in ("", str(number)):
                making.lose("a rule leads to another output than its own", text_of(rule, "output"))
        else:
            condition = conditions.condition_of(
                making.fields, rule.get("conditions"), f"{at}/conditions"
            )
        cases.append(f"{quoted(handle)} if {condition} else ")
    fallback = making.options.get("fallbackOutput", step.parameters.get("fallbackOutput", "none"))
    last = quoted([h for h in step.handles if h != "error"][-1])
    if isinstance(fallback, int) and not isinstance(fallback, bool) and 0 <= fallback < len(rules):
        last = quoted(step.handles[fallback])
    return f"{''.join(cases)}{last}"


def _true_false(step: Step) -> list[str]:
    return ["true", "false"]


BRANCHES: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "if": Kind(_if, _true_false, passes=True),
        "filter": Kind(_if, _true_false, passes=True),
        "switch": Kind(_switch, _switch_handles, passes=True),
    }
)
