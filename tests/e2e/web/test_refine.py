"""A plan is changed in words in the editor: a model proposes, a person sees all of it, and takes it or does not."""

from __future__ import annotations

import json

from playwright.async_api import Locator, expect

from tests.support.browser.accessibility import assert_accessible, assert_fits_everywhere, resize
from tests.support.browser.chromium import DESKTOP, Pages
from tests.support.browser.clicks import clicks_on, count_clicks
from tests.support.browser.plan_editor import PlanEditor
from tests.support.browser.scripted_model import Gate, ScriptedModel
from tests.support.llm.fake_llm_server import TextReply

LONG_TASK = f"Check every price twice. {'Round to euros. ' * 30}Then send them to nobody."
PROPOSED = json.dumps(
    {
        "answer": "Adds a step that checks the prices.",
        "operations": [
            {
                "op": "add_node",
                "node": {
                    "id": "prices",
                    "type": "agent",
                    "name": "Check the prices",
                    "description": LONG_TASK,
                    "data": {"provider": "openai", "model": "gpt-5.6-terra"},
                },
            },
            {"op": "add_edge", "edge": {"source": "draft", "target": "prices", "channel": "flow"}},
            {"op": "update_node", "id": "draft", "set": {"description": "Do draft with prices."}},
        ],
    }
)


async def ask(editor: PlanEditor, words: str) -> Locator:
    """Ask for a change; return the panel of what is proposed."""
    field = editor.page.get_by_role("textbox", name="Change in words")
    await field.fill(words)
    await field.press("Enter")
    return editor.page.get_by_role("region", name="Proposed change")


async def test_a_change_in_words_is_shown_whole_and_stored_once_it_is_taken(
    pages: Pages, model: ScriptedModel
) -> None:
    editor = await PlanEditor.open(pages)
    gate = Gate()
    model.replies = {"checks the prices": TextReply(PROPOSED, hold_until=gate)}
    await count_clicks(editor.page)
    proposal = await ask(editor, "Add a step that checks the prices")
    await expect(editor.page.get_by_role("status").get_by_text("A model writes")).to_be_visible()
    gate.set()
    await expect(proposal).to_contain_text("Adds a step that checks the prices.")
    await expect(proposal).to_contain_text("1 step")
    await expect(proposal).to_contain_text(LONG_TASK)
    await expect(proposal).to_contain_text("Do draft with prices.")
    await expect(proposal).to_contain_text("model openai/gpt-5.6-terra in prices")
    assert [number for number, _ in await editor.authors()] == [2, 1], "nothing is stored yet"
    await assert_accessible(editor.page)
    await assert_fits_everywhere(editor.page)
    await resize(editor.page, DESKTOP)
    await proposal.get_by_role("button", name="Take the change").click()
    await expect(proposal).to_have_count(0)
    await expect(editor.card("Check the prices")).to_be_visible()
    assert await clicks_on(editor.page) == 1
    assert (await editor.authors())[0] == (3, "person")
    await editor.page.get_by_role("button", name="Undo", exact=True).click()
    await expect(editor.card("Check the prices")).to_have_count(0)


async def test_a_proposal_that_is_put_aside_or_was_made_for_another_plan_changes_nothing(
    pages: Pages, model: ScriptedModel
) -> None:
    editor = await PlanEditor.open(pages)
    model.replies = {"checks the prices": PROPOSED}
    proposal = await ask(editor, "Add a step that checks the prices")
    await proposal.get_by_role("button", name="Not now").click()
    await expect(proposal).to_have_count(0)
    await editor.visit()
    await expect(proposal).to_be_visible()
    panel = await editor.select("Facts")
    await panel.get_by_label("Name").fill("What is known")
    await expect(proposal).to_have_count(0)
    assert len((await editor.saved())["nodes"]) == 3


async def test_words_that_change_nothing_get_the_sentence_of_the_model(
    pages: Pages, model: ScriptedModel
) -> None:
    pages.errors.expect("status of 422")
    editor = await PlanEditor.open(pages)
    model.replies = {"Make coffee": json.dumps({"answer": "No coffee here.", "operations": []})}
    proposal = await ask(editor, "Make coffee")
    await expect(editor.page.get_by_role("alert")).to_contain_text("No coffee here.")
    await expect(proposal).to_have_count(0)
    field = editor.page.get_by_role("textbox", name="Change in words")
    await expect(field).to_have_value("Make coffee")
