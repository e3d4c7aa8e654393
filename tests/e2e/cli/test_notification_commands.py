"""``planwave notifications``: the same by itself and through a service that holds the storage directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from tests.support.cli.command_process import isolated_directory
from tests.support.server.running_server import running_server
from tests.support.service.notified import hosted
from tests.support.triggers.hook_sender import OTHER_SECRET, text

TOKEN = "hush-hush-hush"
URL = "https://a.test/hook"
FLOW = {"nodes": [text("a", "done")], "edges": []}
CONFIG = '[secrets.hosted]\nenv = "HOSTED"\nhosts = ["a.test"]\n'


@pytest.fixture(params=["alone", "served"])
def planwave(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Run commands over a storage directory that nobody holds, or with a service elsewhere."""
    directory = tmp_path / "storage"
    isolated_directory(tmp_path, monkeypatch)
    (tmp_path / "planwave.toml").write_text(CONFIG)
    monkeypatch.setenv("PLANWAVE_CONFIG", "planwave.toml")
    monkeypatch.setenv("HOSTED", OTHER_SECRET)
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(directory))

    def run(*args: str, stdin: Any = None) -> Result:
        given = None if stdin is None else json.dumps(stdin)
        return CliRunner().invoke(app, list(args), obj=cli_factories(), input=given)

    if request.param == "alone":
        yield run
        return
    directory.mkdir()
    parts = {"secrets": hosted("a.test")}
    with running_server(directory=directory, token=TOKEN, overrides=parts) as running:
        monkeypatch.delenv("PLANWAVE_STORAGE_DIR")
        monkeypatch.setenv("PLANWAVE_URL", running.base_url)
        monkeypatch.setenv("PLANWAVE_TOKEN", TOKEN)
        yield run


def test_target_is_added_listed_and_removed_and_unknown_things_are_named(planwave: Any) -> None:
    def said(*args: str, stdin: Any = None) -> Any:
        done = planwave(*args, "--json", stdin=stdin)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    name = f"flow {uuid4()}"
    said("flow", "save", name, "-", stdin=FLOW)
    assert said("notifications") == {"targets": [], "dead": []}
    added = said("notifications", "add", name, URL, "--secret", "hosted", "--event", "waiting")
    assert (added["flow"], added["events"], added["problem"]) == (name, ["waiting"], None)
    assert said("notifications")["targets"] == [added]
    assert URL in planwave("notifications").output
    assert said("notifications", "resend", "--all") == {"resent": []}
    for args, words in (
        (("add", name, URL, "--secret", "nobody"), "[secrets.nobody]"),
        (("add", name, URL, "--secret", "hosted", "--event", "ended"), "completed, failed"),
        (("resend", "none"), "no message"),
        (("resend",), "--all"),
        (("rm", "nobody"), "no target"),
        (("rm", added["target_id"][-4:]), "at least 6 characters"),
    ):
        failed = planwave("notifications", *args)
        assert failed.exit_code != 0
        assert words in failed.output.replace("\n", " "), failed.output
    assert said("notifications", "rm", added["target_id"][-8:]) == {"removed": added["target_id"]}
    assert said("notifications")["targets"] == []
