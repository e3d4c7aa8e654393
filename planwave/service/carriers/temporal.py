"""The carrier that hands executions to any number of processes, by workflows of Temporal."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from temporalio import activity
from temporalio.client import Client
from temporalio.common import Priority, WorkerDeploymentVersion, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode, TLSConfig
from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    PollerBehaviorSimpleMaximum,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerDeploymentConfig,
    WorkerTuner,
)

from planwave.errors import InputError
from planwave.service.carriers.carrier import CarrierLoad, CarrierUnavailable
from planwave.service.carriers.execution_workflow import (
    ACTIVITY,
    WORKFLOW,
    ExecutionWorkflow,
    arguments,
    queue_of,
)

if TYPE_CHECKING:
    from planwave.executor.messages import PlaceChange
    from planwave.service.carriers.carrier import Drive
    from planwave.service.carriers.watchdog import Watchdog
    from planwave.setting_tables import TemporalSettings

_log = logging.getLogger(__name__)

_OVERDUE_S: Final = 60.0
_RPC: Final = timedelta(seconds=5)
_CONNECT_AGAIN_S: Final = 2.0
_CHECK_EVERY_S: Final = 2.0
_AWAY: Final = frozenset(
    {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
)
"""Every other answer to a health check is one of a server, also that it knows no such check."""
_BEATS_A_LEASE: Final = 4
_LOGGED: Final = ApplicationErrorCategory.BENIGN
"""Keeps the SDK from logging once more, with a traceback, what the driver has logged."""
_VERSION: Final = WorkerDeploymentConfig(
    WorkerDeploymentVersion("planwave", version("planwave")), use_worker_versioning=False
)
"""Only shown. Without one the SDK hashes all modules at the start, and the event loop stands still for a second."""
_ONE_POLL: Final = PollerBehaviorSimpleMaximum(maximum=1)
_WORKFLOW_SLOTS: Final = 100
_HANDED_ON_S: Final = 5.0
"""After so long a worker is asked again that has handed an execution on."""
_STARTED, _NEW = 2, 3
"""Priorities of Temporal: smaller numbers go first, 3 is the usual one."""


class TemporalCarrier:
    """Starts and wakes workflows, and drives what the workers' task queue hands to this process.

    Args:
        settings: Where the service is.
        watchdog: Says whether this process makes progress, between two signs of life.
        drain_s: How long what is driven may go on once ``serve`` is cancelled.
        now: UTC time, the same in all processes.
        capabilities: What this process can do that others may not: it is handed what needs that, too.
    """

    def __init__(
        self,
        settings: TemporalSettings,
        watchdog: Watchdog,
        drain_s: float,
        now: Callable[[], datetime],
        capabilities: Collection[str] = (),
    ) -> None:
        self._settings, self._watchdog, self._drain_s = settings, watchdog, drain_s
        self._now = now
        self._capabilities = sorted(capabilities)
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._driven = 0
        self._is_serving = self._is_away = False

    @property
    def load(self) -> CarrierLoad:
        """What is driven here; what waits is the database's to say."""
        return CarrierLoad(0, self._driven, self._driven)

    @property
    def is_ready(self) -> bool:
        """Whether the task queue is asked for executions, and the server answers."""
        return self._is_serving and not self._is_away

    def running_of(self, account: str) -> int:
        """Return 0: the others are not known here."""
        return 0

    def withdraw(self, execution_id: str) -> bool:
        """Do nothing: who is handed an execution that has nothing to do lets it rest."""
        return False

    def position(self, execution_id: str) -> int | None:
        """Return None: the task queue does not say."""
        return None

    async def submit(
        self, execution_id: str, account: str, *, has_started: bool, needs: str | None = None
    ) -> None:
        """Start the workflow of an execution, or wake it; see ``Carrier``."""
        key = blake2b(account.encode(), digest_size=16).hexdigest()
        try:
            client = await self._connected()
            await client.start_workflow(
                WORKFLOW,
                args=arguments(execution_id, self._settings.lease_s, needs),
                id=execution_id,
                task_queue=self._settings.task_queue,
                start_signal="wake",
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                task_timeout=timedelta(seconds=self._settings.lease_s),
                priority=Priority(_STARTED if has_started else _NEW, key),
                rpc_timeout=_RPC,
            )
        except RPCError as error:
            raise _no_answer(error) from error

    async def drop(self, execution_id: str) -> None:
        """Cancel the workflow of an execution, if it is open; see ``Carrier``."""
        try:
            client = await self._connected()
            await client.get_workflow_handle(execution_id).cancel(rpc_timeout=_RPC)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise _no_answer(error) from error

    async def serve(self, drive: Drive, slots: int) -> None:
        """Drive what is handed to this process; see ``Carrier``."""
        client = await self._connected_at_last()
        lease_s = self._settings.lease_s

        @activity.defn(name=ACTIVITY)
        async def drive_activity(execution_id: str) -> tuple[str, float | None]:
            return await self._drive(client, drive, execution_id)

        shared = _SharedSlots(slots) if self._capabilities else None
        open_worker = partial(
            Worker,
            client,
            activities=[drive_activity],
            workflow_runner=UnsandboxedWorkflowRunner(),
            max_concurrent_activities=None if shared is not None else slots,
            tuner=None if shared is None else shared.tuner(),
            deployment_config=_VERSION,
            # Polls of a worker that is frozen are still handed executions, each for a lease.
            activity_task_poller_behavior=_ONE_POLL,
            workflow_task_poller_behavior=_ONE_POLL,
            # Histories are short, and what a dead worker had cached would wait for it.
            max_cached_workflows=0,
            # Else the worker that starts workflows drives them too, beyond its share.
            disable_eager_activity_execution=True,
            max_heartbeat_throttle_interval=timedelta(seconds=lease_s / _BEATS_A_LEASE),
            graceful_shutdown_timeout=timedelta(seconds=self._drain_s),
        )
        own_queue = self._settings.task_queue
        workers = [
            open_worker(task_queue=own_queue, workflows=[ExecutionWorkflow]),
            *(open_worker(task_queue=queue_of(own_queue, each)) for each in self._capabilities),
        ]
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self._run(workers))
            checking = tasks.create_task(self._check(client))
            with suppress(asyncio.CancelledError):
                await asyncio.shield(running)
            checking.cancel()
            async with asyncio.TaskGroup() as ending:
                for worker in workers:
                    ending.create_task(worker.shutdown())

    async def _drive(
        self, client: Client, drive: Drive, execution_id: str
    ) -> tuple[str, float | None]:
        """Drive an execution, and give signs of life; return its status, and in how many seconds it goes on.

        Raises:
            ApplicationError: It is to be driven again, or by another process.
        """
        reason = ""
        self._driven += 1
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(self._beat())
            try:
                rest = await drive(execution_id, _OwnSlot())
                if rest.needs is not None:
                    workflow = client.get_workflow_handle(execution_id)
                    await workflow.signal(ExecutionWorkflow.need, rest.needs, rpc_timeout=_RPC)
            except Exception as error:  # noqa: BLE001 - the boundary to Temporal, which tries again
                rest, reason = None, str(error)
            finally:
                self._driven -= 1
                beating.cancel()
        if rest is None:
            raise ApplicationError(reason, type="Broken", category=_LOGGED)
        if rest.needs is not None:
            # A workflow in a worker of an older version does not know the signal.
            return "paused", _HANDED_ON_S
        if rest.status == "interrupted":
            raise ApplicationError("this process goes down", type="Interrupted", category=_LOGGED)
        wake_in = None if rest.wake_at is None else rest.wake_at - self._now()
        return rest.status, None if wake_in is None else _wake_in_s(wake_in)

    async def _run(self, workers: Sequence[Worker]) -> None:
        self._is_serving = True
        try:
            with self._watchdog.watching():
                async with asyncio.TaskGroup() as tasks:
                    for worker in workers:
                        tasks.create_task(worker.run())
        finally:
            self._is_serving = False

    async def _check(self, client: Client) -> None:
        """Ask the server whether it is there: the SDK polls it for ever, and does not say that nobody answers."""
        while True:
            try:
                is_there = await client.service_client.check_health(timeout=_RPC)
            except RPCError as error:
                is_there = error.status not in _AWAY
            if self._is_away is is_there:
                text = "Temporal answers again" if is_there else "Temporal does not answer"
                _log.warning("%s at %s", text, self._settings.address)
            self._is_away = not is_there
            await asyncio.sleep(_CHECK_EVERY_S)

    async def _beat(self) -> None:
        while True:
            if self._watchdog.is_well():
                activity.heartbeat()
            await asyncio.sleep(self._settings.lease_s / _BEATS_A_LEASE)

    async def _connected_at_last(self) -> Client:
        is_logged = False
        while True:
            try:
                return await self._connected()
            except CarrierUnavailable as error:
                if not is_logged:
                    _log.warning("%s; executions wait", error)
                is_logged = True
            await asyncio.sleep(_CONNECT_AGAIN_S)

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None:
                settings = self._settings
                try:
                    async with asyncio.timeout(_RPC.total_seconds()):
                        self._client = await Client.connect(
                            settings.address,
                            namespace=settings.namespace,
                            tls=_tls(settings),
                            api_key=_api_key(settings),
                        )
                except (RuntimeError, TimeoutError, RPCError) as error:
                    raise CarrierUnavailable(
                        f"Temporal cannot be reached at {settings.address}: {error or 'no answer'}"
                    ) from error
            return self._client


