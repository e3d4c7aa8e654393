"""What begins a workflow of n8n."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from planwave.interop.importing.n8n.kinds import Kind, Making
from planwave.interop.importing.n8n.workflow import Envelope, Step, Workflow
from planwave.interop.importing.reading import list_of, object_of, objects_in, text_of


def _start(making: Making) -> None:
    making.becomes("start")
    if making.step.kind == "formTrigger":
        making.step.node.change(
            "its form is not imported: whoever starts the flow gives its fields"
        )
    if making.step.kind == "executeWorkflowTrigger":
        return
    making.ignore(frozenset())


def _chat_start(making: Making) -> None:
    making.becomes("chat_start")
    if making.parameters.get("public") is True:
        making.step.node.change(
            "its public page is not imported: the chat of the flow takes its place"
        )


def _webhook(making: Making) -> None:
    method = text_of(making.parameters, "httpMethod") or "GET"
    name = text_of(making.parameters, "path") or making.step.name
    making.becomes("webhook", {"auth": "signature"})
    making.step.node.change(
        f"the path {name!r} is lost: the address of a webhook here is another one; it takes POST "
        f"(there {method})",
        f"{making.at}/path",
    )
    auth = text_of(making.parameters, "authentication") or "none"
    making.step.node.change(
        f"requests are signed here (there authentication is {auth}): say how a request proves its sender",
        making.at,
        hint="set auth and secrets",
    )
    making.workflow.conversion.needs("secret", "webhook", making.step.node.target)
    if text_of(making.parameters, "responseMode") == "lastNode":
        making.step.node.change("the result of the run is not its answer here: add a reply")


def _schedule(making: Making) -> None:
    rules = objects_in(object_of(making.parameters, "rule"), "interval")
    if making.step.kind == "cron":
        rules = objects_in(object_of(making.parameters, "triggerTimes"), "item")
    data: dict[str, Any] | None = None
    if len(rules) == 1:
        data = _times_of(rules[0][1])
    if data is None:
        making.lose("its times cannot be one schedule", json.dumps(dict(making.parameters)))
        data = {"everyS": 86_400}
    zone = text_of(making.workflow.settings, "timezone")
    if zone and zone != "DEFAULT":
        data["timezone"] = zone
    elif "cron" in data:
        making.step.node.change("its time zone is UTC here; there it is that of the server")
    making.becomes("schedule", data)


def _times_of(rule: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return cron or seconds of one rule of a schedule, or None."""
    unit = text_of(rule, "field") or text_of(rule, "mode") or "days"
    written = text_of(rule, "expression") or text_of(rule, "cronExpression")
    minute, hour = (
        _whole(rule.get(name), default)
        for name, default in (("triggerAtMinute", 0), ("triggerAtHour", 0))
    )
    every = _whole(rule.get(f"{unit}Interval"), 1)
    if None in (minute, hour, every) or written.startswith("="):
        return None
    if unit in ("cronExpression", "custom"):
        parts = written.split()
        if len(parts) == 6 and parts[0] == "0":
            parts = parts[1:]
        return {"cron": " ".join(parts)} if len(parts) == 5 else None
    if unit in ("seconds", "minutes", "hours"):
        if unit == "hours" and every == 1:
            return {"cron": f"{minute} * * * *"}
        seconds = int(every or 1) * {"seconds": 1, "minutes": 60, "hours": 3600}[unit]
        return {"everyS": max(10, seconds)}
    if every != 1:
        return None
    match unit:
        case "days" | "everyDay":
            return {"cron": f"{minute} {hour} * * *"}
        case "weeks":
            days = [str(d) for d in list_of(rule, "triggerAtDay") if d in range(7)] or ["0"]
            return {"cron": f"{minute} {hour} * * {','.join(days)}"}
        case "months":
            day = _whole(rule.get("triggerAtDayOfMonth"), 1)
            return None if day is None else {"cron": f"{minute} {hour} {day} * *"}
        case _:
            return None


def _whole(value: Any, default: int) -> int | None:
    """Return a whole number; the default if there is none, None if it is something else."""
    if value is None:
        return default
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _chat_envelope(workflow: Workflow, step: Step) -> Envelope:
    return Envelope(
        {("chatInput",): ("output", ("message",)), ("sessionId",): ("output", ("chatId",))}
    )


TRIGGERS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "manualTrigger": Kind(_start),
        "formTrigger": Kind(_start),
        "executeWorkflowTrigger": Kind(_start),
        "start": Kind(_start),
        "chatTrigger": Kind(_chat_start, envelope=_chat_envelope),
        "manualChatTrigger": Kind(_chat_start, envelope=_chat_envelope),
        "webhook": Kind(_webhook),
        "scheduleTrigger": Kind(_schedule),
        "cron": Kind(_schedule),
    }
)
