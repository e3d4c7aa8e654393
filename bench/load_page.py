"""A large run on the page: how many frames a second does Chromium draw meanwhile? And how long does a key in the editor take?

::

    python bench/load_page.py --rounds 3
    python bench/load_page.py --layers 8 --width 25 --events 100
    python bench/load_page.py --layers 1 --width 50 --tokens 20
    python bench/load_page.py --editor

A layered graph (20 waves of 25 nodes, three edges into each) runs on a server for load while its page
is open in headless Chromium with software rendering. Naps are timed so that the events come evenly at
the wanted rate. The page counts its animation frames from the start of the run to its end: frames a
second over all, in the worst second, and the longest gap between two frames. On a busy machine the CPU
time of the page's main thread says more: above 33 ms a frame, no machine like this draws 30. Twice: as it opens, and
with the whole graph zoomed into view.

With ``--tokens`` each step streams so many tokens a second for ten seconds, in place of a nap.

With ``--editor`` a plan of so many agents is opened in the editor, and words are typed into the task of one of them, ten
keys a second: from each key to the frame that shows it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import time
from contextlib import asynccontextmanager
from pathlib import Path

from load_client import Http, server, watch
from playwright.async_api import async_playwright
from workloads import layered

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
SETTLE_S = 2
"""How long a page may take to draw what it has loaded, before the run starts."""
STREAM_S = 10
COUNT_FRAMES = """
() => {
  window.frames_at = [];
  const count = (at) => { window.frames_at.push(at); requestAnimationFrame(count); };
  requestAnimationFrame(count);
}
"""


TIME_KEYS = """
() => {
  window.keys_took = [];
  addEventListener("keydown", ({ timeStamp }) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => window.keys_took.push(performance.now() - timeStamp);
    port2.postMessage(null);
  }), true);
}
"""
TYPED = "and say what each of them costs, in euros "


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


def streaming_graph(layers, width, tokens_per_s):
    """Return a graph whose nodes stream tokens for ``STREAM_S`` seconds."""
    graph = timed_graph(layers, width, 1)
    data = {"s": 1 / tokens_per_s, "tokens": tokens_per_s * STREAM_S}
    for node in graph["nodes"]:
        node |= {"type": "teller", "data": data}
    return graph


async def run_once(page, url, http, graph, *, is_whole):
    """Run the graph with its page open; give the times of frames, the events and the CPU time."""
    body = {"graph": graph, "options": {"scheduling": "waves"}}
    execution_id = (await http.ask("POST", "/api/execute", body))["execution_id"]
    await page.goto(f"/runs/{execution_id}")
    await page.get_by_role("application").wait_for()
    if is_whole:
        await page.get_by_role("application").focus()
        await page.keyboard.press("f")
    await page.locator("[data-step]").first.wait_for(state="attached")
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


def agents(layers, width):
    """Return a graph of agents with tasks, with three edges into each but the first ones."""
    dag = layered(layers, width)
    nodes = [
        {
            "id": name,
            "type": "agent",
            "name": f"Step {name}",
            "description": f"Do {name}.",
            "data": {},
        }
        for name in dag.nodes
    ]
    edges = [
        {"source": source, "target": name, "data": {"channel": "flow"}}
        for name, sources in dag.deps.items()
        for source in sources
    ]
    return {"nodes": nodes, "edges": edges}


async def type_once(page, plan_id):
    """Type into the task of a step in the editor; give how long each key took to be shown, seconds, and the CPU time."""
    await page.goto(f"/flows/{plan_id}/edit")
    await page.locator("button[data-step]").first.click()
    field = page.get_by_role("complementary").get_by_label("Task")
    await field.press("End")
    await asyncio.sleep(SETTLE_S)
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = await cpu_of(devtools)
    await page.evaluate(TIME_KEYS)
    await page.keyboard.type(TYPED, delay=100)
    await page.wait_for_function(f"window.keys_took.length >= {len(TYPED)}")
    cpu_s = await cpu_of(devtools) - before
    return sorted(at / 1_000 for at in await page.evaluate("window.keys_took")), cpu_s


def key_line(nodes, took, cpu_s):
    """Return a line about the keys of one round."""
    middle, longest = took[len(took) // 2], took[-1]
    return (
        f"{nodes} steps: a key is shown after {middle * 1_000:4.0f} ms (median), {longest * 1_000:4.0f} ms (longest), "
        f"main thread {cpu_s / len(took) * 1_000:4.0f} ms/key, load {os.getloadavg()[0]:.1f}"
    )


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


async def frames_of_runs(url, http, browser, chosen):
    if chosen.tokens:
        graph = streaming_graph(chosen.layers, chosen.width, chosen.tokens)
    else:
        graph = timed_graph(chosen.layers, chosen.width, chosen.events)
    for name, is_whole in (("as opened", False), ("whole", True)):
        async with opened(browser, url) as page:
            print(
                line(name, *await run_once(page, url, http, graph, is_whole=is_whole)), flush=True
            )


async def keys_in_the_editor(url, http, browser, chosen):
    body = {"name": f"Many agents {time.time()}", "graph": agents(chosen.layers, chosen.width)}
    plan_id = (await http.ask("POST", "/api/flows", body))["plan_id"]
    async with opened(browser, url) as page:
        print(key_line(chosen.layers * chosen.width, *await type_once(page, plan_id)), flush=True)


@asynccontextmanager
async def opened(browser, url):
    """Give a new page in a context of its own."""
    context = await browser.new_context(base_url=url, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(120_000)
    yield await context.new_page()
    await context.close()


async def measure(url, chosen):
    http = Http(url)
    once = keys_in_the_editor if chosen.editor else frames_of_runs
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for _ in range(chosen.rounds):
            await once(url, http, browser, chosen)
        await browser.close()
    await http.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--width", type=int, default=25)
    parser.add_argument("--events", type=int, default=180, help="events a second")
    parser.add_argument("--tokens", type=int, help="tokens a second of each step")
    parser.add_argument("--editor", action="store_true", help="type in the editor instead")
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    with server() as (_, url):
        asyncio.run(measure(url, chosen))


if __name__ == "__main__":
    main()