def _no_answer(error: RPCError) -> CarrierUnavailable:
    return CarrierUnavailable(f"Temporal does not answer: {error.message}")


class _Permit(SlotPermit):
    """A permit to poll a task queue, and to drive what comes of it."""

    def __init__(self, task_queue: str) -> None:
        self.task_queue = task_queue
        self.is_used = False


class _SharedSlots(CustomSlotSupplier):
    """The slots of a process that polls several task queues: none of them holds the last slot while it is empty.

    A poll takes no slot until an execution comes of it. So with two queues one execution more than there are slots may
    be driven: where both polls get one in the same moment.
    """

    def __init__(self, slots: int) -> None:
        self._slots, self._used = slots, 0
        self._polling: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()
        self._freed = asyncio.Event()
        self._lock = threading.Lock()
        """The SDK calls all but ``reserve_slot`` from threads of its own."""

    def tuner(self) -> WorkerTuner:
        """Return the tuner of a worker with these slots for executions."""
        few = FixedSizeSlotSupplier(_WORKFLOW_SLOTS)
        return WorkerTuner.create_composite(
            workflow_supplier=few,
            activity_supplier=self,
            local_activity_supplier=few,
            nexus_supplier=few,
        )

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Wait until a slot is free for the next execution of a task queue."""
        while (permit := self.try_reserve_slot(ctx)) is None:
            self._freed.clear()
            await self._freed.wait()
        return permit

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Return a permit, or None where no slot is free."""
        with self._lock:
            # The SDK asks for the next permit while a poll waits, and uses it whatever has come of others by then.
            if self._polling[ctx.task_queue] or self._used >= self._slots:
                return None
            self._polling[ctx.task_queue] += 1
        return _Permit(ctx.task_queue)

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Count an execution that came of a poll."""
        permit = cast("_Permit", ctx.permit)
        with self._lock:
            permit.is_used = True
            self._polling[permit.task_queue] -= 1
            self._used += 1
        self._wake()

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Free the slot of an execution, or end a poll of which nothing came."""
        permit = cast("_Permit", ctx.permit)
        with self._lock:
            if permit.is_used:
                self._used -= 1
            else:
                self._polling[permit.task_queue] -= 1
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._freed.set)


