"""agno's Workflow: a list of steps, with ``Parallel`` for a level.

It has no graph of its own: one is run as waves, and dependencies are looked up by step name.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from importlib.metadata import version as version_of
from pathlib import Path

logging.disable(logging.WARNING)
os.environ["AGNO_TELEMETRY"] = "false"

from agno.run.agent import RunContentEvent  # noqa: E402 - after the switch above
from agno.workflow import Parallel, Step, StepInput, StepOutput, Workflow  # noqa: E402

NAME = "agno"
MODE = "waves (Parallel per level)"


def version():
    return "agno " + version_of("agno")


def workflow(dag, body, db=None):
    def step_of(n):
        async def execute(given: StepInput) -> StepOutput:
            inputs = [given.get_step_output(d).content for d in dag.deps[n]]
            return StepOutput(content=await body(n, inputs))

        return Step(name=n, executor=execute)

    steps = []
    for number, level in enumerate(dag.levels()):
        made = [step_of(n) for n in level]
        steps.append(made[0] if len(made) == 1 else Parallel(*made, name=f"level{number}"))
    return Workflow(name="bench", steps=steps, db=db, telemetry=False)


def build(dag, body):
    return workflow(dag, body)


async def finished(flow, session_id):
    result = await flow.arun(input="go", session_id=session_id)
    assert str(result.status).lower().endswith("completed"), (result.status, result.content)


async def run(flow):
    await finished(flow, uuid.uuid4().hex)


async def durable_open(folder):
    from agno.db.sqlite import AsyncSqliteDb

    return AsyncSqliteDb(db_file=str(Path(folder, "agno.db")))


async def durable_run(db, dag, body, uid):
    await finished(workflow(dag, body, db), uid)


def durable_close(db):
    """Leave it to the end of the process: the library closes nothing."""


async def stream(n):
    async def execute(given: StepInput):
        for _ in range(n):
            await asyncio.sleep(0)
            yield RunContentEvent(content="tok")
        yield StepOutput(content="done")

    flow = Workflow(name="bench", steps=[Step(name="a", executor=execute)], telemetry=False)
    left = n
    async for event in flow.arun(input="go", stream=True, stream_events=True):
        if left and getattr(event, "content", None) == "tok":
            left -= 1
            yield event
