"""A model for agents whose prompt is its script: it calls the tools that the prompt says, in rounds.

A prompt is JSON: ``{"rounds": [[{"tool", "item", "text"}, …], …], "text"}``. The calls of a round are made in one
reply; ``text`` is the last reply. A call of another agent has its prompt as ``task`` in place of ``text``.
Replies depend on the request alone, so one model serves any number of agents and processes.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.llm.fake_llm_server import TextReply, ToolCallReply, task_of, tool_calls_of

USAGE = 7, 1
"""The tokens of every request and of every reply."""


def scripted_reply(body: dict[str, Any]) -> TextReply:
    """Return the reply to a request: the first round that was not called yet, or the last text."""
    script = json.loads(task_of(body))
    called = {call_id for call_id, _, _ in tool_calls_of(body)}
    for calls in script["rounds"]:
        if calls[0]["item"] not in called:
            made = [(call["tool"], _arguments(call), call["item"]) for call in calls]
            return ToolCallReply(made, usage=USAGE)
    return TextReply(script["text"], usage=USAGE)


def _arguments(call: dict[str, Any]) -> dict[str, str]:
    if "task" in call:
        return {"task": json.dumps(call["task"])}
    return {"item": call["item"], "text": call["text"]}
