"""Many lives of one directory in which agents act, and the world that they act on."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from planwave.events import Event
from planwave.providers.protocols import CallKey
from planwave.providers.recordings import idempotency_key
from planwave.storage.records import ExecutionRecord, StoredCall
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.agent_documents import ASKING, DELEGATE, EFFECTS
from tests.support.llm.fake_llm_server import FakeLLMServer, TextReply, fake_llm_in_thread
from tests.support.llm.scripted_agent_model import scripted_reply
from tests.support.mcp.servers import Marks
from tests.support.outbound.acting_service import acting_service
from tests.support.recovery.acts import Act, read_acts
from tests.support.recovery.agent_child import API_KEY, AgentOptions
from tests.support.recovery.crash_history import CrashHistory, ProcessRun
from tests.support.recovery.crash_points import record_kind

_SHORTEST_REPLY_S, _LONGEST_REPLY_S = 0.005, 0.02


class _Snapshot(NamedTuple):
    """How things stood after one life.

    Attributes:
        requests: How many requests the model had received.
        acts: How often tools had acted.
        paid: The idempotency keys of model calls whose replies are recorded.
        done: The items of tool calls whose results are recorded.
    """

    requests: int
    acts: int
    paid: frozenset[str]
    done: frozenset[str]


@dataclass
class Question:
    """A question about a call, and its answer once there is one."""

    kind: str
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any] | None = None


@dataclass
class AgentHistory(CrashHistory):
    """The lives of one directory of agents.

    Attributes:
        llm: The model.
        service: ``host:port`` of the HTTP service.
        snapshots: How things stood after each life.
    """

    llm: FakeLLMServer = field(default_factory=FakeLLMServer)
    service: str = ""
    snapshots: list[_Snapshot] = field(default_factory=list)
    program: ClassVar[str] = "from tests.support.recovery.agent_child import main; main()"
    longest_s: ClassVar[float] = 0.8

    @property
    def acts(self) -> list[Act]:
        """All that tools did, in order."""
        return read_acts(self._act_log)

    @property
    def mcp_marks(self) -> Marks:
        """What MCP servers wrote."""
        return Marks(self.directory.parent / "mcp.marks")

    @property
    def paid_keys(self) -> list[str]:
        """The idempotency keys of all requests that the model received, in order."""
        return [request.headers["idempotency-key"] for request in self.llm.requests]

    @property
    def _act_log(self) -> Path:
        return self.directory.parent / "acts.log"

    def options(self, **order: Any) -> AgentOptions:
        return AgentOptions(
            directory=str(self.directory),
            llm_url=self.llm.openai_url,
            service=self.service,
            act_log=str(self._act_log),
            mcp_marks=str(self.mcp_marks.path),
            **order,
        )

    def run(self, kill_after_s: float | None = None, **order: Any) -> ProcessRun:
        life = super().run(kill_after_s, **order)
        requests, acts, calls = len(self.llm.requests), len(self.acts), self.recorded_calls()
        paid = {idempotency_key(each.key) for each in calls if record_kind(each.reply) == "model"}
        done = {item for each in calls if (item := _item_of(each)) is not None}
        self.snapshots.append(_Snapshot(requests, acts, frozenset(paid), frozenset(done)))
        return life

    def recorded_calls(self) -> list[StoredCall]:
        """Return all that is recorded of calls, and beside them."""
        return asyncio.run(_recorded_calls(self.directory))

    def questions(self) -> dict[str, list[Question]]:
        """Return what was asked about each call, by its item, in order."""
        found: dict[str, list[Question]] = {}
        for _, events in self.stored().values():
            for item, question in _questions_in(events):
                found.setdefault(item, []).append(question)
        return found

    def document(self, execution_id: str) -> dict[str, Any]:
        """Return the document of an execution that has ended."""
        path = self.directory / f"{execution_id}.json"
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found

    # -- invariants --------------------------------------------------------------------------------

    def check(self, *, is_over: bool = True) -> None:
        """Hold everything to the invariants, and what agents did to what is recorded and was allowed."""
        super().check(is_over=is_over)
        self._check_paid_once()
        self._check_acts(self.questions())
        self._check_secret()
        if is_over:
            for own, (record, events) in self.stored().items():
                self._check_document(own, record, events)

    def _check_secret(self) -> None:
        """I10: the key of the provider is in no file."""
        for path in self.directory.parent.rglob("*"):
            assert not path.is_file() or API_KEY.encode() not in path.read_bytes(), path

    def _check_paid_once(self) -> None:
        """I6: what is recorded is neither requested nor done again by any later life."""
        keys, acts = self.paid_keys, self.acts
        for each in self.snapshots:
            assert not each.paid & {*keys[each.requests :]}, "paid for, and requested again"
            again = each.done & {act.item for act in acts[each.acts :]}
            assert not again, f"{again} were done, and are done again"
        bodies: dict[str, Any] = {}
        for key, request in zip(keys, self.llm.requests, strict=True):
            assert bodies.setdefault(key, request.body) == request.body, f"{key} is of two requests"

    def _check_acts(self, questions: Mapping[str, list[Question]]) -> None:
        """I6: each effect is repeated only as it may be, and nothing acts that a person did not allow."""
        acts_on: dict[str, list[Act]] = {}
        for act in self.acts:
            acts_on.setdefault(act.item, []).append(act)
        for item, acts in acts_on.items():
            asked = questions.get(item, [])
            (tool,) = {act.tool for act in acts}
            assert len({act.key for act in acts}) == 1, f"{item} had several idempotency keys"
            assert len(acts) <= len(self.runs), f"{item} was done twice in one life"
            if EFFECTS[tool] == "once":
                again = sum(_decision(each) == "run_again" for each in asked)
                assert len(acts) <= 1 + again, f"{item} was done again, and nobody allowed it"
            else:
                assert not [each for each in asked if each.kind == "interrupted"]
            approvals = [each for each in asked if each.kind == "approval"]
            assert approvals or tool not in ASKING, f"nobody was asked about {item}"
            for each in approvals:
                assert _decision(each) == "approve", f"{item} was done, and nobody approved it"
                assert {act.text for act in acts} == {_approved_arguments(each)["text"]}
        for item, asked in questions.items():
            kinds = Counter(each.kind for each in asked)
            assert kinds["approval"] <= 1, f"{item} was to be approved twice"
            assert kinds["interrupted"] < len(self.runs)

    def _check_document(self, own: str, record: ExecutionRecord, events: list[Event]) -> None:
        """Hold the calls in a document to what the model and the tools saw."""
        keys, acts = {*self.paid_keys}, self.acts
        questions = dict[str, list[Question]]()
        for item, question in _questions_in(events):
            questions.setdefault(item, []).append(question)
        shown_keys, shown_items = set[str](), list[str]()
        for node in self.document(own)["nodes"]:
            for call in node.get("calls", ()):
                key = idempotency_key(
                    CallKey(own, node["path"], call["attempt"], call["ordinal"], "")
                )
                if call["kind"] == "model":
                    assert key in keys, f"{key} is in the document, and was never requested"
                    shown_keys.add(key)
                elif call["name"] != DELEGATE:
                    item = call["request"]["arguments"]["item"]
                    shown_items.append(item)
                    _check_call(call, key, [a for a in acts if a.item == item], questions)
        assert len(shown_items) == len({*shown_items}), "a call is in the document twice"
        if record.status == "completed":
            cut = tuple(f"{own}/{e.path}/" for e in events if e.type == "node.cancelled")
            requested = {key for key in keys if key.startswith(f"{own}/")}
            missing = {key for key in requested - shown_keys if not key.startswith(cut)}
            assert not missing, f"the document lacks the model calls {missing}"
            missing = (_started_items(events) & {act.item for act in acts}) - {*shown_items}
            assert not missing, f"the document lacks {missing}"


def _check_call(
    call: Mapping[str, Any], key: str, acts: list[Act], questions: Mapping[str, list[Question]]
) -> None:
    """Hold one call of a tool in a document to what the tool did."""
    arguments = call["request"]["arguments"]
    given = [
        each.answer["value"]
        for each in questions.get(arguments["item"], ())
        if each.answer is not None and each.answer["decision"] == "give_result"
    ]
    if "error" in call:
        assert call["error"]["code"] == "interrupted"
        assert "fail" in [_decision(each) for each in questions[arguments["item"]]]
    elif given:
        assert call["result"] == given[0]
    else:
        assert acts, f"the document shows {call}, which no tool did"
        assert call["result"] == f"{acts[0].tool} {acts[0].item} {arguments['text']}"
    assert {act.text for act in acts} <= {arguments["text"]}
    assert {act.key for act in acts} <= {key, ""}


def _decision(question: Question) -> str | None:
    return None if question.answer is None else question.answer["decision"]


def _approved_arguments(question: Question) -> Mapping[str, Any]:
    assert question.answer is not None
    changed: Mapping[str, Any] = question.answer.get("value", question.arguments)
    return changed


def _questions_in(events: list[Event]) -> Iterator[tuple[str, Question]]:
    answers: dict[str, Any] = {}
    for event in events:
        if event.type == "node.answered":
            assert event.data["request_id"] not in answers, "answered twice"
            answers[event.data["request_id"]] = event.data["answer"]
    for event in events:
        if event.type == "node.waiting" and "tool" in event.data["request"]:
            asked = event.data["request"]
            answer = answers.get(event.data["request_id"])
            yield asked["tool"]["call_id"], Question(asked["kind"], asked["value"], answer)


def _started_items(events: list[Event]) -> set[str]:
    """Return the items of the calls that agents started, but for agents that were cut off.

    One that fails, as a person let a call of it fail, ends its other calls.
    """
    cut = {event.path for event in events if event.type in ("node.cancelled", "node.failed")}
    return {
        event.data["data"]["call_id"]
        for event in events
        if event.type == "node.event"
        and event.data["event_type"] == "tool_call_start"
        and event.path not in cut
    }


def _item_of(call: StoredCall) -> str | None:
    """Return the item of a recorded call of a tool that acts."""
    if record_kind(call.reply) in ("model", "begun", "agent"):
        return None
    item: str = call.reply["request"]["arguments"]["item"]
    return item


async def _recorded_calls(directory: Path) -> list[StoredCall]:
    store = SqliteStore.open(directory, read_only=True)
    own = [record.execution_id for record in await store.executions(limit=100_000)]
    found = await store.calls(own)
    await store.close()
    return [call for calls in found.values() for call in calls]


@contextmanager
def agent_history(directory: Path, seed: int = 0) -> Iterator[AgentHistory]:
    """Run the world of agents: a model that takes its time, and an HTTP service."""
    choose = Random(seed)  # noqa: S311 - a test's choices

    async def reply(body: dict[str, Any]) -> TextReply:
        await asyncio.sleep(choose.uniform(_SHORTEST_REPLY_S, _LONGEST_REPLY_S))
        return scripted_reply(body)

    with (
        fake_llm_in_thread(reply_to=reply) as llm,
        acting_service(directory / "acts.log") as service,
    ):
        yield AgentHistory(directory / "storage", llm=llm, service=service)
