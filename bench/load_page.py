"""A large run on the page: how many frames a second does Chromium draw meanwhile?

::

    python bench/load_page.py --rounds 3
    python bench/load_page.py --layers 8 --width 25 --events 100

A layered graph (20 waves of 25 nodes, three edges into each) runs on a server for load while its page
is open in headless Chromium with software rendering. Naps are timed so that the events come evenly at
the wanted rate. The page counts its animation frames from the start of the run to its end: frames a
second over all, in the worst second, and the longest gap between two frames. On a busy machine the CPU
time of the page's main thread says more: above 33 ms a frame, no machine like this draws 30. Twice: as it opens, and
with the whole graph zoomed into view.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
from pathlib import Path

from load_client import Http, server, watch
from playwright.async_api import async_playwright
from workloads import layered

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
SETTLE_S = 2
"""How long a page may take to draw what it has loaded, before the run starts."""
COUNT_FRAMES = """
() => {
  window.frames_at = [];
  const count = (at) => { window.frames_at.push(at); requestAnimationFrame(count); };
  requestAnimationFrame(count);
}
"""


def timed_graph(layers, width, events_per_s):
    """Return a graph whose nodes end one after the other, two events each, at a steady rate."""
    step_s = 2 / events_per_s
    dag = layered(layers, width)
    nodes = [
        {"id": name, "type": "nap", "data": {"s": step_s * (1 + number % width)}}
        for number, name in enumerate(dag.nodes)
    ]
    edges = [
        {"source": source, "target": name, "data": {"channel": "flow"}}
        for name, sources in dag.deps.items()
        for source in sources
    ]
    return {"nodes": nodes, "edges": edges}


async def run_once(page, url, http, graph, *, is_whole):
    """Run the graph with its page open; give the times of frames, the events and the CPU time."""
    body = {"graph": graph, "options": {"scheduling": "waves"}}
    execution_id = (await http.ask("POST", "/api/execute", body))["execution_id"]
    await page.goto(f"/runs/{execution_id}")
    await page.get_by_role("application").wait_for()
    if is_whole:
        await page.get_by_role("application").focus()
        await page.keyboard.press("f")
    await page.locator("[data-step]").first.wait_for()
    await asyncio.sleep(SETTLE_S)
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = await cpu_of(devtools)
    await page.evaluate(COUNT_FRAMES)
    subscriber = await watch(url, execution_id)
    await http.ask("POST", f"/api/execute/{execution_id}/start")
    await subscriber.closed
    frames = await page.evaluate("window.frames_at")
    cpu_s = await cpu_of(devtools) - before
    found = await http.ask("GET", f"/api/executions/{execution_id}")
    return [at / 1_000 for at in frames], found["last_seq"], cpu_s


async def cpu_of(devtools):
    """Return the CPU seconds that the page's main thread has worked."""
    found = (await devtools.send("Performance.getMetrics"))["metrics"]
    return next(each["value"] for each in found if each["name"] == "TaskDuration")


def line(name, frames, events, cpu_s):
    """Return a line about one run."""
    took = frames[-1] - frames[0]
    seconds = range(int(took))
    worst = min(sum(frames[0] + s <= at < frames[0] + s + 1 for at in frames) for s in seconds)
    longest = max(b - a for a, b in itertools.pairwise(frames))
    return (
        f"{name:<10} {len(frames) / took:5.1f} fps, worst second {worst:2}, "
        f"longest gap {longest * 1_000:4.0f} ms, {events / took:3.0f} events/s, "
        f"main thread {cpu_s / len(frames) * 1_000:4.1f} ms/frame ({cpu_s / took:.0%} of a CPU), "
        f"load {os.getloadavg()[0]:.1f}"
    )


async def measure(url, chosen):
    http = Http(url)
    graph = timed_graph(chosen.layers, chosen.width, chosen.events)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for _ in range(chosen.rounds):
            for name, is_whole in (("as opened", False), ("whole", True)):
                context = await browser.new_context(
                    base_url=url, viewport={"width": 1440, "height": 900}
                )
                context.set_default_timeout(120_000)
                page = await context.new_page()
                print(
                    line(name, *await run_once(page, url, http, graph, is_whole=is_whole)),
                    flush=True,
                )
                await context.close()
        await browser.close()
    await http.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--width", type=int, default=25)
    parser.add_argument("--events", type=int, default=180, help="events a second")
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    with server() as (_, url):
        asyncio.run(measure(url, chosen))


if __name__ == "__main__":
    main()
