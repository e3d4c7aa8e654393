"""The one table from events of an execution to events of a chat, and the blocks of the reply.

The encoder is a fold: the same stored events, with the recorded replies of models, give the same blocks
as the live events did, whose text was streamed. So a reply can be computed again at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, cast

from planwave.events.budget import Spending
from planwave.events.chat_events.blocks import (
    Block,
    BlockList,
    Place,
    answer_state,
    call_block,
    member_block,
    request_tool,
    shown_error,
)
from planwave.events.chat_events.speech import (
    KINDS,
    REASONING,
    TEXT,
    Replies,
    Round,
    Speaker,
)
from planwave.events.paths import is_inside, nested_prefix, path_prefix
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.request_text import is_timer
from planwave.events.stream.visibility import Visibility
from planwave.events.streamed_text import Change
from planwave.events.types import (
    MESSAGE,
    TEXT_DISCARDED,
    Event,
    message_text,
    typed_event,
)
from planwave.expressions.json_text import to_text
from planwave.graph.editing.revision import changed_graph
from planwave.shapes.common import GraphDocument

if TYPE_CHECKING:
    from planwave.shapes.chats import ReplyUsage
    from planwave.shapes.common import ExecutionStatus

ChatEvent = dict[str, Any]
"""One event of a chat; see docs/chat.md."""
_CALL_ENDS: Final = {"end": "completed", "error": "failed"}
_NAMES_OF_CALLS: Final = {"end": "Completed", "error": "Failed"}


class ChatEventEncoder:
    """Turns the events of one execution into those of a reply, one event at a time.

    Args:
        chat_id: The chat.
        message_id: The reply.
        seed: The blocks of the reply that this one continues.
        replies: What models replied, as far as it is recorded; may grow meanwhile.

    Attributes:
        status: Of the execution.
        cursor: The last stored event that was encoded.
    """

    def __init__(
        self,
        chat_id: str,
        message_id: str,
        *,
        seed: Sequence[Block] = (),
        replies: Replies | None = None,
    ) -> None:
        self._chat_id = chat_id
        self._message_id = message_id
        self.replies: Replies = {} if replies is None else replies
        self.status: ExecutionStatus = "starting"
        self.cursor = 0
        self._blocks = BlockList()
        for number, block in enumerate(seed):
            self._blocks.add((0, number, 0), deepcopy({**block, "id": f"seed-{number}"}))
        self._members: dict[str, Block | None] = {}
        """By path prefix: the run of a member; None where nothing of a run is shown."""
        self._lists: dict[str, BlockList] = {}
        self._speakers: dict[str, Speaker] = {}
        self._places: dict[str, int] = {}
        self._types: dict[str, str] = {}
        self._visibility: Visibility | None = None
        self._graph: GraphDocument = NO_GRAPH
        self._results: dict[str, Mapping[str, Any]] = {}
        """What the nodes of the graph itself gave, by path: a change may make it visible."""
        self._spending = Spending()
        self._execution_id = ""
        self._seq = 0
        self._events: list[ChatEvent] = []
        self._must_seed = False
        self._table = self._translations()

    def _translations(self) -> Mapping[str, Callable[[Event], None]]:
        """Return what each event of an execution is for a chat; others are nothing."""
        return {
            "execution.created": self._on_created,
            "plan.revised": self._on_revised,
            "execution.started": self._on_started,
            "execution.paused": self._on_paused,
            "execution.resumed": self._on_resumed,
            "execution.warned": self._on_warned,
            "execution.completed": self._on_completed,
            "execution.failed": self._on_failed,
            "execution.cancelled": self._on_cancelled,
            "node.started": self._on_node_started,
            "node.unparked": self._on_unparked,
            "node.completed": self._on_node_completed,
            "node.failed": self._on_node_failed,
            "node.cancelled": self._on_node_cancelled,
            "node.waiting": self._on_node_waiting,
            "node.answered": self._on_node_answered,
            "node.log": self._on_log,
            "node.delta": self._on_delta,
            "usage": self._on_usage,
            "node.event": self._on_node_event,
        }

    @property
    def blocks(self) -> list[Block]:
        """The blocks so far, as JSON that the caller may keep."""
        return deepcopy(list(self._blocks))

    @property
    def usage(self) -> ReplyUsage | None:
        """The tokens and cost so far; None before a call."""
        total = self._spending.total
        if not total.calls:
            return None
        return {
            "inputTokens": total.input_tokens,
            "outputTokens": total.output_tokens,
            "totalTokens": total.input_tokens + total.output_tokens,
            "costUsd": total.cost_usd,
        }

    def encode(self, event: Event) -> list[ChatEvent]:
        """Return the events of a chat for one event; the last one has the cursor."""
        typed = typed_event(event)
        is_paid = self._spending.observe(typed)
        self._execution_id = event.execution_id
        self._seq = event.seq or self._seq
        self._events, self._must_seed = [], False
        if (translate := self._table.get(typed.type)) is not None:
            translate(event)
        if is_paid:
            self._tell("TokenUsage", tokenUsage=self.usage)
        if self._must_seed:
            self._tell("SeedBlocks", blocks=self.blocks)
        self.cursor = max(self.cursor, event.seq)
        if event.seq and self._events:
            self._events[-1]["seq"] = event.seq
        return self._events

    # -- the execution -------------------------------------------------------------------------

    def _on_created(self, event: Event) -> None:
        self._set_graph(event.data.get("graph") or NO_GRAPH)

    def _on_revised(self, event: Event) -> None:
        """Leave out what dropped nodes said, and how they failed; show the results that no node reads now."""
        change, before = event.data["graph_change"], self._visibility
        if any([self._blocks.drop_node(each) for each in change["dropped_nodes"]]):
            self._must_seed = True
        self._set_graph(changed_graph(self._graph, change))
        after = self._visibility
        for path, outputs in self._results.items():
            if before and after and before.shows(path) != after.shows(path):
                self._finish_speech(path, outputs)

    def _set_graph(self, graph: GraphDocument) -> None:
        self._graph = graph
        self._visibility = Visibility(graph)
        self._types = {node["id"]: node["type"] for node in graph["nodes"]}

    def _on_started(self, event: Event) -> None:
        self.status = "executing"
        self._tell("RunStarted", sessionId=self._chat_id, runId=event.execution_id)
        self._tell("AssistantMessageId", content=self._message_id)
        self._must_seed = any(True for _ in self._blocks)

    def _on_paused(self, event: Event) -> None:
        self.status = "paused"
        if (request_id := event.data.get("request_id")) is not None:
            self._ask(None, request_id, event.data.get("request"))

    def _on_resumed(self, event: Event) -> None:
        self.status = "executing"
        if (request_id := event.data.get("request_id")) is not None:
            answer = event.data.get("answer")
            state = "closed" if "answer" not in event.data else answer_state(answer, None)
            self._resolve(self._blocks, request_id, state, answer)

    def _on_completed(self, event: Event) -> None:
        self._end("completed")
        self._tell("RunCompleted")

    def _on_cancelled(self, event: Event) -> None:
        self._end("cancelled")
        self._tell("RunCancelled", content=to_text(event.data.get("cause")))

    def _on_failed(self, event: Event) -> None:
        self._end("failed")
        error = event.data.get("error") or {"message": "the execution failed"}
        block_field = {}
        if not any(each["id"].startswith("error-") for each in self._blocks):
            block_field = {"blockId": self._add_error(None, error)}
        self._tell("RunError", error=shown_error(error), **block_field)

    def _end(self, status: ExecutionStatus) -> None:
        """End what is open with the execution."""
        self.status = status
        for blocks in (self._blocks, *self._lists.values()):
            for block in blocks:
                if block["type"] == "approval" and block["status"] == "open":
                    self._resolve(blocks, block["requestId"], "closed", None)
                elif block["type"] == REASONING and block["status"] == "running":
                    self._complete_reasoning(block["nodeId"], block)
                elif block.get("status") == "running":
                    block["status"] = "failed"
                    block["error"] = {"code": status, "message": f"the execution was {status}"}

    def _on_warned(self, event: Event) -> None:
        self._tell("StreamWarning", warning=event.data["message"])

    # -- nodes ---------------------------------------------------------------------------------

    def _on_node_started(self, event: Event) -> None:
        path, attempt = event.path or "", event.attempt or 1
        before = self._speakers.get(path)
        if before is not None and before.attempt == attempt:
            before.reenter()
            return
        if before is not None:
            self._drop_speech(path, before.rounds)
        self._speakers[path] = Speaker(attempt, event.seq)
        if not path_prefix(path):
            self._tell("FlowNodeStarted", nodeId=path, nodeType=self._types.get(path))

    def _on_unparked(self, event: Event) -> None:
        if (speaker := self._speakers.get(event.path or "")) is not None:
            speaker.reenter()

    def _on_node_completed(self, event: Event) -> None:
        path: str = event.path or ""
        outputs: Mapping[str, Any] = event.data.get("outputs") or {}
        is_own = not path_prefix(path)
        is_input = bool(event.data.get("given"))
        if is_own and is_input:
            self._tell("FlowNodeStarted", nodeId=path, nodeType=self._types.get(path))
        if not is_input:
            self._finish_speech(path, outputs)
            if is_own:
                self._results[path] = outputs
        if is_own:
            about = {"nodeId": path, "nodeType": self._types.get(path)}
            self._tell("FlowNodeResult", **about, outputs=outputs)
            self._tell("FlowNodeCompleted", **about)

    def _on_node_failed(self, event: Event) -> None:
        path, error = event.path or "", event.data["error"]
        self._close_reasoning(path)
        if path_prefix(path):
            return
        block_field = {}
        if not event.data.get("handled"):
            block_field = {"blockId": self._add_error(path, error)}
        about = {"nodeId": path, "nodeType": self._types.get(path)}
        self._tell("FlowNodeError", **about, error=shown_error(error), **block_field)

    def _on_node_cancelled(self, event: Event) -> None:
        path = event.path or ""
        self._close_reasoning(path)
        blocks = self._list_of(path) or BlockList()
        for block in blocks:
            if block["type"] == "approval" and block["nodeId"] == path:
                self._resolve(blocks, block["requestId"], "closed", None)

    def _on_node_waiting(self, event: Event) -> None:
        request = event.data.get("request")
        if not is_timer(request):
            self._ask(event.path, event.data["request_id"], request)

    def _on_node_answered(self, event: Event) -> None:
        blocks, answer = self._list_of(event.path or ""), event.data.get("answer")
        if blocks is not None:
            state = answer_state(answer, event.data.get("by"))
            self._resolve(blocks, event.data["request_id"], state, answer)

    def _on_log(self, event: Event) -> None:
        if event.data.get("level") == "warning":
            self._tell("StreamWarning", warning=str(event.data.get("message", "")))

    def _on_node_event(self, event: Event) -> None:
        kind, data = event.data["event_type"], cast("Any", event.data.get("data"))
        if kind == MESSAGE:
            self._on_message(event, message_text(data))
        elif kind == TEXT_DISCARDED:
            speaker = self._speakers.get(event.path or "")
            lost = None if speaker is None else speaker.discard()
            if lost is not None:
                self._drop_speech(event.path or "", [lost])
        elif isinstance(kind, str) and isinstance(data, dict):
            call, _, phase = kind.rpartition("_")
            if call in ("tool_call", "subagent_call") and phase in ("start", *_CALL_ENDS):
                about = cast("dict[str, Any]", data)
                self._on_call(event, about, phase, is_member=call == "subagent_call")

    def _on_message(self, event: Event, text: str) -> None:
        path, block_id = event.path or "", f"message-{event.seq}"
        blocks = self._list_of(path)
        if blocks is None or not text:
            return
        block = {"type": TEXT, "id": block_id, "nodeId": path, "text": text}
        self._place(blocks, (event.seq, 0, 0), block)
        self._say("RunContent", path, block_id, content=text, offset=0)

    # -- speech --------------------------------------------------------------------------------

    def _on_delta(self, event: Event) -> None:
        path, data = event.path or "", event.data
        if data["kind"] not in KINDS or self._list_of(path) is None:
            return
        speaker = self._speaker(path, event.attempt)
        current_round, change = speaker.put(data["kind"], data["offset"], data["text"])
        self._show(path, speaker, current_round, data["kind"], change)

    def _on_usage(self, event: Event) -> None:
        if event.path is not None:
            self._close_round(event.path, event.attempt)

    def _close_round(self, path: str, attempt: int | None) -> None:
        speaker = self._speaker(path, attempt)
        ended = speaker.next_to_close()
        if not ended.is_open or self._list_of(path) is None:
            return
        self._settle_place(path, speaker, ended)
        recorded = self.replies.get((path, speaker.attempt), ())
        reply = recorded[ended.number] if ended.number < len(recorded) else None
        beyond: dict[str, str] = {}
        for kind, (change, rest) in ended.close(reply).items():
            self._show(path, speaker, ended, kind, change)
            beyond[kind] = rest
        self._close_reasoning(path)
        for kind, rest in beyond.items():
            if rest:
                at = sum(each.length(kind) for each in speaker.rounds if not each.is_open)
                next_round, change = speaker.put(kind, at, rest)
                self._show(path, speaker, next_round, kind, change)

    def _settle_place(self, path: str, speaker: Speaker, ended: Round) -> None:
        """Put the texts of a round after all that the node did before: now that is published too."""
        ended.mark = speaker.mark
        for kind in KINDS:
            block, blocks = self._speech_block(path, ended, kind), self._list_of(path)
            if block is None or blocks is None:
                continue
            if blocks.move(_place_of(ended, kind), block["id"]):
                self._must_seed = True
                self._copy_to_member(blocks, path)

    def _speaker(self, path: str, attempt: int | None) -> Speaker:
        speaker = self._speakers.get(path)
        if speaker is None:
            speaker = self._speakers[path] = Speaker(attempt or 1, self._seq)
        return speaker

    def _show(
        self, path: str, speaker: Speaker, spoken: Round, kind: str, change: Change | None
    ) -> None:
        """Show a change of a text in its block."""
        blocks = self._list_of(path)
        if change is None or blocks is None:
            return
        block_id = _speech_id(path, speaker.attempt, spoken.number, kind)
        block = blocks.get(block_id)
        if block is None:
            block = {"type": kind, "id": block_id, "nodeId": path, "text": ""}
            if kind == REASONING:
                block["status"] = "running"
            spoken.mark = max(spoken.mark, speaker.mark)
            self._place(blocks, _place_of(spoken, kind), block)
            if kind == REASONING:
                self._say("ReasoningStarted", path, block_id)
        block["text"] = block["text"][: change.offset] + change.content
        if kind == REASONING:
            self._say(
                "ReasoningStep",
                path,
                block_id,
                reasoningContent=change.content,
                offset=change.offset,
            )
        else:
            self._close_reasoning(path)
            self._say("RunContent", path, block_id, content=change.content, offset=change.offset)

    def _close_reasoning(self, path: str) -> None:
        speaker = self._speakers.get(path)
        for spoken in () if speaker is None else speaker.rounds[-2:]:
            block = self._speech_block(path, spoken, REASONING)
            if block is not None and block["status"] == "running":
                self._complete_reasoning(path, block)

    def _complete_reasoning(self, path: str, block: Block) -> None:
        block["status"] = "completed"
        self._say("ReasoningCompleted", path, block["id"])

    def _finish_speech(self, path: str, outputs: Mapping[str, Any]) -> None:
        """Settle what a node has said: streamed text that no reply confirmed becomes its result."""
        if self._list_of(path) is None:
            return
        speaker = self._speaker(path, None)
        if speaker.rounds and speaker.rounds[-1].is_open:
            unconfirmed = speaker.rounds[-1]
        else:
            unconfirmed = Round(len(speaker.rounds), speaker.mark)
        text = "" if self._has_text(path, speaker) else self._visible_text(path, outputs)
        if unconfirmed.texts[REASONING].raw or not text:
            self._drop_speech(path, [unconfirmed])
            unconfirmed.texts[TEXT].replace("")
        if text:
            change = unconfirmed.texts[TEXT].replace(text)
            self._show(path, speaker, unconfirmed, TEXT, change)

    def _has_text(self, path: str, speaker: Speaker) -> bool:
        return any(
            self._speech_block(path, spoken, TEXT) is not None
            for spoken in speaker.rounds
            if not spoken.is_open
        )

    def _visible_text(self, path: str, outputs: Mapping[str, Any]) -> str:
        """Return what a node gives and no other node reads, where nobody has said it before."""
        if self._visibility is None or path_prefix(path):
            return ""
        speakers = {block["nodeId"] for block in self._blocks if block["type"] == TEXT}
        behind = self._visibility.speakers_behind(path)
        if any(each in behind or is_inside(each, path) for each in speakers):
            return ""
        values = self._visibility.visible_values(path, outputs)
        return "\n\n".join(filter(None, map(to_text, values)))

    def _drop_speech(self, path: str, rounds: Sequence[Round]) -> None:
        """Remove void texts; the client gets all blocks that are left."""
        blocks = self._list_of(path)
        for spoken in rounds:
            for kind in KINDS:
                block = self._speech_block(path, spoken, kind)
                if blocks is not None and block is not None and blocks.remove(block["id"]):
                    self._must_seed = True
                    self._copy_to_member(blocks, path)

    def _speech_block(self, path: str, spoken: Round, kind: str) -> Block | None:
        blocks, speaker = self._list_of(path), self._speakers.get(path)
        if blocks is None or speaker is None:
            return None
        return blocks.get(_speech_id(path, speaker.attempt, spoken.number, kind))

    # -- calls ---------------------------------------------------------------------------------

    def _on_call(
        self, event: Event, data: Mapping[str, Any], phase: str, *, is_member: bool
    ) -> None:
        """Show the start or the end of a call; an attempt that is entered again tells it again."""
        path = event.path or ""
        blocks = self._list_of(path)
        if blocks is None:
            return
        if (speaker := self._speakers.get(path)) is not None:
            speaker.mark = event.seq
        block_id = f"{path}#{event.attempt or 1}.call.{data.get('call_id')}"
        block = blocks.get(block_id)
        if block is None:
            new_block = member_block if is_member else call_block
            block = new_block(block_id, path, data)
            if "run_key" in data:
                prefix = nested_prefix(path, data["run_key"])
                self._members[prefix] = block if is_member else None
            self._place(blocks, (event.seq, 0, 0), block)
            if phase == "start":
                self._tell_call("Started", path, block, is_member=is_member)
        if phase == "start" or block["status"] != "running":
            return
        block["status"] = _CALL_ENDS[phase]
        block["result"] = data.get("result")
        block["error"] = shown_error(data["error"]) if "error" in data else None
        self._tell_call(_NAMES_OF_CALLS[phase], path, block, is_member=is_member)

    def _tell_call(self, what: str, path: str, block: Block, *, is_member: bool) -> None:
        error = {} if block["error"] is None else {"error": block["error"]}
        if is_member:
            name = "Error" if what == "Failed" else what
            about = {each: block[each] for each in ("memberRunId", "memberName", "task")}
            if what == "Completed":
                about["content"] = to_text(block["result"])
            self._tell(f"MemberRun{name}", blockId=block["id"], nodeId=path, **about, **error)
            return
        tool = {
            "id": block["toolCallId"], "toolName": block["toolName"], "toolArgs": block["toolArgs"],
        }  # fmt: skip
        if what == "Completed":
            tool["toolResult"] = block["result"]
        self._say(f"ToolCall{what}", path, block["id"], tool=tool, **error)

    # -- requests and errors -------------------------------------------------------------------

    def _ask(self, path: str | None, request_id: str, request: Any) -> None:
        blocks, block_id = self._list_of(path or ""), f"request-{request_id}"
        if blocks is None or blocks.get(block_id) is not None:
            return
        tool = request_tool(self._execution_id, request_id, request)
        block = {
            "type": "approval",
            "id": block_id,
            "nodeId": path,
            "requestId": request_id,
            "executionId": self._execution_id,
            "status": "open",
            "tool": tool,
            "answer": None,
        }
        self._place(blocks, (self._seq, 0, 0), block)
        self._say("ApprovalRequired", path, block_id, tool=tool)

    def _resolve(self, blocks: BlockList, request_id: str, state: str, answer: Any) -> None:
        block = blocks.get(f"request-{request_id}")
        if block is None or block["status"] != "open":
            return
        block |= {"status": state, "answer": answer}
        self._say(
            "ApprovalResolved",
            block["nodeId"],
            block["id"],
            tool=block["tool"],
            state=state,
            answer=answer,
        )

    def _add_error(self, path: str | None, error: Mapping[str, Any]) -> str:
        block_id = f"error-{self._seq}"
        block = {"type": "error", "id": block_id, "nodeId": path, "error": shown_error(error)}
        self._place(self._blocks, (self._seq, 1, 0), block)
        return block_id

    # -- blocks and events ---------------------------------------------------------------------

    def _member_of(self, path: str) -> tuple[bool, Block | None]:
        """Return whether a node is in a run of its own, and the member whose run that is."""
        prefixes = [prefix for prefix in self._members if path.startswith(prefix)]
        if not prefixes:
            return False, None
        hidden = any(self._members[prefix] is None for prefix in prefixes)
        return True, None if hidden else self._members[max(prefixes, key=len)]

    def _list_of(self, path: str) -> BlockList | None:
        """Return the blocks that those of a node belong to; None where they are not shown."""
        is_inner, member = self._member_of(path)
        if not is_inner:
            return self._blocks
        return None if member is None else self._lists.setdefault(member["id"], BlockList())

    def _place(self, blocks: BlockList, place: Place, block: Block) -> None:
        if not blocks.add(place, block):
            self._must_seed = True
        self._copy_to_member(blocks, block["nodeId"] or "")

    def _copy_to_member(self, blocks: BlockList, path: str) -> None:
        """Have the block of a member run list its blocks."""
        _, member = self._member_of(path)
        if member is not None:
            member["blocks"] = list(blocks)

    def _say(self, name: str, path: str | None, block_id: str, **fields: Any) -> None:
        _, member = self._member_of(path or "")
        of = {} if member is None else {"memberRunId": member["memberRunId"]}
        self._tell(name, blockId=block_id, nodeId=path, **of, **fields)

    def _tell(self, name: str, **fields: Any) -> None:
        # Blocks go on growing, events are kept.
        self._events.append({"event": name, "messageId": self._message_id, **fields})


def _place_of(spoken: Round, kind: str) -> Place:
    return spoken.mark, spoken.number, KINDS.index(kind)


def _speech_id(path: str, attempt: int, number: int, kind: str) -> str:
    return f"{path}#{attempt}.{number}.{kind}"
