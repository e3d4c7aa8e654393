"""What every carrier does with the executions that it is given: that of one process, and that of several."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from planwave.errors import StoreError
from planwave.service.carriers.carrier import Carrier, CarrierUnavailable, Rest, Slot
from planwave.service.carriers.local import LocalCarrier
from planwave.setting_tables import TemporalSettings
from planwave.storage.audit import utc_now
from planwave.storage.records import StoreStats
from tests.support import polling
from tests.support.paths import ROOT
from tests.support.scale.relay import Relay

until = partial(polling.until, every_s=0.01)  # it happens beyond a server
LEASE_S = 1.0
DONE = Rest("completed")
LOCAL = pytest.param("local", id="local")
TEMPORAL = pytest.param("temporal", id="temporal", marks=pytest.mark.xdist_group("temporal"))
Make = Callable[[], Carrier]


class Driven:
    """Drives executions as a test says, and counts.

    Attributes:
        ids: What was handed over, in order.
        rested: What has come to rest, or broke.
        most: The most that was driven at a time.
        most_of_one: The most of one id that was driven at a time.
        gate: Holds what is driven until it is set.
    """

    def __init__(self, *ends: Rest | Exception, is_held: bool = False) -> None:
        self._ends = deque(ends)
        self._now: Counter[str] = Counter()
        self.ids: list[str] = []
        self.rested: list[str] = []
        self.most = self.most_of_one = 0
        self.gate = asyncio.Event()
        if not is_held:
            self.gate.set()

    async def __call__(self, execution_id: str, slot: Slot) -> Rest:
        self.ids.append(execution_id)
        self._now[execution_id] += 1
        self.most = max(self.most, self._now.total())
        self.most_of_one = max(self.most_of_one, self._now[execution_id])
        slot.change("taken", lambda: None)
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
            end = self._ends.popleft() if self._ends else DONE
            if isinstance(end, Exception):
                raise end
            return end
        finally:
            self.rested.append(execution_id)
            self._now[execution_id] -= 1
            slot.change("freed", lambda: None)


async def stays(holds: Callable[[], bool], s: float = 0.6) -> None:
    """Hold for a while: longer than a carrier takes to hand something over."""
    ends = asyncio.get_running_loop().time() + s
    while asyncio.get_running_loop().time() < ends:
        assert holds()
        await asyncio.sleep(0.02)


async def submit(carrier: Carrier, *ids: str, has_started: bool = False) -> None:
    async with asyncio.TaskGroup() as tasks:
        for each in ids:
            tasks.create_task(carrier.submit(each, "operator", has_started=has_started))


@asynccontextmanager
async def serving(
    carrier: Carrier, driven: Driven, slots: int = 8
) -> AsyncGenerator[asyncio.Task[None]]:
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(carrier.serve(driven, slots))
        try:
            yield task
        finally:
            driven.gate.set()
            task.cancel()


def settings_of(address: str, task_queue: str) -> TemporalSettings:
    """Return settings with a lease that is shorter than may be set: there is no store that could be too late."""
    settings = TemporalSettings(address=address, task_queue=task_queue)
    return settings.model_copy(update={"lease_s": LEASE_S})


def make_temporal(
    address: str,
    task_queue: str,
    *,
    is_well: Callable[[], bool] = lambda: True,
    drain_s: float = 5.0,
) -> Carrier:
    # Not above: the SDK may be missing.
    from planwave.service.carriers.temporal import TemporalCarrier
    from planwave.service.carriers.watchdog import Watchdog

    def stats() -> StoreStats:
        return StoreStats(transient_error=None if is_well() else StoreError("it is away"))

    def end(code: int) -> None:
        raise AssertionError(f"the process was to end with {code}")

    settings = settings_of(address, task_queue)
    return TemporalCarrier(settings, Watchdog(LEASE_S, stats, end), drain_s, utc_now)


@pytest.fixture(params=[LOCAL, TEMPORAL])
def carrier(request: pytest.FixtureRequest) -> Carrier:
    if request.param == "local":
        return LocalCarrier(0)
    address = request.getfixturevalue("temporal_address")
    return make_temporal(address, request.getfixturevalue("task_queue"))


@pytest.fixture
def make(temporal_address: str, task_queue: str) -> Make:
    """Makes carriers of several processes with one task queue."""
    return lambda: make_temporal(temporal_address, task_queue)


async def test_a_carrier_is_not_ready_while_its_server_gives_no_answer(
    temporal_address: str, task_queue: str
) -> None:
    """The SDK says nothing of it: its polls go on."""
    with Relay(int(temporal_address.rpartition(":")[2])) as relay:
        carrier = make_temporal(f"127.0.0.1:{relay.port}", task_queue)
        async with serving(carrier, Driven()):
            await until(lambda: carrier.is_ready)
            relay.cut()
            await until(lambda: not carrier.is_ready)
            relay.restore()
            await until(lambda: carrier.is_ready)
        assert not carrier.is_ready


@pytest.mark.usefixtures("needs_temporal")
async def test_accounts_take_turns_at_a_server_with_the_settings_of_the_deployment(
    tmp_path: Path, task_queue: str
) -> None:
    from tests.support.scale.temporal_server import running_temporal

    deployed: dict[str, Any] = yaml.safe_load((ROOT / "deploy/temporal.yaml").read_text("utf-8"))
    settings = {name: each["value"] for name, (each,) in deployed.items()}
    # Order holds in a partition.
    settings |= {f"matching.numTaskqueue{kind}Partitions": 1 for kind in ("Read", "Write")}
    with running_temporal(tmp_path, settings=settings) as server:
        carrier, driven = make_temporal(server.address, task_queue), Driven(is_held=True)
        ids = [*(f"many-{number}" for number in range(8)), "one"]
        async with serving(carrier, driven, slots=1):
            await carrier.submit(ids[0], "many", has_started=False)
            await until(lambda: driven.ids == ids[:1])
            for each in ids[1:]:
                await carrier.submit(each, each.partition("-")[0], has_started=False)
                await until_it_waits(server.address, each)
            driven.gate.set()
            await until(lambda: len(driven.ids) == len(ids))
    assert driven.ids.index("one") < 4, "it came last"


async def until_it_waits(address: str, execution_id: str) -> None:
    """Wait until an execution is in the task queue of the workers."""
    from temporalio.client import Client

    workflow = (await Client.connect(address)).get_workflow_handle(execution_id)
    async with asyncio.timeout(60):
        while not (await workflow.describe()).raw_description.pending_activities:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_what_is_submitted_twice_is_never_driven_twice_at_a_time(carrier: Carrier) -> None:
    driven = Driven(is_held=True)
    ids = [f"{id(carrier):x}-{n}" for n in range(4)]
    await submit(carrier, *ids)
    await submit(carrier, *ids)
    async with serving(carrier, driven):
        await until(lambda: len(driven.ids) == 4)
        assert carrier.load.driven == carrier.load.places == 4
        await submit(carrier, *ids)
        await stays(lambda: len(driven.ids) == 4)
        driven.gate.set()
        await until(lambda: len(driven.ids) == 8)
        await stays(lambda: len(driven.ids) == 8)
    assert Counter(driven.ids) == dict.fromkeys(ids, 2), "once more after the wake while driven"
    assert driven.most_of_one == 1
    assert carrier.load.driven == carrier.load.places == 0


async def test_what_is_paused_rests_until_it_is_submitted(carrier: Carrier) -> None:
    driven, own = Driven(Rest("paused"), Rest("paused"), DONE), f"{id(carrier):x}"
    await submit(carrier, own)
    async with serving(carrier, driven):
        for times in (1, 2, 3):
            await until(lambda times=times: len(driven.rested) == times)
            await stays(lambda times=times: len(driven.ids) == times)
            await submit(carrier, own, has_started=True)
        await until(lambda: len(driven.ids) == 4)  # one that has ended is driven once more, too


async def test_at_most_so_many_are_driven_at_a_time(carrier: Carrier) -> None:
    driven, ids = Driven(is_held=True), [f"{id(carrier):x}-{n}" for n in range(7)]
    await submit(carrier, *ids)
    async with serving(carrier, driven, slots=3):
        await until(lambda: len(driven.ids) == 3)
        await stays(lambda: len(driven.ids) == 3)
        driven.gate.set()
        await until(lambda: len(driven.rested) == 7)
    assert driven.most == 3
    assert sorted(driven.ids) == ids


async def test_who_no_longer_serves_is_given_nothing_and_ends_what_it_has(carrier: Carrier) -> None:
    driven, ids = Driven(is_held=True), [f"{id(carrier):x}-{n}" for n in range(3)]
    await submit(carrier, *ids)
    async with serving(carrier, driven, slots=2) as task:
        await until(lambda: len(driven.ids) == 2)
        task.cancel()
        await stays(lambda: not task.done() and not driven.rested)
        driven.gate.set()
        async with asyncio.timeout(LEASE_S * 4):
            await task
    assert len(driven.rested) == 2
    assert len(driven.ids) == 2, "nothing more was handed over"


async def test_what_is_withdrawn_waits_no_longer_in_this_process(carrier: Carrier) -> None:
    driven, ids = Driven(), [f"{id(carrier):x}-{n}" for n in range(3)]
    await submit(carrier, *ids)
    assert carrier.position(ids[2]) in (3, None), "3, or it is not known"
    is_forgotten = carrier.withdraw(ids[0])
    assert not carrier.withdraw("unknown")
    async with serving(carrier, driven):
        await until(lambda: len(driven.rested) == (2 if is_forgotten else 3))
        await stays(lambda: is_forgotten == (ids[0] not in driven.ids))


async def test_what_broke_in_this_process_is_not_driven_again_by_it() -> None:
    carrier, driven = LocalCarrier(0), Driven(RuntimeError("it broke"))
    await submit(carrier, "x", "y")
    async with serving(carrier, driven, slots=1):
        await until(lambda: driven.rested == ["x", "y"])
        await stays(lambda: carrier.load.driven == 0 and driven.ids == ["x", "y"], 0.1)


# -- only where several processes may drive ---------------------------------------------------------


async def test_what_broke_is_driven_again_after_a_while(make: Make) -> None:
    carrier, driven = make(), Driven(*[RuntimeError("it broke")] * 3)
    at: list[float] = []

    async def drive(execution_id: str, slot: Slot) -> Rest:
        at.append(asyncio.get_running_loop().time())
        return await driven(execution_id, slot)

    await submit(carrier, "broken")
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(carrier.serve(drive, 4))
        await until(lambda: len(driven.rested) == 4)
        await stays(lambda: len(driven.ids) == 4)
        task.cancel()
    waits = [after - before for before, after in itertools.pairwise(at)]
    assert min(waits) > 0.15, "not at once, as it would break again"


async def test_a_pause_ends_when_the_time_for_an_answer_is_over(make: Make) -> None:
    """Within one process, ``AnswerDeadlines`` of the service sees to that."""
    wake_at = datetime.now(UTC) + timedelta(seconds=2)
    carrier, driven = make(), Driven(Rest("paused", wake_at))
    await submit(carrier, "timed")
    async with serving(carrier, driven):
        await until(lambda: len(driven.ids) == 1)
        await until(lambda: len(driven.ids) == 2)
        assert timedelta(0) <= datetime.now(UTC) - wake_at < timedelta(seconds=1.5)
        await stays(lambda: len(driven.ids) == 2)


async def test_what_a_process_leaves_as_it_goes_down_is_driven_by_another_one(make: Make) -> None:
    leaving, staying = Driven(*[Rest("interrupted")] * 8, is_held=True), Driven()
    first, second = make(), make()
    ids = [f"left-{n}" for n in range(4)]
    await submit(first, *ids)
    async with serving(first, leaving, slots=4) as task:
        await until(lambda: len(leaving.ids) == 4)
        async with serving(second, staying, slots=4):
            task.cancel()
            leaving.gate.set()
            left_at = asyncio.get_running_loop().time()
            await until(lambda: len(staying.rested) == 4)
            assert asyncio.get_running_loop().time() - left_at < LEASE_S * 2
    assert sorted(staying.ids) == ids
    assert sorted(leaving.ids) == ids


async def test_several_processes_share_what_there_is(make: Make) -> None:
    both = Driven(is_held=True), Driven(is_held=True)
    first, second = make(), make()
    async with serving(first, both[0], slots=10), serving(second, both[1], slots=10):
        await submit(first, *(f"shared-{n}" for n in range(40)))
        await until(lambda: len(both[0].ids) == len(both[1].ids) == 10)
        for each in both:
            each.gate.set()
        await until(lambda: sum(len(each.rested) for each in both) == 40)
    assert sorted(both[0].ids + both[1].ids) == sorted(f"shared-{n}" for n in range(40))
    assert min(len(each.ids) for each in both) >= 10


async def test_what_gives_no_sign_of_life_is_driven_elsewhere(
    make: Make, temporal_address: str, task_queue: str
) -> None:
    is_well = True
    failing = make_temporal(temporal_address, task_queue, is_well=lambda: is_well)
    silent, staying = Driven(is_held=True), Driven()
    await submit(failing, "silent")
    async with serving(failing, silent, slots=1):
        await until(lambda: len(silent.ids) == 1)
        await stays(lambda: len(silent.ids) == 1, LEASE_S * 2)
        async with serving(make(), staying):
            is_well = False
            await until(lambda: len(staying.rested) == 1)
    assert silent.most_of_one == 1


async def test_a_worker_does_not_read_all_loaded_code_at_its_start(
    temporal_address: str, task_queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stands_still() -> str:
        pytest.fail("the SDK hashes all modules, for a second")

    monkeypatch.setattr("temporalio.worker._worker.load_default_build_id", stands_still)
    carrier, driven = make_temporal(temporal_address, task_queue), Driven()
    async with serving(carrier, driven):
        await submit(carrier, "one")
        await until(lambda: driven.rested == ["one"])


async def test_what_is_submitted_without_a_server_is_refused() -> None:
    pytest.importorskip("temporalio")
    carrier = make_temporal("127.0.0.1:9", "nowhere")
    with pytest.raises(CarrierUnavailable, match=r"Temporal cannot be reached at 127\.0\.0\.1:9"):
        await carrier.submit("x", "operator", has_started=False)
