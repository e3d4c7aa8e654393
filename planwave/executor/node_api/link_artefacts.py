"""Artefacts of links that are opened and closed: async context managers that ``materialize`` returns.

Each is entered and exited in one task of its own, as libraries with cancel scopes require; a failure in
one does not reach the others. They are closed, the last opened first, when their graph run ends, and
with the execution when that ends or leaves memory. A graph run whose graph is changed ends with the last
of the nodes that ran then; those that start later have artefacts of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Final, NamedTuple

from planwave.errors import PermanentError
from planwave.executor.values import GraphValues

_log = logging.getLogger(__name__)

_CLOSE_S: Final = 1.0
"""How long the artefacts of a graph run have to close by themselves, before they are cancelled."""
_CANCEL_S: Final = 0.5
_abandoned: Final[set[asyncio.Task[None]]] = set()
"""Tasks that ignored cancellation; kept only so that they are not collected while they run."""


class _Opened(NamedTuple):
    """One artefact, in its task: it is exited once ``release`` is done."""

    node_id: str
    task: asyncio.Task[None]
    entered: asyncio.Future[object]
    release: asyncio.Future[None]

    def start_closing(self) -> None:
        if not self.entered.done():
            self.task.cancel()
        elif not self.release.done():
            self.release.set_result(None)


class LinkArtefacts:
    """The artefacts of one graph run."""

    def __init__(self) -> None:
        self._opened: dict[asyncio.Task[None], _Opened] = {}
        self._users: dict[object, set[str]] = {}
        self._is_closed = False

    def count_user(self, key: object, node_id: str) -> None:
        """Note that a node uses an artefact."""
        self._users.setdefault(key, set()).add(node_id)

    @property
    def fan_out(self) -> list[int]:
        """The number of nodes that used each artefact."""
        return [len(users) for users in self._users.values()]

    async def enter(self, manager: AbstractAsyncContextManager[object], node_id: str) -> object:
        """Enter an artefact in its own task; return what its users get.

        If the caller is cancelled meanwhile, so is the entering.

        Raises:
            PermanentError: The graph run has ended.
            Exception: Whatever entering raises.
        """
        if self._is_closed:
            raise PermanentError(f"the run of the graph that {node_id!r} is linked in is over")
        loop = asyncio.get_running_loop()
        entered: asyncio.Future[object] = loop.create_future()
        release: asyncio.Future[None] = loop.create_future()
        # Not a TaskGroup: it lives until the graph run ends. ``close`` waits for it.
        holding = _hold(manager, node_id, entered, release)
        task = loop.create_task(holding, name=f"link {node_id}", context=Context())
        self._opened[task] = _Opened(node_id, task, entered, release)
        task.add_done_callback(self._opened.pop)
        try:
            return await asyncio.shield(entered)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def close(self) -> None:
        """Close all, the last opened first; what does not close in time is cancelled."""
        self._is_closed = True
        try:
            async with asyncio.timeout(_CLOSE_S):
                for opened in reversed([*self._opened.values()]):
                    opened.start_closing()
                    await asyncio.wait({opened.task})
        except TimeoutError:
            await self._cancel_rest()
        except asyncio.CancelledError:
            for opened in self._opened.values():
                opened.task.cancel()
            raise

    async def _cancel_rest(self) -> None:
        """Cancel what does not close."""
        rest = {*self._opened}
        for task in rest:
            node_id = self._opened[task].node_id
            _log.warning("what %r opened for a link did not close in time: cancelled", node_id)
            task.cancel()
        _, stubborn = await asyncio.wait(rest, timeout=_CANCEL_S)
        for task in stubborn:
            _abandoned.add(task)
            task.add_done_callback(_abandoned.discard)


async def _hold(
    manager: AbstractAsyncContextManager[object],
    node_id: str,
    entered: asyncio.Future[object],
    release: asyncio.Future[None],
) -> None:
    """Enter an artefact, keep it until it is released, exit it; the whole life of its task."""
    try:
        async with manager as artefact:
            entered.set_result(artefact)
            await release
    except asyncio.CancelledError:
        entered.cancel()
        raise
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - code of others
        if entered.done():
            _log.warning("what %r opened for a link did not close: %r", node_id, error)
        else:
            entered.set_exception(error)
            entered.exception()  # the caller may be gone


class OpenLinks:
    """The artefacts of all graph runs of one execution.

    Attributes:
        fan_out: How many artefacts had how many users, of the graph runs that have ended.
    """

    def __init__(self) -> None:
        self.fan_out = Counter[int]()
        self._of: dict[GraphValues, LinkArtefacts] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, values: GraphValues) -> LinkArtefacts:
        """Return the artefacts of a graph run."""
        artefacts = self._of.get(values)
        if artefacts is None:
            artefacts = self._of[values] = LinkArtefacts()
        return artefacts

    def close(self, values: GraphValues) -> None:
        """Begin to close the artefacts of a graph run that has ended."""
        artefacts = self._of.pop(values, None)
        if artefacts is not None:
            self.fan_out.update(artefacts.fan_out)
            task = asyncio.get_running_loop().create_task(artefacts.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close_all(self) -> None:
        """Close everything; nothing is left when this returns."""
        for values in [*self._of]:
            self.close(values)
        if self._closing:
            await asyncio.wait([*self._closing])
