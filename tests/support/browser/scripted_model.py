"""What the model of a browser test says: one script for planning, one reply for each step."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.llm.fake_llm_server import ReplyStep, TextReply, asks_for_plan, prompt_of
from tests.support.llm.planner_replies import reply_step, step_reply

DEFAULT_PLAN = step_reply(
    reply_step("first"),
    reply_step("second"),
    reply_step("last", "first", "second"),
    title="Two steps and a last one",
)


class Gate(asyncio.Event):
    """An event that any thread may set; the model waits for it in a thread of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting_loop: asyncio.AbstractEventLoop | None = None

    async def wait(self) -> bool:
        self._waiting_loop = asyncio.get_running_loop()
        return True if self.is_set() else await super().wait()

    def set(self) -> None:
        """Let whatever waits go on."""
        loop = self._waiting_loop
        if loop is None or loop.is_closed():
            super().set()
        else:
            loop.call_soon_threadsafe(super().set)


class ScriptedModel:
    """The replies of the model while one test runs.

    Attributes:
        plans: The replies to goals, in order: text, or a step with gates, cuts or errors. The last
            one is repeated.
        replies: The replies to steps of a plan, by a text of their prompt.
        agents: The replies to agents, one for each turn of theirs, by a text of their prompt.
        prompts: The prompts of all steps that were asked, in order.
    """

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.reset()

    def reset(self) -> None:
        """Forget what a test has scripted, and let its calls go on."""
        self.plans: list[str | ReplyStep] = [DEFAULT_PLAN]
        self.replies: Mapping[str, str | ReplyStep] = {}
        self.agents: Mapping[str, Sequence[str | ReplyStep]] = {}
        self.prompts.clear()

    def reply_to(self, body: dict[str, Any]) -> str | ReplyStep:
        """Return the reply to a request; see ``FakeLLMServer``."""
        if asks_for_plan(body):
            return self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]
        prompt = prompt_of(body)
        self.prompts.append(prompt)
        for text, replies in self.agents.items():
            if text in prompt:
                return replies[sum(each["role"] == "assistant" for each in body["messages"])]
        found = (reply for text, reply in self.replies.items() if text in prompt)
        return next(found, TextReply("Done.", chunks=3))
