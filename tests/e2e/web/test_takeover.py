"""A run in the browser that another process goes on with: nothing is lost, and the page says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from planwave.events import Event
from planwave.events.logs.text_log import RECOVERED
from tests.support.browser.chromium import pages_of, take_screenshot
from tests.support.browser.scripted_model import Gate, ScriptedModel
from tests.support.browser.steps import execute_graph
from tests.support.llm.fake_llm_server import TextReply, fake_llm_in_thread
from tests.support.scale.installation import Installation
from tests.support.scale.role_process import RoleProcess, processes

pytestmark = pytest.mark.scale

STEPS = {f"s{number}": f"Stage {number}" for number in range(1, 7)}
"""Three beside the step with the model, one after the other, and three that follow it."""
GRAPH: dict[str, Any] = {
    "nodes": [
        *({"id": each, "type": "logged-step", "name": name, "data": {"ms": 500}}
          for each, name in STEPS.items()),
        {"id": "tell", "type": "agent", "name": "Tell", "description": "Tell of rivers.",
         "data": {"provider": "openai"}},
        {"id": "end", "type": "end", "name": "Print"},
    ],
    "edges": [
        {"source": source, "target": target, "data": {"channel": "flow"}}
        for way in (["s1", "s2", "s3", "end"], ["tell", "s4", "s5", "s6", "end"])
        for source, target in pairwise(way)
    ],
}  # fmt: skip
EMBEDDED: dict[str, Any] = {
    "nodes": [{"id": "say", "type": "agent", "data": {"provider": "local", "userPrompt": "Say."}}],
    "edges": [],
}
TEXT = "All rivers run at last to the sea."
BEGINNING = "All rivers"
TAKEN_OVER = "went on in another process"
RESULTS = {**{name: each for each, name in STEPS.items()}, "Tell": TEXT, "Print": "s6"}
"""What is seen of the result of each step."""


@pytest.fixture
def gate() -> Gate:
    """Opens the second half of what the model says."""
    return Gate()


@pytest.fixture
def installation(
    database_url: str, temporal_address: str, task_queue: str, tmp_path: Path
) -> Iterator[Installation]:
    with processes(tmp_path) as group:
        made = Installation(group, database_url, temporal_address, task_queue)
        yield made
        made.close()


@pytest.fixture
def roles(installation: Installation, gate: Gate) -> Iterator[list[RoleProcess]]:
    """Two processes that serve and two that drive."""
    model = ScriptedModel()
    model.replies = {"Tell of rivers": TextReply(TEXT, chunks=6, gates={4: gate})}
    with fake_llm_in_thread(reply_to=model.reply_to) as llm:
        provider = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": llm.openai_url}
        yield [
            installation.start(role, env=provider)
            for role in ("serve", "serve", "worker", "worker")
        ]
        gate.set()


@pytest_asyncio.fixture(loop_scope="session")
async def replicas(browser: Browser, roles: list[RoleProcess]) -> AsyncIterator[list[Page]]:
    """A page of each process that serves; an error on its console fails the test."""
    async with AsyncExitStack() as stack:
        served = [
            await stack.enter_async_context(pages_of(browser, each.url)) for each in roles[:2]
        ]
        yield [await each.open(None) for each in served]


@pytest.mark.timeout(300)
async def test_run_goes_on_in_another_process_with_its_pages_open(
    installation: Installation, roles: list[RoleProcess], replicas: list[Page], gate: Gate
) -> None:
    execution_id = await execute_graph(replicas[0], GRAPH)
    await replicas[1].goto(f"/runs/{execution_id}")
    for page in replicas:
        await expect(page.get_by_role("button", name="Stage 1, completed").first).to_be_visible()
        await expect(page.get_by_role("application")).to_contain_text(BEGINNING)
        await expect(page.get_by_text(TAKEN_OVER)).to_have_count(0)
    (driving,) = (each for each in roles[2:] if installation.drives(each, [execution_id]))
    driving.kill()

    for page in replicas:
        await expect(page.get_by_text(TAKEN_OVER)).to_be_visible()
        await expect(page.get_by_role("button", name="Stage 3, completed").first).to_be_visible()
        await expect(page.get_by_role("button", name="Tell, running").first).to_be_visible()
        await expect(page.get_by_role("button", name="Stage 4, pending").first).to_be_visible()
        await expect(page.get_by_role("application")).to_contain_text(BEGINNING)
    await take_screenshot(replicas[0], "takeover-running")
    gate.set()

    for number, page in enumerate(replicas):
        await expect(page.get_by_role("button", name="Print, completed").first).to_be_visible()
        await expect(page.locator("[aria-live]")).to_have_text("The run is done.")
        await take_screenshot(page, f"takeover-done-{number}")
        await expect_each_step_once(page)
        await take_screenshot(page, f"takeover-log-{number}")
    events = (await installation.ended(roles[0], [execution_id]))[execution_id]
    assert_nothing_is_lost_or_twice(events)

    # No process here has the embedded model.
    waiting = await execute_graph(replicas[0], EMBEDDED)
    await replicas[0].goto(f"/runs/{waiting}")
    await expect(
        replicas[0].get_by_text("Waits for a worker that has a local model; there is none now")
    ).to_be_visible()
    await take_screenshot(replicas[0], "run-waits-for-worker")


async def expect_each_step_once(page: Page) -> None:
    """Expect each step with its result, and the change of process in the log."""
    await page.get_by_role("radio", name="Table").check()
    rows = page.get_by_role("table", name="Steps").locator("tbody tr")
    await expect(rows).to_have_count(len(GRAPH["nodes"]))
    await expect(rows.filter(has_text="Completed")).to_have_count(len(GRAPH["nodes"]))
    panel = page.get_by_role("complementary")
    for name, result in RESULTS.items():
        await rows.get_by_role("button", name=name, exact=True).click()
        await expect(panel.get_by_role("heading", name=name)).to_be_visible()
        await panel.get_by_role("tab", name="Output").click()
        await expect(panel.get_by_role("tabpanel")).to_contain_text(result)
    await page.get_by_role("radio", name="Log").check()
    log = page.get_by_role("list", name="Log")
    await expect(log.get_by_text(RECOVERED)).to_have_count(1)


def assert_nothing_is_lost_or_twice(events: list[Event]) -> None:
    assert [each.seq for each in events] == [*range(1, len(events) + 1)]
    assert events[-1].type == "execution.completed"
    done = [each.path for each in events if each.type == "node.completed"]
    assert sorted(done, key=str) == sorted([*STEPS, "tell", "end"])
    resumed = [each.data for each in events if each.type == "execution.resumed"]
    assert [each.get("reason") for each in resumed] == ["recovery"]