class _OwnSlot:
    """The slot of an activity: it is held until the execution rests."""

    def change(self, change: PlaceChange, grant: Callable[[], None]) -> None:
        """See ``Slot``: what wants to go on may."""
        if change == "wanted":
            grant()


def _wake_in_s(left: timedelta) -> float:
    """Return in how many seconds an execution is to be driven again, whose time may be over by now."""
    left_s = left.total_seconds()
    if left_s > -_OVERDUE_S:
        return left_s if left_s > 0 else 1.0
    return _OVERDUE_S  # it could not run out: nothing is gained by asking all the time


def _tls(settings: TemporalSettings) -> TLSConfig | bool:
    """Return how the connection is encrypted.

    Raises:
        InputError: ``temporal-unusable``.
    """
    ca, cert, key = map(_content, (settings.ca_file, settings.cert_file, settings.key_file))
    if ca or cert:
        return TLSConfig(server_root_ca_cert=ca, client_cert=cert, client_private_key=key)
    return settings.tls or settings.api_key_env is not None


def _content(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(
            f"a file of [temporal] cannot be read: {error}", code="temporal-unusable"
        ) from error


def _api_key(settings: TemporalSettings) -> str | None:
    """Return the API key.

    Raises:
        InputError: ``temporal-unusable``.
    """
    if settings.api_key_env is None:
        return None
    key = os.environ.get(settings.api_key_env)
    if not key:
        raise InputError(
            f"the environment has no variable {settings.api_key_env}, which [temporal] names",
            code="temporal-unusable",
        )
    return key
