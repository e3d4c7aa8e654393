"""Many lives of one directory in which agents act, and the world that they act on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from planwave.events import Event, fold
from planwave.providers.protocols import CallKey
from planwave.providers.recordings import idempotency_key
from planwave.storage.records import ExecutionRecord, StoredCall
from tests.support.graph.agent_documents import ASKING, DELEGATE, EFFECTS
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    TextReply,
    ToolCallReply,
    fake_llm_in_thread,
)
from tests.support.llm.scripted_agent_model import scripted_reply
from tests.support.mcp.servers import Marks
from tests.support.outbound.acting_service import acting_service
from tests.support.recovery.acts import Act, read_acts
from tests.support.recovery.agent_child import API_KEY, AgentOptions
from tests.support.recovery.crash_history import CrashHistory, ProcessRun
from tests.support.recovery.crash_points import record_kind
from tests.support.storage.either_database import Place

_SHORTEST_REPLY_S, _LONGEST_REPLY_S = 0.005, 0.02
_CUT_REPLIES = 0.2
"""The share of last replies whose streams are cut: such an attempt fails, and its policy decides."""


class _Snapshot(NamedTuple):
    """How things stood after one life.

    Attributes:
        requests: How many requests the model had received.
        acts: How often tools had acted.
        paid: The idempotency keys of model calls whose replies are recorded.
        done: The idempotency keys of tool calls whose results are recorded.
    """

    requests: int
    acts: int
    paid: frozenset[str]
    done: frozenset[str]


@dataclass
class Question:
    """A question about a call, and its answer once there is one.

    Attributes:
        kind: ``interrupted``, ``approval``, or ``repetition`` of what an earlier attempt or execution
            called.
        place: The execution and the path of the question.
        arguments: Those of the call.
        answer: The answer.
        is_withdrawn: Whether it was cancelled without one: a call beside it had failed.
    """

    kind: str
    place: tuple[str, str]
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any] | None = None
    is_withdrawn: bool = False


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
    least_cpu_share: ClassVar[float] = 0.4

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
            database_url=self.place.database_url,
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
        done = {idempotency_key(each.key) for each in calls if _is_of_tool(each)}
        self.snapshots.append(_Snapshot(requests, acts, frozenset(paid), frozenset(done)))
        return life

    def recorded_calls(self) -> list[StoredCall]:
        """Return all that is recorded of calls, and beside them."""
        return asyncio.run(_recorded_calls(self.place))

    def questions(self) -> dict[str, list[Question]]:
        """Return what was asked about each call, by its item, in order."""
        found: dict[str, list[Question]] = {}
        for _, events in self.stored().values():
            for item, question in _questions_in(events):
                found.setdefault(item, []).append(question)
        return found

    # -- invariants --------------------------------------------------------------------------------

    def check(self, *, is_over: bool = True) -> None:
        """Hold everything to the invariants, and what agents did to what is recorded and was allowed."""
        super().check(is_over=is_over)
        stored = self.stored()
        retried = _retried_paths(events for _, events in stored.values())
        self._check_paid_once(retried)
        questions = self.questions()
        self._check_acts(questions, retried)
        self._check_forks(stored)
        self._check_secret()
        if is_over:
            for own, (record, events) in stored.items():
                self._check_document(own, record, events, questions)

    def _check_secret(self) -> None:
        """I10: the key of the provider is in no file."""
        for path in self.directory.parent.rglob("*"):
            assert not path.is_file() or API_KEY.encode() not in path.read_bytes(), path

    def _check_paid_once(self, retried: _Retried) -> None:
        """I6: what is recorded is neither requested nor done again by any later life.

        Other attempts make their own calls, with the same keys.
        """
        keys, acts = self.paid_keys, self.acts
        for each in self.snapshots:
            again = each.paid & {*keys[each.requests :]}
            assert all(map(retried.has, again)), "paid for, and requested again"
            again = each.done & {act.key for act in acts[each.acts :]}
            assert all(map(retried.has, again)), f"{again} were done, and are done again"
        bodies: dict[str, Any] = {}
        for key, request in zip(keys, self.llm.requests, strict=True):
            if retried.has(key):
                continue
            assert bodies.setdefault(key, request.body) == request.body, f"{key} is of two requests"

    def _check_acts(self, questions: Mapping[str, list[Question]], retried: _Retried) -> None:
        """I6: each effect is repeated only as it may be, and nothing acts that a person did not allow."""
        acts_on: dict[str, list[Act]] = {}
        for act in self.acts:
            acts_on.setdefault(act.item, []).append(act)
        for item, acts in acts_on.items():
            asked = questions.get(item, [])
            (tool,) = {act.tool for act in acts}
            for key, times in Counter(act.key for act in acts).items():
                assert times <= len(self.runs) or retried.has(key), f"{item}: twice in one life"
            owners = [key.partition("/")[0] for key in {act.key for act in acts}]
            assert len(owners) == len({*owners}), f"{item} had several keys in one execution"
            if EFFECTS[tool] == "once":
                about = f"{item} was done again, not allowed: {acts}; asked: {asked}"
                assert len(acts) <= _allowed_acts(asked), about
            else:
                assert not [each for each in asked if each.kind == "interrupted"]
            approvals = [each for each in asked if each.kind == "approval"]
            assert approvals or tool not in ASKING, f"nobody was asked about {item}"
            if approvals:
                texts = {
                    _approved_arguments(each)["text"]
                    for each in approvals
                    if _decision(each) == "approve"
                }
                assert {act.text for act in acts} <= texts, f"{item} was done, and not approved"
        for item, asked in questions.items():
            for kind in ("approval", "repetition"):
                standing = [each for each in asked if not each.is_withdrawn]
                places = Counter(each.place for each in standing if each.kind == kind)
                assert not places or max(places.values()) == 1, f"{item} was asked about twice"
            interrupted = Counter(each.place for each in asked if each.kind == "interrupted")
            assert all(times < len(self.runs) for times in interrupted.values())

    def _check_forks(self, stored: Mapping[str, tuple[ExecutionRecord, list[Event]]]) -> None:
        """What is changed without an effect on its calls is served them: it neither pays nor acts."""
        for own, (_, events) in stored.items():
            parent = events[0].data.get("parent") or {}
            before = stored.get(parent.get("execution_id", ""))
            if before is None or parent.get("rerun") or parent.get("retry"):
                continue
            if _has_succeeded(before[1], "n0"):
                starts = f"{own}/n0/", f"{own}/n0["
                keys = *self.paid_keys, *(act.key for act in self.acts)
                made = [key for key in keys if key.startswith(starts)]
                assert not made, f"{made} were made before, and are made again by a fork"

    def _may_be_served(self, events: list[Event]) -> bool:
        return events[0].data.get("parent") is not None

    def _check_document(
        self,
        own: str,
        record: ExecutionRecord,
        events: list[Event],
        questions: Mapping[str, list[Question]],
    ) -> None:
        """Hold the calls in a document to what the model and the tools saw."""
        keys, acts = {*self.paid_keys}, self.acts
        is_fork = self._may_be_served(events)
        shown_keys, shown_items = set[str](), list[tuple[str, int]]()
        for node in self.document(own)["nodes"]:
            for call in node.get("calls", ()):
                key = idempotency_key(
                    CallKey(own, node["path"], call["attempt"], call["ordinal"], "")
                )
                if call["kind"] == "model":
                    requested = key in keys or is_fork
                    assert requested, f"{key} is in the document, and was never requested"
                    shown_keys.add(key)
                elif call["name"] != DELEGATE:
                    item = call["request"]["arguments"]["item"]
                    shown_items.append((item, call["attempt"]))
                    _check_call(call, key, [a for a in acts if a.item == item], questions)
        assert len(shown_items) == len({*shown_items}), "a call is in the document twice"
        if record.status == "completed":
            ends = {"node.cancelled", "node.failed", "node.retrying"}
            cut = tuple(f"{own}/{e.path}/" for e in events if e.type in ends)
            requested = {key for key in keys if key.startswith(f"{own}/")}
            missing = {key for key in requested - shown_keys if not key.startswith(cut)}
            assert not missing, f"the document lacks the model calls {missing}"
            shown = {item for item, _ in shown_items}
            missing = (_started_items(events) & {act.item for act in acts}) - shown
            assert not missing, f"the document lacks {missing}"


class _Retried(NamedTuple):
    """The agents that had another attempt, as the keys of their calls begin."""

    prefixes: tuple[str, ...]

    def has(self, key: str) -> bool:
        """Return whether a call is of one of them, or of an agent that one of them calls."""
        return key.startswith(tuple(f"{each}{end}" for each in self.prefixes for end in "/["))


def _retried_paths(executions: Iterable[list[Event]]) -> _Retried:
    return _Retried(
        tuple(
            idempotency_key(CallKey(event.execution_id, event.path, 1, 0, "")).rpartition("/")[0]
            for events in executions
            for event in events
            if event.type == "node.retrying" and event.path
        )
    )


def _has_succeeded(events: list[Event], path: str) -> bool:
    """Return whether a node completed at its first attempt, and all inside it."""
    bad = {"node.failed", "node.cancelled", "node.retrying"}
    inside = [e for e in events if e.path == path or (e.path or "").startswith(f"{path}[")]
    return not [e for e in inside if e.type in bad] and fold(events).nodes[path].status == (
        "completed"
    )


def _allowed_acts(asked: Iterable[Question]) -> int:
    """Return how often a tool may act that may act but once: what people allowed, or else once."""
    allowed = Counter(each.kind for each in asked if _decision(each) in ("approve", "run_again"))
    is_approved = any(each.kind == "approval" for each in asked)
    first = allowed["approval"] if is_approved else 1
    return first + allowed["repetition"] + allowed["interrupted"]


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
    own = [act for act in acts if act.key == key]
    others = [act for act in acts if act.key.partition("/")[0] == key.partition("/")[0]]
    assert own == others, f"{key} acted with another key"
    # A person decided about the two first kinds; the acts may be those of another attempt.
    if "error" in call:
        decision = {"interrupted": "fail", "rejected": "reject"}[call["error"]["code"]]
        assert decision in [_decision(each) for each in questions[arguments["item"]]]
    elif call["result"] not in given:
        assert acts, f"the document shows {call}, which no tool did"
        assert call["result"] == f"{acts[0].tool} {acts[0].item} {arguments['text']}"
        assert not own or arguments["text"] in {act.text for act in own}, f"{call} acted as {own}"


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
    open_: dict[str, Question] = {}
    for event in events:
        if event.type == "node.cancelled" and (left := open_.pop(event.path or "", None)):
            left.is_withdrawn = left.answer is None
        if event.type == "node.waiting" and "tool" in event.data["request"]:
            asked = event.data["request"]
            answer = answers.get(event.data["request_id"])
            place = event.execution_id, event.path or ""
            kind = asked["kind"]
            if kind == "approval" and not asked["editable"]:
                kind = "repetition"
            question = Question(kind, place, asked["value"], answer)
            open_[place[1]] = question
            yield asked["tool"]["call_id"], question


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


def _is_of_tool(call: StoredCall) -> bool:
    """Return whether it is the record of a call of a tool that acts."""
    return record_kind(call.reply) in ("tool", "http", "mcp")


async def _recorded_calls(place: Place) -> list[StoredCall]:
    store = place.open_to_read()
    own = [record.execution_id for record in await store.executions(limit=100_000)]
    found = await store.calls(own)
    await store.close()
    return [call for calls in found.values() for call in calls]


@contextmanager
def agent_history(place: Place, seed: int = 0, *, cuts: bool = False) -> Iterator[AgentHistory]:
    """Run the world of agents: a model that takes its time, and an HTTP service.

    Args:
        place: Where all is stored.
        seed: What is chosen.
        cuts: Whether some last replies of the model are cut.
    """
    choose = Random(seed)  # noqa: S311 - a test's choices

    async def reply(body: dict[str, Any]) -> TextReply:
        await asyncio.sleep(choose.uniform(_SHORTEST_REPLY_S, _LONGEST_REPLY_S))
        reply = scripted_reply(body)
        is_cut = not isinstance(reply, ToolCallReply) and choose.random() < _CUT_REPLIES
        return replace(reply, cut_after=2) if cuts and is_cut else reply

    with (
        fake_llm_in_thread(reply_to=reply) as llm,
        acting_service(place.directory.parent / "acts.log") as service,
    ):
        yield AgentHistory(place, llm=llm, service=service)
