"""Steps of n8n that wait, answer a request, and run another workflow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from planwave.interop.importing.drafts import Target, new_edge
from planwave.interop.importing.javascript.values import STRING
from planwave.interop.importing.n8n.answers import hand_on_one_item, is_one_item
from planwave.interop.importing.n8n.kinds import Kind, Making, flow_name, literal_data
from planwave.interop.importing.reading import json_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, output_of


def _wait(making: Making) -> None:
    resume = text_of(making.parameters, "resume") or "timeInterval"
    if resume == "timeInterval":
        unit = text_of(making.parameters, "unit") or (
            "seconds" if making.step.version > 1 else "hours"
        )
        default = 5 if making.step.version > 1 else 1
        amount = making.parameters.get("amount", default)
        seconds = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}.get(unit)
        if seconds is None or isinstance(amount, bool) or not isinstance(amount, int | float):
            making.lose("the time that it waits is calculated", str(amount), "amount")
            amount, seconds = 1, 1
        if not 0 <= amount * seconds <= 31_622_400:
            making.lose("it waits longer than a year", str(amount), "amount")
            amount, seconds = 1, 1
        making.becomes("wait", {"seconds": amount * seconds})
        return
    making.becomes("wait", {"seconds": 1})
    making.lose(f"it waits for a {resume}", resume, "resume")


def _respond(making: Making) -> None:
    kind = text_of(making.parameters, "respondWith") or "firstIncomingItem"
    headers = {
        text_of(each, "name"): making.fields.template(
            each.get("value"), f"{making.at}/options/responseHeaders/entries/{number}/value"
        )
        for number, each in objects_in(object_of(making.options, "responseHeaders"), "entries")
    }
    status = making.options.get("responseCode", 200)
    if not isinstance(status, int) or isinstance(status, bool) or not 200 <= status <= 599:
        making.lose("its status is calculated", str(status), "options/responseCode")
        status = 200
    goes_on = bool(making.workflow.out_of(making.step.name))
    arrived = making.becomes("transform", {"expression": "{{ input }}"}, suffix="arrived")
    body = _response_body(making, kind, headers)
    data: dict[str, Any] = {"status": status}
    if headers:
        data["headers"] = headers
    reply = making.becomes("webhook_reply", data, suffix="" if not goes_on else "reply")
    if any("{{" in value for value in headers.values()):
        making.lose("its headers are calculated", json.dumps(headers), "options/responseHeaders")
    new_edge(making.graph, arrived.id, body.id)
    new_edge(making.graph, body.id, reply.id)
    if goes_on:
        text = inserted(output_of(arrived.id))
        after = making.becomes("transform", {"expression": text})
        new_edge(making.graph, reply.id, after.id)


def _response_body(making: Making, kind: str, headers: dict[str, str]) -> Target:
    if kind == "noData":
        return making.becomes("text", {"text": ""}, suffix="body")
    if kind in ("firstIncomingItem", "allIncomingItems"):
        item = making.fields.item_text()
        text = item if kind == "firstIncomingItem" else f"[{item}]"
        return making.becomes("transform", {"expression": inserted(text)}, suffix="body")
    written, at = making.parameters.get("responseBody"), f"{making.at}/responseBody"
    if kind == "text":
        return making.becomes("text", {"text": making.fields.template(written, at)}, suffix="body")
    if kind == "json":
        return _json_body(making, written, at, headers)
    making.lose(f"it answers with {kind}", kind, "respondWith")
    return making.becomes("text", {"text": ""}, suffix="body")


def _json_body(making: Making, written: Any, at: str, headers: dict[str, str]) -> Target:
    if isinstance(written, str) and not written.startswith("="):
        try:
            value = literal_data(json_of(written))
        except ValueError:
            making.lose("its JSON is none", written, "responseBody")
            value = None
        return making.becomes("json", {"value": value}, suffix="body")
    made = making.fields.whole(written, at)
    if made is not None and made.kinds != STRING:
        return making.becomes("transform", {"expression": made.template}, suffix="body")
    headers.setdefault("content-type", "application/json")
    text = made.template if made is not None else making.fields.template(written, at)
    return making.becomes("text", {"text": text}, suffix="body")


def _execute_workflow(making: Making) -> None:
    reference = making.parameters.get("workflowId")
    name = flow_name(reference)
    source = text_of(making.parameters, "source") or "database"
    if source != "database" or not name or name.startswith("="):
        making.lose("the workflow that it runs is not named", str(reference), "workflowId")
        name = name or "flow"
    given = object_of(making.parameters, "workflowInputs")
    before: Target | None = None
    if text_of(given, "mappingMode") == "defineBelow" and object_of(given, "value"):
        at = f"{making.at}/workflowInputs/value"
        fields = making.fields.data(object_of(given, "value"), at)
        before = making.becomes("transform", {"fields": fields}, suffix="inputs")
    is_one = is_one_item(making)
    inner = making.becomes("inner", {"flow": {"name": name}}, suffix="workflow" if is_one else "")
    making.workflow.conversion.needs("flow", name, inner)
    making.step.node.change(f"it runs the flow {name!r}, which has to be stored first")
    if before is not None:
        new_edge(making.graph, before.id, inner.id)
    if is_one:
        hand_on_one_item(making, inner)


CONTROL: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "wait": Kind(_wait, passes=True),
        "respondToWebhook": Kind(_respond, passes=True),
        "executeWorkflow": Kind(_execute_workflow),
    }
)
