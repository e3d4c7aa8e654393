"""What of a prompt a provider is asked to keep in its cache, and which calls wait until it is there.

The rule: a beginning is marked where it has the least number of tokens that the provider keeps, and
repeats. The system prompt and tools repeat for an agent with tools, for a step inside a loop, and where
they were sent in the last minutes. The beginning of the prompt repeats as far as the calls of one step
have it in common. The conversation repeats with the next round of an agent with tools.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from planwave.providers.capabilities import minimum_tokens
from planwave.providers.protocols import CallScope, ModelRequest, text_tokens

WARMED_CALLS: Final = 3
"""From so many calls on, the others wait until the first one has written the cache."""
WARMING_S: Final = 5.0
_GATHERING_S: Final = 0.1
"""So long the second call of a step looks whether there is a third; the first one never waits."""
_KEPT_S: Final = 300.0
_LEAST_SHARED_TOKENS: Final = 256
"""The shortest beginning of a prompt that is worth a mark."""
_MAX_STEPS: Final = 1_000
_INDEX: Final = re.compile(r"\[[^\[\]]*\]")


class CacheMarks(NamedTuple):
    """What of one request is marked.

    Attributes:
        fixed: Tools and system prompt.
        prompt_chars: So many characters of the first turn of the user.
        turns: All turns.
    """

    fixed: bool = False
    prompt_chars: int = 0
    turns: bool = False


NO_MARKS: Final = CacheMarks()


def common_beginning(one: str, other: str) -> str:
    """Return what two texts begin with, up to the end of a line or word."""
    if other.startswith(one):
        return one
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if other.startswith(one[:middle]) else (low, middle - 1)
    common = one[:low]
    return common[: max(common.rfind("\n"), common.rfind(" ")) + 1]


def must_wait(position: int, waiting: int, *, is_warm: bool) -> bool:
    """Return whether a call waits for the first of the calls that begin with the same text.

    Args:
        position: Its place among them, from 0.
        waiting: How many of them have no token of their reply yet.
        is_warm: Whether a reply to one of them has begun before.
    """
    return position > 0 and waiting >= WARMED_CALLS and not is_warm


@dataclass(eq=False, slots=True)
class _Step:
    """The calls of one step that have tools and system prompt in common."""

    beginning: str | None = None
    calls: int = 0
    used_at: float = 0.0
    warm: set[CacheMarks] = field(default_factory=set[CacheMarks])
    open: list[CachedCall] = field(default_factory=list["CachedCall"])
    are_several: asyncio.Event = field(default_factory=asyncio.Event)


class PromptCache:
    """The prompts sent to one provider; belongs to one event loop.

    Args:
        clock: A monotonic clock, seconds.
        timeout: Limits the time of one wait.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        timeout: Callable[[float], AbstractAsyncContextManager[Any]] = asyncio.timeout,
    ) -> None:
        self._clock = clock
        self._timeout = timeout
        self._steps: OrderedDict[tuple[str, str, str], _Step] = OrderedDict()
        self._sent: OrderedDict[str, float] = OrderedDict()

    def open(self, request: ModelRequest, scope: CallScope | None) -> CachedCall:
        """Return the part of a call in the cache; the caller ends it."""
        now = self._clock()
        fixed = repr((request.model, request.system, request.tools, request.schema))
        digest = hashlib.sha256(fixed.encode("utf-8", "replace")).hexdigest()
        path = "" if scope is None else _INDEX.sub("[]", scope.path)
        key = ("" if scope is None else scope.execution_id, path, digest)
        step = self._steps.get(key)
        if step is None or (now - step.used_at > _KEPT_S and not step.open):
            step = self._steps[key] = _Step()
        self._steps.move_to_end(key)
        prompt = _first_prompt(request)
        step.beginning = (
            prompt if step.beginning is None else common_beginning(step.beginning, prompt)
        )
        step.calls += 1
        step.used_at = now
        is_known = now - self._sent.get(digest, -_KEPT_S - 1) <= _KEPT_S
        self._sent[digest] = now
        for memory in (self._steps, self._sent):
            if len(memory) > _MAX_STEPS:
                memory.popitem(last=False)
        repeats = bool(request.tools) or "[" in path or is_known
        call = CachedCall(request, step, repeats, scope is not None, self._timeout)
        step.open.append(call)
        if len(step.open) >= WARMED_CALLS:
            step.are_several.set()
        return call


@dataclass(eq=False, slots=True)
class CachedCall:
    """One call until its reply begins.

    Attributes:
        request: The request.
        step: The calls that it is one of.
        repeats: Whether its system prompt and tools are sent again.
        is_of_step: Whether it belongs to a step of an execution; only such calls wait.
        timeout: Limits the time of one wait.
        marks: What of it is marked; known after ``wait``.
    """

    request: ModelRequest
    step: _Step
    repeats: bool
    is_of_step: bool
    timeout: Callable[[float], AbstractAsyncContextManager[Any]]
    marks: CacheMarks = NO_MARKS
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        """Wait for the first call of the step if there are several; then ``marks`` are known."""
        await asyncio.sleep(0)  # calls that are made together meet here
        self.marks = self._marks()
        if not self.is_of_step or not (self.marks.fixed or self.marks.prompt_chars):
            return
        step = self.step
        first = next(each for each in step.open if each is self or each.marks == self.marks)
        if first is not self and self.marks not in step.warm:
            await self._limited(step.are_several, _GATHERING_S)
        position = 0 if first is self else 1
        is_warm = self.marks in step.warm
        if must_wait(position, len(step.open), is_warm=is_warm):
            await self._limited(first._released, WARMING_S)

    async def _limited(self, event: asyncio.Event, limit_s: float) -> None:
        with suppress(TimeoutError):
            async with self.timeout(limit_s):
                await event.wait()

    def begin(self) -> None:
        """Record the first token of the reply: the cache is written."""
        if self.marks != NO_MARKS:
            self.step.warm.add(self.marks)
        self.end()

    def end(self) -> None:
        """Release the calls that wait, whatever became of this one."""
        self._released.set()
        if self in self.step.open:
            self.step.open.remove(self)
        if len(self.step.open) < WARMED_CALLS:
            self.step.are_several.clear()

    def _marks(self) -> CacheMarks:
        request, step = self.request, self.step
        least = minimum_tokens(request.model)
        tools = (text for tool in request.tools for text in tool.texts)
        fixed = text_tokens(request.system or "", *tools)
        shared = step.beginning if step.calls > 1 and step.beginning else ""
        tokens = text_tokens(shared)
        is_shared = bool(shared.strip()) and tokens >= _LEAST_SHARED_TOKENS
        return CacheMarks(
            self.repeats and fixed >= least,
            len(shared) if is_shared and fixed + tokens >= least else 0,
            bool(request.tools) and text_tokens(*request.texts) >= least,
        )


def _first_prompt(request: ModelRequest) -> str:
    turns = (turn.text for turn in request.messages if turn.role == "user")
    return next(turns, request.prompt)
