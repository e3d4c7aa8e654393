"""What Flowise's engine does with a flow of a few kinds of steps, to hold imports against.

Source: ``packages/server/src/utils/buildAgentflow.ts`` and the nodes ``LLM``, ``Condition``, ``Loop`` and
``DirectReply`` of Flowise 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_Message = tuple[str, str]
_REFERENCE = re.compile(r"\{\{(.*?)\}\}")


class Engine:
    """Runs one flow.

    Attributes:
        asked: The messages that each call of a model was sent.
        result: The text with which the run ended; None where its last step has none.
    """

    def __init__(
        self, document: Mapping[str, Any], question: str, reply: Callable[[int], str]
    ) -> None:
        self._nodes = {node["id"]: node["data"] for node in document["nodes"]}
        self._edges, self._question, self._reply = document["edges"], question, reply
        self._state: dict[str, str] = {}
        self._chat: list[_Message] = []
        self._outputs: dict[str, str] = {}
        self._rounds: dict[str, int] = {}
        self.asked: list[list[_Message]] = []
        self.result: str | None = None

    def run(self) -> None:
        """Run the flow from its start to the end of its queue."""
        queue = [node for node in self._nodes if node.startswith("start")]
        while queue:
            node = queue.pop(0)
            queue += getattr(self, f"_{self._nodes[node]['name'].removesuffix('Agentflow')}")(node)
            self.result = self._outputs.get(node)

    def _text(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name == "question":
                return self._question
            if name == "runtime_messages_length":
                return str(max(0, len(self._chat) - 1))
            if name.startswith("$flow.state."):
                return self._state.get(name.removeprefix("$flow.state."), match[0])
            return self._outputs.get(name, match[0])

        return _REFERENCE.sub(value, text)

    def _following(self, node: str, output: str | None = None) -> list[str]:
        ends = [edge for edge in self._edges if edge["source"] == node]
        return [e["target"] for e in ends if output is None or e["sourceHandle"].endswith(f"-output-{output}")]  # fmt: skip

    def _start(self, node: str) -> list[str]:
        for each in self._nodes[node]["inputs"].get("startState", []):
            self._state[each["key"]] = each["value"]
        return self._following(node)

    def _llm(self, node: str) -> list[str]:
        inputs, question = self._nodes[node]["inputs"], ("user", self._question)
        messages = [("user", self._text(each["content"])) for each in inputs["llmMessages"] or []]
        first = [] if self._chat else [question]
        written = list(messages)
        if inputs.get("llmEnableMemory"):
            messages += self._chat + first
            if user := self._text(inputs["llmUserMessage"]):
                messages.append(("user", user))
        elif not written:
            messages += first
        writes = {w["key"]: self._text(w["value"]) for w in inputs.get("llmUpdateState", [])}
        output = self._outputs[node] = self._reply(len(self.asked))
        self.asked.append(messages)
        if not self._chat:
            self._chat += [question] if inputs.get("llmEnableMemory") or not written else written
        self._chat.append(("user", output))
        self._state |= writes
        return self._following(node)

    def _condition(self, node: str) -> list[str]:
        tests = self._nodes[node]["inputs"]["conditions"]
        met = [self._text(t["value1"]) == self._text(t["value2"]) for t in tests]
        return self._following(node, str(met.index(True) if True in met else len(met)))

    def _loop(self, node: str) -> list[str]:
        inputs, count = self._nodes[node]["inputs"], self._rounds.get(node, 0) + 1
        self._outputs[node] = self._text(inputs["fallbackMessage"])
        if count >= inputs["maxLoopCount"]:
            return []
        self._rounds[node] = count
        return [inputs["loopBackToNode"].partition("-")[0]]

    def _directReply(self, node: str) -> list[str]:
        self._outputs[node] = self._text(self._nodes[node]["inputs"]["directReplyMessage"])
        return self._following(node)
