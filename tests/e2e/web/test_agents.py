"""Agents in the browser: their calls, what a person decides about them, and what they may spend."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import assert_screen_is_usable, every_width
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.browser.steps import execute_graph, stored_events
from tests.support.llm.fake_llm_server import ToolCallReply


def link(source: str, target: str, handle: str = "tools") -> dict[str, Any]:
    return {
        "source": source,
        "sourceHandle": handle,
        "target": target,
        "targetHandle": "tools",
        "data": {"channel": "link"},
    }


def agent(node_id: str, name: str, **data: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "agent", "name": name, "data": data}


TOOLS: list[dict[str, Any]] = [
    {"id": "orders", "type": "tool", "name": "Orders", "data": {"name": "look_up_order"}},
    {"id": "post", "type": "tool", "name": "Post", "data": {"name": "send_mail"}},
]
SUPPORT: dict[str, Any] = {
    "nodes": [
        agent("support", "Support", userPrompt="Where is my order A-17?"),
        {**agent("clerk", "Clerk", userPrompt="{{ input }}"), "description": "Knows all orders."},
        *TOOLS,
    ],
    "edges": [
        link("orders", "support"),
        link("post", "support"),
        link("orders", "clerk"),
        link("clerk", "support", "tools-out"),
    ],
}
MAIL = {"to": "ada@example.org", "subject": "Your order"}


def script_support(model: ScriptedModel) -> None:
    """Let the agent call two tools, another agent and an unknown tool at once, then mail twice."""
    model.agents = {
        "Where is my order A-17?": [
            ToolCallReply(
                [
                    ("look_up_order", {"number": "A-17"}),
                    ("look_up_order", {"number": "A-99"}),
                    ("delegate_Clerk", {"task": "Check order A-18."}),
                ]
            ),
            ToolCallReply([("send_mail", MAIL), ("send_mail", {**MAIL, "to": "bob@example.org"})]),
            "Your order was sent **nine days ago**.",
        ],
        "Check order A-18.": [
            ToolCallReply([("look_up_order", {"number": "A-18"})]),
            "It was packed today.",
        ],
    }


def call(calls: Locator, name: str) -> Locator:
    """The line of each call of a name, which unfolds it."""
    return calls.locator("summary").filter(has_text=name)


@every_width
async def test_calls_are_shown_and_decided_on_the_page_of_the_run(
    empty_page: Page, model: ScriptedModel, width: str
) -> None:
    page = empty_page
    script_support(model)
    execution_id = await execute_graph(page, SUPPORT)
    await expect(page.get_by_role("button", name="Support, waiting").first).to_be_visible()
    await expect(page.get_by_text("link", exact=True)).to_be_visible()  # of the legend
    await page.get_by_role("button", name="Read the 2 questions").click()
    panel = page.get_by_role("complementary", name="Step Support")
    await expect(panel.get_by_role("region", name="Waiting for you: send_mail")).to_have_count(2)
    await assert_screen_is_usable(page, "agent-asks", width)

    first = panel.get_by_role("region", name="Waiting for you: send_mail").first
    await first.get_by_role("button", name="Edit first").click()
    await first.get_by_label("To", exact=True).fill("grace@example.org")
    await first.get_by_label("Tone").select_option("warm")
    await expect(first.get_by_text("changed by you")).to_be_visible()
    await first.get_by_role("button", name="Approve").click()
    await expect(panel.get_by_role("region", name="Waiting for you: send_mail")).to_have_count(1)
    other = panel.get_by_role("region", name="Waiting for you: send_mail")
    await other.get_by_label("Note").fill("Bob did not order.")
    await other.get_by_role("button", name="Reject").click()

    await expect(page.get_by_role("button", name="Support, completed").first).to_be_visible()
    assert (await stored_events(page, execution_id))[-1] == "execution.completed"
    await page.goto(f"/runs/{execution_id}?step=support")
    await panel.get_by_role("tab", name="Timing").click()
    happened = panel.get_by_role("list", name="What happened").get_by_text("look_up_order: A-99")
    await expect(happened).to_have_count(1)
    await panel.get_by_role("tab", name="Output").click()
    calls = panel.get_by_role("region", name="Calls of Support")
    await expect(calls).to_contain_text("5 calls, 1 failed, 1 rejected")
    await call(calls, "send_mail").first.click()
    await expect(calls).to_contain_text("1 warm mail to grace@example.org: Your order")
    await expect(calls).to_contain_text("Asked for by the model, changed by a person")
    await expect(calls).to_contain_text(re.compile("Approved.*by a local user"))
    await call(calls, "send_mail").last.click()
    await expect(calls).to_contain_text(re.compile("Rejected: “Bob did not order.”.*by a local"))
    await call(calls, "Clerk").first.click()
    inside = calls.get_by_role("region", name="Calls of Clerk")
    await expect(inside).to_contain_text("look_up_order")
    await assert_screen_is_usable(page, "agent-calls", width)
    await page.get_by_role("radio", name="Log").check()
    log = page.get_by_role("list", name="Log")
    await expect(log).to_contain_text("look_up_order: there is no order A-99")
    await expect(log).to_contain_text("about send_mail: approve")
    await calls.get_by_role("button", name="Open Clerk").click()
    await expect(page.get_by_role("complementary", name="Step Clerk")).to_contain_text(
        "packed today"
    )
    await page.get_by_role("button", name=re.compile("^Orders, linked")).first.click()
    used = page.get_by_role("complementary", name="Step Orders")
    await expect(used).to_contain_text("3 calls, 1 failed")


async def test_a_card_that_offers_to_approve_a_call_says_what_it_would_do(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    model.agents = {"Where is my order A-17?": [ToolCallReply([("send_mail", MAIL)]), "Sent."]}
    await execute_graph(page, SUPPORT)
    card = page.locator('.react-flow__node[data-id="support"]')
    await expect(card.get_by_role("button", name="Approve")).to_be_visible()
    await expect(card.get_by_text("send_mail")).to_be_visible()
    await expect(card).to_contain_text("ada@example.org")
    await card.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("Sent.")


@pytest.mark.slow
@every_width
async def test_call_is_approved_in_the_inbox(
    empty_page: Page, model: ScriptedModel, width: str
) -> None:
    page = empty_page
    model.agents = {"Where is my order A-17?": [ToolCallReply([("send_mail", MAIL)]), "Sent."]}
    execution_id = await execute_graph(page, SUPPORT)
    await expect(page.get_by_role("button", name="Support, waiting").first).to_be_visible()
    answer = await page.request.get(f"/api/executions/{execution_id}/requests")
    (asked,) = (await answer.json())["requests"]
    await page.goto(f"/approvals?request={execution_id}/{asked['request_id']}")
    request = page.get_by_role("region", name="Request")
    await expect(request.get_by_role("heading", name="Call send_mail")).to_be_visible()
    await expect(request).to_contain_text("The agent Support asks.")
    await expect(request).to_contain_text("must not act twice")
    await request.get_by_role("button", name="Edit first").click()
    await request.get_by_label("Copies").fill("many")
    approve = request.get_by_role("button", name="Approve")
    await expect(approve).to_have_attribute("aria-disabled", "true")
    await request.get_by_label("Copies").fill("2")
    await assert_screen_is_usable(page, "approvals-call", width)
    await approve.click()
    await expect(page.get_by_text("Approved: Call send_mail", exact=True)).to_be_visible()
    await page.goto(f"/runs/{execution_id}")
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("Sent.")


@pytest.mark.slow
@every_width
async def test_exhausted_budget_is_raised_on_the_page(
    empty_page: Page, model: ScriptedModel, width: str
) -> None:
    page = empty_page
    model.agents = {
        "Where is my order A-17?": [
            ToolCallReply([("look_up_order", {"number": "A-17"})]),
            "It was sent.",
        ]
    }
    body = {"graph": SUPPORT, "start": True, "options": {"budget": {"calls": 1}}}
    created = await page.request.post("/api/execute", data=body)
    await page.goto(f"/runs/{(await created.json())['execution_id']}")
    run = page.get_by_role("complementary", name="The run")
    question = run.get_by_role("region", name="Waiting for you")
    await expect(question).to_contain_text("The budget of this run does not suffice")
    await expect(page.get_by_text("budget 1 of 1 call, used up")).to_be_visible()
    await run.get_by_role("tab", name="Cost").click()
    await expect(run.get_by_role("region", name="Budget")).to_contain_text("1 of 1 call")
    await assert_screen_is_usable(page, "budget-exhausted", width)
    await question.get_by_label("New limit: calls of models").fill("9")
    await question.get_by_role("button", name="Raise").click()
    await expect(page.get_by_role("button", name="Support, completed").first).to_be_visible()
    await expect(page.get_by_text("budget 2 of 9 calls")).to_be_visible()
