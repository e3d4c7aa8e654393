"""The flows under ``examples/triggers`` run by hand, by a signed request, and at their time."""

from __future__ import annotations

import hmac
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.config.files import load_settings
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.doc_page import blocks, commands
from tests.support.cli.in_process_command import invoke
from tests.support.llm.fake_llm_server import FakeLLMServer, fake_llm_in_thread, prompt_of
from tests.support.paths import ROOT
from tests.support.server.in_process_client import asgi_client

FOLDER = ROOT / "examples" / "triggers"
PAGE = (FOLDER / "README.md").read_text("utf-8")
SECRET = "a secret of the repository"


@pytest.fixture
def llm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A model, and a directory with the examples and the settings of the page."""
    isolated_directory(tmp_path, monkeypatch)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (settings,) = [each["text"] for each in blocks(PAGE) if each["kind"] == "toml"]
    (tmp_path / "planwave.toml").write_text(settings)
    monkeypatch.setenv("PLANWAVE_CONFIG", "planwave.toml")
    monkeypatch.setenv("GITHUB_WEBHOOK_SECRET", SECRET)

    def answer(body: dict[str, Any]) -> str:
        return "bug" if "What is this issue?" in prompt_of(body) else "Graz has many returns."

    with fake_llm_in_thread(reply_to=answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def test_commands_of_the_page_run(llm: FakeLLMServer) -> None:
    shown = [c for block in blocks(PAGE) for c in commands(block["text"])]
    assert len(shown) == 6
    for command in shown:
        done = invoke(*shlex.split(command.line)[1:])
        assert done.exit_code == 0, done.output
    listed = json.loads(invoke("triggers", "--json").stdout)["triggers"]
    assert {each["problem"] for each in listed} == {None}
    nights = next(each["details"]["next"] for each in listed if each["kind"] == "schedule")
    assert len(nights) == 5


def test_report_is_written_when_its_schedule_fires(llm: FakeLLMServer) -> None:
    invoke("flow", "save", "night", str(FOLDER / "nightly_report.json"))
    own = json.loads(invoke("triggers", "add", "night", "--json").stdout)["trigger_id"]
    fired = json.loads(invoke("triggers", "fire", own, "--json").stdout)
    document = json.loads(invoke("show", fired["execution_id"], "--json").stdout)
    results = {each["id"]: each["outputs"] for each in document["nodes"]}
    assert "Graz has many returns." in str(results["report"])
    assert "Graz" in prompt_of(llm.requests[-1].body)


async def test_issue_that_github_reports_is_answered_at_once_and_sorted(llm: FakeLLMServer) -> None:
    issue = {"number": 9, "title": "It crashes", "body": "Always."}
    body = json.dumps({"action": "opened", "issue": issue})
    sign = hmac.new(SECRET.encode(), body.encode(), "sha256").hexdigest()
    headers = {
        "content-type": "application/json",
        "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "x-hub-signature-256": f"sha256={sign}",
    }
    app = create_app(load_settings(), open_service)
    async with asgi_client(app) as calls:
        graph = json.loads((FOLDER / "github_triage.json").read_text("utf-8"))
        flow = (await calls.post("/api/flows", json={"name": "T", "graph": graph})).json()
        made = await calls.post("/api/triggers", json={"plan_id": flow["plan_id"]})
        hook = f"/hooks/{made.json()['trigger_id']}"
        answers = [await calls.post(hook, content=body, headers=headers) for _ in range(2)]
        assert [(x.status_code, x.text) for x in answers] == [(202, "Issue 9 is being sorted.")] * 2
        assert (await calls.post(hook, content=body)).status_code == 401
        (record,) = (await calls.get("/api/executions")).json()["executions"]
        service = app.state.planwave.service
        await service.executions.wait(record["execution_id"])
        document = await service.executions.document(record["execution_id"])
        (result,) = [each for each in document["nodes"] if each["id"] == "result"]
        assert result["outputs"]["output"]["value"] == {"issue": 9, "label": "bug"}
        labelled = json.dumps({"action": "labeled"})
        sign = hmac.new(SECRET.encode(), labelled.encode(), "sha256").hexdigest()
        other = {**headers, "x-github-delivery": "o", "x-hub-signature-256": f"sha256={sign}"}
        answer = await calls.post(hook, content=labelled, headers=other)
        assert (answer.status_code, answer.text) == (200, "Nothing to do.")
