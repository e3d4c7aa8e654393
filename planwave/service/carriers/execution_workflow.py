"""The workflow of Temporal that carries one execution: an activity drives it, and it is parked here while it rests.

It knows an id and never what the execution does, so that no plan makes its history incompatible. Which capability a
process needs to drive it, decides which task queue the activity is in; the workflow itself can be advanced by any worker.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

WORKFLOW = "planwave-execution"
ACTIVITY = "planwave-drive"
_LONGEST = timedelta(days=365)
_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=2)
)


def queue_of(task_queue: str, capability: str) -> str:
    """Return the task queue of executions that need a capability; only workers that have it poll it."""
    return f"{task_queue}-{capability}"


def arguments(execution_id: str, lease_s: float, needs: str | None) -> list[str | float]:
    """Return what the workflow is started with: without a need, what workers of older versions take, too."""
    return [execution_id, lease_s] if needs is None else [execution_id, lease_s, needs]


@workflow.defn(name=WORKFLOW, sandboxed=False)
class ExecutionWorkflow:
    """Has one execution driven as often as it has something to do."""

    def __init__(self) -> None:
        self._wakes = 0
        self._needs: str | None = None

    @workflow.signal
    def need(self, capability: str) -> None:
        """Have the execution driven by a worker with a capability, once more after it comes to rest."""
        self._needs = capability
        self._wakes += 1

    @workflow.signal
    def wake(self) -> None:
        """Have the execution driven, once more after it comes to rest."""
        self._wakes += 1

    @workflow.run
    async def run(self, execution_id: str, lease_s: float, needs: str | None = None) -> str:
        """Drive until the execution has ended; return its status."""
        self._needs = self._needs or needs  # a signal may have come before
        own_queue = workflow.info().task_queue
        while True:
            self._wakes = 0
            status, wake_in_s = await workflow.execute_activity(
                ACTIVITY,
                execution_id,
                task_queue=queue_of(own_queue, self._needs) if self._needs else None,
                result_type=tuple[str, float | None],
                start_to_close_timeout=_LONGEST,
                heartbeat_timeout=timedelta(seconds=lease_s),
                retry_policy=_RETRY,
            )
            if status != "paused" and not self._wakes:
                return status
            with suppress(TimeoutError):  # then the time for an answer is over
                await workflow.wait_condition(lambda: self._wakes > 0, timeout=wake_in_s)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=arguments(execution_id, lease_s, self._needs))
