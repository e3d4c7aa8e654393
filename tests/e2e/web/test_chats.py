"""The chat screen: answers that stream, branches, questions inside an answer, several windows."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import assert_screen_is_usable, every_width, resize
from tests.support.browser.chromium import PHONE, Pages
from tests.support.browser.nasty_text import LONG_LINE, LONG_TEXT
from tests.support.browser.scripted_model import Gate, ScriptedModel
from tests.support.llm.fake_llm_server import TextReply, ToolCallReply


async def say(page: Page, text: str) -> None:
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await page.get_by_role("textbox", name="Message").fill(text)
    await page.get_by_role("textbox", name="Message").press("Enter")


def answers(page: Page) -> Locator:
    return page.get_by_role("article", name="Answer")


async def choose_tools(page: Page, *names: str) -> None:
    await page.get_by_role("button", name="Options").click()
    for name in names:
        await page.get_by_role("checkbox", name=name).check()
    await page.keyboard.press("Escape")


async def test_an_answer_streams_is_edited_retried_and_found_again(
    page: Page, pages: Pages, model: ScriptedModel
) -> None:
    rest = Gate()
    model.replies = {
        "What is a wave?": TextReply("A **wave** is a group of steps.", chunks=4, gates={2: rest}),
        "And a run?": "A run is one go at a goal.",
    }
    await page.goto("/chat")
    await say(page, "What is a wave?")
    await expect(answers(page)).to_contain_text("A **wave")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    second = await pages.open(urlsplit(page.url).path)
    rest.set()
    for window in (page, second):
        await expect(answers(window)).to_contain_text("is a group of steps.")
        await expect(window.get_by_role("button", name="Send")).to_be_visible()

    await answers(page).get_by_role("button", name="Retry").click()
    for window in (page, second):
        await expect(window.get_by_role("group", name="answer 2 of 2")).to_be_visible()
    await page.get_by_role("button", name="Previous answer").click()
    for window in (page, second):
        await expect(window.get_by_role("group", name="answer 1 of 2")).to_be_visible()

    await page.get_by_role("button", name="Edit").click()
    await (
        page.get_by_role("form", name="Edit the message").get_by_label("Message").fill("And a run?")
    )
    await page.get_by_role("button", name="Send as another branch").click()
    await expect(answers(page)).to_contain_text("A run is one go at a goal.")
    await expect(page.get_by_role("group", name="version 2 of 2")).to_be_visible()
    await page.reload()
    await expect(answers(page)).to_contain_text("A run is one go at a goal.")


async def test_an_answer_is_stopped_and_the_chat_goes_on(page: Page, model: ScriptedModel) -> None:
    model.replies = {
        "Never mind.": "As you like.",
        "Count to ten.": TextReply("One two three", chunks=3, gates={2: Gate()}),
    }
    await page.goto("/chat")
    await say(page, "Count to ten.")
    await expect(answers(page)).to_contain_text("One t")
    await page.keyboard.press("Escape")
    await expect(answers(page)).to_contain_text("Stopped")
    await say(page, "Never mind.")
    await expect(answers(page).last).to_contain_text("As you like.")


async def test_a_long_line_widens_no_message_and_the_end_of_a_fast_answer_is_followed(
    page: Page, model: ScriptedModel
) -> None:
    model.replies = {"Say much": TextReply(LONG_TEXT, chunks=3)}
    await page.goto("/chat")
    await say(page, f"Say much: {LONG_LINE.replace(' ', '_')}")
    await expect(answers(page).get_by_role("heading", name="Section 59")).to_be_in_viewport()
    messages = page.get_by_role("article")
    for size, most in (((1440, 900), 680), (PHONE, PHONE[0])):
        await resize(page, size)
        boxes = [await message.bounding_box() for message in await messages.all()]
        assert len(boxes) == 2
        for box in boxes:
            assert box is not None
            assert box["width"] <= most, "a message is as wide as its longest line"
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size[0]
        assert (
            await answers(page)
            .locator("pre")
            .first.evaluate("(code) => code.scrollWidth > code.clientWidth")
        ), "code scrolls by itself"


@every_width
async def test_a_call_is_approved_inside_the_answer(
    page: Page, model: ScriptedModel, width: str
) -> None:
    mail = {"to": "ada@example.org", "subject": "Your order"}
    model.agents = {
        "Write to Ada": [
            ToolCallReply([("look_up_order", {"number": "A-17"}), ("send_mail", mail)]),
            "I have written to **Grace**.",
        ]
    }
    await page.goto("/chat")
    await choose_tools(page, "look_up_order", "send_mail")
    await say(page, "Write to Ada")
    question = answers(page).get_by_role("region", name="Waiting for you", exact=True)
    await expect(question).to_contain_text("send_mail")
    await assert_screen_is_usable(page, "chat-asks", width)
    await question.get_by_role("button", name="Edit first").click()
    await question.get_by_label("To", exact=True).fill("grace@example.org")
    await question.get_by_role("button", name="Approve").click()
    await expect(answers(page)).to_contain_text("I have written to Grace.")
    await expect(answers(page).get_by_role("region", name="Approved")).to_be_visible()
    await answers(page).locator("summary").filter(has_text="send_mail").click()
    await expect(answers(page)).to_contain_text("mail to grace@example.org")
    await assert_screen_is_usable(page, "chat", width)
    await page.goto("/chat")
    await expect(page.get_by_role("navigation", name="Chats")).to_contain_text("Write to Ada")
    await assert_screen_is_usable(page, "chat-new", width)
