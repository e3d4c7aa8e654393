"""Run a research, and widen it while it works: type what else it has to cover, then y to take the change."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import planwave

GRAPH = Path(__file__).with_name("research.json").read_text("utf-8")


def typed_lines() -> asyncio.Queue[str]:
    """Return the lines that a person types; "" after the last one."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        for line in (*iter(sys.stdin.readline, ""), ""):
            loop.call_soon_threadsafe(lines.put_nowait, line.strip())

    threading.Thread(target=read, daemon=True).start()
    return lines


async def widen(run: planwave.Run) -> None:
    """Propose what the person asks for, and change the run by what they take."""
    lines = typed_lines()
    while words := await lines.get():
        try:
            proposal = await run.replan(words, dry_run=True)
            print(proposal.answer)
            for each in proposal.additions:
                print(f"  it would newly reach: {each['kind']} {each['name']}")
            print("Take it? [y/N]", flush=True)
            if await lines.get() == "y":
                run.revise(proposal)
        except planwave.PlanwaveError as error:
            print(f"It goes on as it is: {error}", flush=True)


async def main(question: str) -> None:
    """Run the research, say what happens, and print its report."""
    run = planwave.run(GRAPH, question, store="runs")
    async with asyncio.TaskGroup() as tasks:
        widening: asyncio.Task[None] | None = None
        async for event in run:
            if event.type == "execution.started":
                widening = tasks.create_task(widen(run))
            if event.type in ("node.started", "node.completed"):
                print(f"{event.type.removeprefix('node.')}: {event.path}", flush=True)
            if event.type == "plan.revised":
                print("The run goes on with the changed plan.", flush=True)
        if widening is not None:
            widening.cancel()
    print((await run).text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
