"""Files of other programs in the browser: chosen or pasted, looked at, opened in the editor, saved and run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
)
from tests.support.browser.chromium import TABLET, Pages
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.interop.imports import OWN

WORKFLOW = OWN / "agentflow" / "legacy_and_subagent.json"
PROGRAMS = OWN / "dify" / "code_tool_knowledge.yml"
TRANSLATION = OWN / "dify" / "reflect.yml"
GRAPH = {"nodes": [{"id": "a", "type": "text", "data": {"text": "Hello"}}], "edges": []}
FLOWCHART = OWN / "mermaid" / "decision.mmd"
AMBIGUOUS = '{"nodes": [{"id": "a", "name": "A", "description": "Do it.", "dependencies": []}], "connections": []}'


async def open_dialog(page: Page) -> Locator:
    """Open the dialog that imports files, from the list of flows."""
    await page.goto("/flows")
    await page.get_by_role("button", name="Import a file").click()
    dialog = page.get_by_role("dialog", name="Import a file")
    await expect(dialog.get_by_role("button", name="Choose a file")).to_be_focused()
    return dialog


async def choose(dialog: Locator, file: Path) -> None:
    await dialog.get_by_label("File to import").set_input_files(file)


async def test_a_workflow_is_looked_at_opened_in_the_editor_and_run(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    model.replies = dict.fromkeys(("",), "It is done.")
    dialog = await open_dialog(page)
    await choose(dialog, WORKFLOW)
    await expect(dialog).to_contain_text("This is an AgentFlow workflow")
    changed = dialog.get_by_role("region", name="Changed")
    await expect(changed.get_by_role("listitem").first).to_be_visible()
    await expect(dialog.get_by_role("region", name="To set up")).to_contain_text("openai")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Open in the editor").click()
    await page.wait_for_url("**/flows/*/edit")
    await expect(page.get_by_role("region", name="Problems")).to_contain_text("None")
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("It is done.")


async def test_a_dify_app_is_walked_from_its_file_to_a_result(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    model.replies = {"Translate": "Ein Anfang.", "": "Ein Ende."}
    dialog = await open_dialog(page)
    await choose(dialog, TRANSLATION)
    setup = dialog.get_by_role("region", name="To set up")
    await expect(setup).to_contain_text("anthropic for Final")
    await setup.get_by_label("Provider").select_option("openai")
    await expect(setup).not_to_contain_text("anthropic")
    await expect(dialog.get_by_role("region", name="Changed")).to_contain_text("Final")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Open in the editor").click()
    await page.wait_for_url("**/flows/*/edit")
    await expect(page.get_by_role("region", name="Problems")).to_contain_text("None")
    await page.locator("button[data-step]").filter(has_text="Final").click()
    said = page.get_by_role("region", name="Import")
    await expect(said).to_contain_text("Imported: Final, llm of a Dify app")
    await expect(said).to_contain_text("in place of anthropic")
    await assert_accessible(page)
    await page.get_by_role("link", name="Flow Reflect").click()
    form = page.get_by_role("form", name="Run the flow")
    await form.get_by_label("Text").fill("A start.")
    await form.get_by_label("Lang").fill("German")
    await assert_accessible(page)
    await form.get_by_role("button", name="Run").click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("Ein Ende.")
    assert "Translate:\nA start." in model.prompts[0]


@pytest.mark.slow
async def test_a_dify_app_that_is_pasted_is_mended_on_a_tablet(empty_page: Page) -> None:
    page = empty_page
    dialog = await open_dialog(page)
    await assert_screen_is_usable(page, "import", "tablet")
    await dialog.get_by_label("Paste a graph").fill(PROGRAMS.read_text("utf-8"))
    await dialog.get_by_role("button", name="Import", exact=True).click()
    await expect(dialog.get_by_role("region", name="To be replaced")).to_be_visible()
    await assert_screen_is_usable(page, "import-report", "tablet")
    await page.set_viewport_size({"width": TABLET[0], "height": TABLET[1]})
    await dialog.get_by_role("button", name="Open in the editor").click()
    await page.wait_for_url("**/flows/*/edit")
    await expect(page.get_by_role("button", name="Keyboard help")).to_be_in_viewport(ratio=1)
    for name in ("Search", "Handbook", "Both"):
        await (
            page.get_by_role("button", name=f"Show {name}")
            .or_(
                page.get_by_role("listitem")
                .filter(has_text=name)
                .get_by_role("button", name="Show")
            )
            .first.click()
        )
        panel = page.get_by_role("complementary", name=f"Settings of {name}")
        await expect(panel.get_by_role("region", name="Import")).to_contain_text(name)
        await panel.get_by_label("Replace with…").select_option("text")
        await panel.get_by_label("Text", exact=True).fill("{{ input }}")
    await expect(page.get_by_role("region", name="Problems")).to_contain_text("None")
    await expect(page.get_by_text("This is a draft")).to_have_count(0)
    await assert_screen_is_usable(page, "imported", "tablet")


@pytest.mark.slow
async def test_a_graph_of_planwave_is_there_without_a_dialog(pages: Pages, tmp_path: Path) -> None:
    pages.errors.expect("422")
    page = await pages.open(None)
    await page.goto("/flows")
    for name, graph, place in (
        ("Sound", GRAPH, "**/flows/*"),
        ("Broken", {**GRAPH, "nodes": [{"id": "a", "type": "text"}]}, "**/flows/*/edit"),
    ):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(graph), "utf-8")
        async with page.expect_file_chooser() as offered:
            await page.get_by_role("button", name="Import a file").click()
        await (await offered.value).set_files(file)
        await page.wait_for_url(place)
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.goto("/flows")
        await expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()


@pytest.mark.slow
async def test_what_changed_is_confirmed_before_a_flow_is_saved(empty_page: Page) -> None:
    page = empty_page
    dialog = await open_dialog(page)
    await choose(dialog, WORKFLOW)
    await dialog.get_by_role("button", name="Save as flow").click()
    form = dialog.get_by_role("form", name="Save as flow")
    await form.get_by_label("Name of the flow").fill("Imported by hand")
    await expect(form).to_contain_text("Confirm what changed")
    await form.get_by_label("I have read what changed").check()
    await assert_accessible(page)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Imported by hand", level=1)).to_be_visible()


@pytest.mark.slow
async def test_a_text_that_is_pasted_is_kept_until_it_can_be_read(pages: Pages) -> None:
    pages.errors.expect("422")
    page = await pages.open(None)
    dialog = await open_dialog(page)
    field = dialog.get_by_label("Paste a graph, a workflow of another program")
    await field.fill("a: &x 1\nb: *x")
    await dialog.get_by_role("button", name="Import", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("An anchor at line 1")
    await expect(field).to_have_value("a: &x 1\nb: *x")
    await expect(dialog.get_by_role("button", name="Import", exact=True)).to_be_focused()
    await field.fill(AMBIGUOUS)
    await dialog.get_by_role("button", name="Import", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("an AgentFlow workflow")
    await assert_accessible(page)
    await dialog.get_by_label("Read it as").select_option("agiraph")
    await dialog.get_by_role("button", name="Import", exact=True).click()
    await expect(dialog).to_contain_text("This is an agiraph plan")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


@pytest.mark.slow
async def test_a_flowchart_that_is_pasted_is_shown_step_by_step(empty_page: Page) -> None:
    page = empty_page
    dialog = await open_dialog(page)
    await dialog.get_by_label("Paste a graph").fill(FLOWCHART.read_text("utf-8"))
    await dialog.get_by_role("button", name="Import", exact=True).click()
    await expect(dialog).to_contain_text("This is a Mermaid flowchart")
    changed = dialog.get_by_role("region", name="Changed")
    await changed.get_by_role("button", name="Is it a complaint?").focus()
    marked = dialog.locator("figcaption")
    await expect(marked).to_contain_text("Ask: Is it a complaint?")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Another file").click()
    await expect(dialog.get_by_label("Paste a graph")).to_have_value(FLOWCHART.read_text("utf-8"))


@pytest.mark.slow
async def test_report_and_module_of_programs_are_downloaded(
    empty_page: Page, tmp_path: Path
) -> None:
    page = empty_page
    dialog = await open_dialog(page)
    await choose(dialog, PROGRAMS)
    await expect(dialog.get_by_role("region", name="To be replaced")).to_be_visible()
    report: dict[str, Any] = json.loads(
        await downloaded(page, dialog, "Download the report", tmp_path)
    )
    assert report["kind"] == "dify"
    await dialog.get_by_role("button", name="Write a Python module of it").click()
    code = await downloaded(page, dialog, "Download the Python module", tmp_path)
    compile(code, "steps.py", "exec")


async def downloaded(page: Page, dialog: Locator, button: str, directory: Path) -> str:
    """Press a button that hands over a file; return its text."""
    async with page.expect_download() as started:
        await dialog.get_by_role("button", name=button).click()
    file = directory / (await started.value).suggested_filename
    await (await started.value).save_as(file)
    return file.read_text("utf-8")


@every_width
async def test_the_dialog_is_usable(empty_page: Page, width: str) -> None:
    page = empty_page
    dialog = await open_dialog(page)
    await assert_screen_is_usable(page, "import", width)
    await choose(dialog, PROGRAMS)
    await expect(dialog.get_by_role("region", name="To be replaced")).to_be_visible()
    await assert_screen_is_usable(page, "import-report", width)
