"""What watchers of an execution see: one projection of it, and frames that all of them share.

A :class:`Live` is told every published event once. It folds them into the execution's state (with
the text streamed so far), when somebody wants to see that, and gathers them into frames: what
happened within some 50 ms, streamed text joined. Every follower gets the same frames, so a thousand
watchers cost a thousand queue entries, not a thousand projections. One that cannot keep up is
dropped, with the cursor to go on from; the execution never waits for anybody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import Conflict, Draining
from planwave.events import (
    ENDED_NODE,
    TERMINAL,
    TRANSIENT,
    Event,
    ExecutionState,
    SentenceLog,
)
from planwave.service.frames import Bounds, Follower, Frame, joined
from planwave.service.snapshots import glance_of, snapshot_of, text_so_far
from planwave.storage.rows import encode_known

if TYPE_CHECKING:
    from planwave.executor.run import Execution
    from planwave.service.orders import Turn
    from planwave.service.rooms import Observer

FRAME_S: Final = 0.05
"""Seconds between two frames: streamed text reaches a watcher at most 20 times a second a node.

Where there are so many watchers that handing out a frame takes longer than half of that, frames are
as much rarer as it takes for the event loop to be free half of the time.
"""
LAST_LOGS: Final = 10
_MOST_BEHIND: Final = 256
"""Events that are folded, and put into sentences, later: when somebody asks."""
_SLICE: Final = 16
"""Followers told at a time; between two slices the event loop turns to what nodes have to say."""


class Moment(NamedTuple):
    """How an execution stood when a watcher joined; shared by all who join at that moment.

    Attributes:
        seq: The last stored event by then.
        is_over: No further event can come.
        texts: What open nodes had streamed by then, as deltas from offset 0; None without any.
        snapshot: The whole state as JSON, where it was asked for.
    """

    seq: int
    is_over: bool
    texts: Frame | None
    snapshot: bytes | None


class _Joining(NamedTuple):
    bounds: Bounds
    with_snapshot: bool
    admitted: asyncio.Future[tuple[Follower, Moment]]


class _HandingOut(NamedTuple):
    """A frame, who has yet to be given it, when that began, and when its first event came."""

    frame: Frame
    followers: deque[Follower]
    began: float
    since: float


class Live:
    """One execution as this process sees it, whether it runs already or is only being watched.

    Attributes:
        last_seq: The last stored event it was told.
        is_over: The execution has ended for good.
        has_streamed: There was streamed text.
        held_bytes: The size of its results when this process had run it, as far as that is bounded.
        commands: Held while it is told to do something, or made ready to run: one at a time.
        holders: How many have an eye on it, watchers and commands; see :meth:`Lives.hold`.
        polls: How many look at it now and then.
        order: What it needs to run, from when it is queued until it has come to rest.
        execution: Set while it runs.
        finished: Set when it has come to rest: it has ended, or it is paused and nothing is at work.
        error: Why the run itself broke (store gone), or None.
        dismissal: Why watchers were sent away before its end, or None.
        observer: Counts what watchers are told.
    """

    def __init__(self, execution_id: str, observer: Observer | None = None) -> None:
        self.execution_id = execution_id
        self.observer = observer
        self.last_seq = 0
        self.is_over = self.has_streamed = False
        self.held_bytes = 0
        self.commands = asyncio.Lock()
        self.holders = self.polls = 0
        self.order: Turn | None = None
        self.execution: Execution | None = None
        self.finished = asyncio.Event()
        self.error: Exception | None = None
        self.dismissal: Exception | None = None
        self._no_more = asyncio.Event()
        self._sentences = SentenceLog()
        self._logs: deque[str] = deque(maxlen=LAST_LOGS)
        self._state = ExecutionState(execution_id)
        self._unfolded: list[Event] = []
        self._unworded: list[Event] = []
        self._followers: set[Follower] = set()
        self._joining: list[_Joining] = []
        self._pending: list[Event] = []
        self._flush: asyncio.Handle | None = None
        self._due = -inf
        self._handing: _HandingOut | None = None
        self._slice: asyncio.Handle | None = None
        self._pending_since = 0.0
        self._told_seq = 0
        self._told = 0
        self._glance: tuple[int, bytes] | None = None
        self._snapshot: bytes | None = None
        self._texts: tuple[int, Frame | None] | None = None

    @property
    def watchers(self) -> int:
        """How many watch it."""
        return len(self._followers) + self.polls

    @property
    def state(self) -> ExecutionState:
        """The fold of all published events, streamed text included.

        Of most executions hardly anybody looks at it while they run. It stands for the moment it is
        asked for; whoever waits in between asks again.
        """
        if self._unfolded:
            self.fold()
        return self._state

    def fold(self) -> None:
        """Bring the state up to date.

        Raises:
            Exception: An event makes no sense; that is told once, and costs none of the others.
        """
        events, self._unfolded = iter(self._unfolded), []
        try:
            for event in events:
                self._state.apply(event)
        finally:
            self._unfolded = [*events, *self._unfolded]

    @property
    def logs(self) -> Sequence[str]:
        """The last sentences of its log."""
        self.word()
        return self._logs

    def word(self) -> None:
        """Put events into sentences, which hardly anybody asks for."""
        unworded, self._unworded = self._unworded, []
        for event in unworded:
            if event.type not in TRANSIENT and (line := self._sentences.told(event)) is not None:
                self._logs.append(line)

    @property
    def is_left(self) -> bool:
        """Whether nobody runs it, and its turn is not to come."""
        return self.order is None or self.finished.is_set()

    @property
    def is_idle(self) -> bool:
        """Whether this process neither runs it nor has an eye on it."""
        return not self.holders and self.is_left

    # -- what is told ------------------------------------------------------------------------------

    def tell(self, events: Sequence[Event]) -> None:
        """Take in published events, and have every follower told of them soon."""
        self._told += len(events)
        self._snapshot = None
        self._unfolded += events
        self._unworded += events
        for event in events:
            if event.seq:
                self.last_seq = event.seq
            else:
                self.has_streamed = True
        if len(self._unfolded) > _MOST_BEHIND:
            self.fold()
        if len(self._unworded) > _MOST_BEHIND:
            self.word()
        if events and events[-1].type in TERMINAL:
            self.is_over = True
            self._no_more.set()
        if self._followers:
            if not self._pending:
                self._pending_since = asyncio.get_running_loop().time()
            self._pending += events
            self._flush_soon()
        elif not self._pending:
            self._told_seq = self.last_seq

    def take_in(self, events: Sequence[Event]) -> None:
        """Take in a history; what makes no sense in it is found here, not by who looks at it."""
        self.tell(events)
        self.fold()
        self.word()

    def dismiss(self, error: Exception) -> None:
        """Send every watcher away with ``error``, once it has read what there is."""
        self.dismissal = error
        self._no_more.set()
        self._tell_followers()
        self._finish_handing_out()
        for follower in self._followers:
            follower.end(error)
        self._followers.clear()

    def queue(self, order: Turn) -> None:
        """Say that it is to be run."""
        self.order = order
        self.error = self.dismissal = None
        self.finished.clear()
        self._no_more.clear()

    def rest(self) -> None:
        """Say that it is paused and nothing is at work: it goes on when it is told to."""
        self.order = self.execution = None
        self.finished.set()

    def finish(self) -> None:
        """Say that this process does nothing more about it."""
        self.execution = None
        self.finished.set()
        if not self.is_over:
            self.dismiss(self.error or Draining())

    # -- who watches -------------------------------------------------------------------------------

    async def join(self, bounds: Bounds, *, with_snapshot: bool = False) -> tuple[Follower, Moment]:
        """Open a follower that gets everything after a moment, and give how things stood then.

        Where watchers are about to be told something, that moment is when they have been: however
        many join, nobody is sent more frames for it.
        """
        if not self._pending:
            return self._admit(bounds, with_snapshot)
        admitted = asyncio.get_running_loop().create_future()
        self._joining.append(_Joining(bounds, with_snapshot, admitted))
        try:
            return await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self.leave(admitted.result()[0])
            raise

    def leave(self, follower: Follower) -> None:
        """Let a follower go."""
        self._followers.discard(follower)

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until there is nothing more to be told."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._no_more.wait()

    def glance(self) -> bytes:
        """Give ``{status, node_states, logs, wave}`` as JSON: made once for all who ask."""
        if self._glance is None or self._glance[0] != self.last_seq:
            self._glance = (self.last_seq, encode_known(glance_of(self.state, self.logs)))
        return self._glance[1]

    def snapshot(self) -> bytes:
        """Give the whole state as JSON, with the text streamed so far and the last sentences."""
        if self._snapshot is None:
            self._snapshot = snapshot_of(self.state, self.logs)
        return self._snapshot

    def _admit(self, bounds: Bounds, with_snapshot: bool) -> tuple[Follower, Moment]:
        follower = Follower(self._told_seq, bounds)
        if self.dismissal is None:
            self._followers.add(follower)
        else:
            follower.end(self.dismissal)
        snapshot = self.snapshot() if with_snapshot else None
        moment = Moment(self._told_seq, self.is_over, self._open_texts(), snapshot)
        return follower, moment

    def _open_texts(self) -> Frame | None:
        if not self.has_streamed:
            return None
        if self._texts is None or self._texts[0] != self._told:
            nodes = self.state.nodes.values()
            texts = [
                delta
                for node in nodes
                if node.has_streamed and node.status not in ENDED_NODE
                for delta in text_so_far(self.state, node)
            ]
            self._texts = (self._told, Frame(texts, self._told_seq) if texts else None)
        return self._texts[1]

    # -- frames ------------------------------------------------------------------------------------

    def _flush_soon(self) -> None:
        if self._handing is not None:
            return  # it comes when everybody has the last one
        if self._flush is not None:
            if not self.is_over:
                return
            self._flush.cancel()
        loop = asyncio.get_running_loop()
        if self._due <= loop.time() or self.is_over:
            self._flush = loop.call_soon(self._tell_followers)
        else:
            self._flush = loop.call_at(self._due, self._tell_followers)

    def _tell_followers(self) -> None:
        """Make a frame of what is pending, and begin to hand it out."""
        self._finish_handing_out()
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        if not self._pending:
            return
        events, self._pending = joined(self._pending), []
        self._told_seq = self.last_seq
        now, since = asyncio.get_running_loop().time(), self._pending_since
        frame = Frame(events, self._told_seq)
        self._handing = _HandingOut(frame, deque(self._followers), now, since)
        joining, self._joining = self._joining, []
        for bounds, with_snapshot, admitted in joining:
            if not admitted.done():
                admitted.set_result(self._admit(bounds, with_snapshot))
        self._hand_out(_SLICE)

    def _finish_handing_out(self) -> None:
        if self._handing is not None:
            self._hand_out(len(self._handing.followers))

    def _hand_out(self, most: int) -> None:
        """Tell some followers now and the others after the loop has seen to everything else."""
        if self._slice is not None:
            self._slice.cancel()
            self._slice = None
        if self._handing is None:
            return
        frame, followers, began, since = self._handing
        for _ in range(min(most, len(followers))):
            follower = followers.popleft()
            follower.put(frame)
            if follower.is_dropped and follower in self._followers:
                self._followers.discard(follower)
                if self.observer is not None:
                    self.observer.dropped()
        loop = asyncio.get_running_loop()
        if followers:
            self._slice = loop.call_soon(self._hand_out, _SLICE)
            return
        self._handing = None
        now = loop.time()
        self._due = max(began + FRAME_S, now + (now - began))
        if self.observer is not None:
            loop.call_soon(self._note_told, since)  # behind the followers just woken
        if self._pending:
            self._flush_soon()

    def _note_told(self, since: float) -> None:
        if self.observer is not None:
            self.observer.told(asyncio.get_running_loop().time() - since)


def refuse_started(live: Live) -> None:
    """Refuse to start what was started already.

    Raises:
        Conflict: It is queued, runs, or has ended.
    """
    status = live.state.status
    if status != "starting" or live.order is not None:
        raise Conflict(
            f"execution {live.execution_id} was started already; it is {status}",
            code="already-started",
            hint="an execution is started once; execute the plan again for another one",
        )
