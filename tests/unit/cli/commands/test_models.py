import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.cli.commands import models
from planwave.cli.commands.models import download_model, download_with_progress
from planwave.cli.signals import Interrupted
from planwave.errors import InputError, StoreError, UnknownModel
from planwave.providers.protocols import ProviderInfo
from planwave.settings import McpServerSettings, Settings
from tests.support.cli.fake_console import (
    console_output,
    plain_console,
    terminal_console,
    visible_lines,
)
from tests.support.cli.fake_factories import FakeEmbeddedModel, fake_factories
from tests.support.llm.fake_providers import FakeProviders
from tests.support.mcp.servers import Marks, hostile_program


def planwave(*args: str, **more: Any) -> Result:
    return CliRunner().invoke(app, list(args), obj=fake_factories(**more))


def test_doctor_lists_providers_with_reasons_and_ways_to_enable_them(tmp_path: Path) -> None:
    done = planwave("doctor", "--storage", str(tmp_path / "none"))
    assert done.exit_code == 0, done.output
    assert "✓ openai" in done.stdout
    assert "⊘ off     no key" in done.stdout
    assert "→ set OFF_KEY" in done.stdout
    assert "not made yet" in done.stdout
    assert not (tmp_path / "none").exists()


def test_doctor_lists_models(tmp_path: Path) -> None:
    found = json.loads(planwave("doctor", "--json", model_dir=tmp_path).stdout)
    assert {each["cached"] for each in found["models"]} == {False}
    done = planwave("doctor", model_dir=tmp_path)
    assert "not downloaded: planwave model pull qwen2.5-coder-1.5b" in done.stdout
    assert [each["name"] for each in found["models"] if not each["plans"]] == ["smollm2-135m"]
    assert done.stdout.count("(runs steps, cannot plan)") == 1


def test_doctor_starts_the_mcp_servers_and_says_why_one_does_not_start(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks")
    tables = {
        "broken": McpServerSettings(**hostile_program(marks, "exit")),
        "works": McpServerSettings(**hostile_program(marks, "plain")),
    }
    called = ("doctor", "--start")
    broken, works = json.loads(planwave(*called, "--json", mcp=tables).stdout)["mcp_servers"]
    assert (works["name"], works["kind"], works["tools"]) == ("works", "stdio", 1)
    assert (broken["tools"], "status 7" in broken["reason"]) == (None, True)
    done = planwave(*called, mcp=tables)
    assert "✓ works   1 tool\n" in done.stdout
    assert "⊘ broken  the MCP server 'broken' did not start" in done.stdout
    assert "→ correct [mcp.broken] in planwave.toml" in done.stdout
    assert "MCP servers" not in planwave("doctor").stdout


def test_doctor_starts_nothing_unless_asked(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks")
    tables = {
        "box": McpServerSettings(**hostile_program(marks, "plain")),
        "web": McpServerSettings(url="http://192.0.2.1/mcp"),
    }
    found = json.loads(planwave("doctor", "--json", mcp=tables).stdout)["mcp_servers"]
    assert [(each["name"], each["kind"], each["tools"]) for each in found] == [
        ("box", "stdio", None),
        ("web", "http", None),
    ]
    assert {each["reason"] for each in found} == {"not started"}
    shown = planwave("doctor", mcp=tables).stdout
    assert "box  not started\n    → planwave doctor --start tries it\n" in shown
    assert not (tmp_path / "marks").exists() or list((tmp_path / "marks").iterdir()) == []


def test_doctor_reports_storage_errors(tmp_path: Path) -> None:
    def broken(_: Any) -> Any:
        raise StoreError("the database was written by a newer planwave", hint="use that one")

    done = planwave("doctor", "--storage", str(tmp_path), "--json", history=broken)
    assert done.exit_code == 1
    assert json.loads(done.stdout)["storage"] == {
        "directory": str(tmp_path),
        "ok": False,
        "state": "the database was written by a newer planwave",
        "hint": "use that one",
    }
    assert json.loads(done.stdout)["ok"] is False
    shown = planwave("doctor", "--storage", str(tmp_path), history=broken).stdout
    assert "→ use that one" in shown


@pytest.mark.parametrize("below", ["", "deeper"])
def test_doctor_reports_a_file_in_place_of_storage(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    done = planwave("doctor", "--storage", str(tmp_path / "file" / below), "--json")
    assert done.exit_code == 1
    stored = json.loads(done.stdout)["storage"]
    assert (stored["ok"], stored["state"]) == (
        False,
        f"'{tmp_path}/file' is a file, not a directory",
    )
    assert "--storage" in stored["hint"]


def test_doctor_does_not_truncate_on_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    shown = planwave("doctor", "--storage", str(tmp_path / "none")).stdout
    assert "…" not in shown
    assert "planwave model pull qwen2.5-coder-1.5b\n" in shown


def test_pull_downloads_configured_or_named_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []

    def fetch(console: Any, settings: Any, name: str) -> Path:
        names.append(name)
        return Path("there.gguf")

    monkeypatch.setattr(models, "download_with_progress", fetch)
    assert "there.gguf" in planwave("model", "pull").stdout
    done = planwave("model", "pull", "qwen2.5-coder-0.5b", "--json")
    assert json.loads(done.stdout) == {"model": "qwen2.5-coder-0.5b", "path": "there.gguf"}
    assert names == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]


def test_pull_of_unknown_model_lists_known_models() -> None:
    done = planwave("model", "pull", "gpt-9")
    assert done.exit_code == 4
    assert "qwen2.5-coder-1.5b" in done.stderr


class Nobody(FakeProviders):
    infos = (ProviderInfo("off", "anthropic", False, "no key", "set OFF_KEY"),)


def test_doctor_exit_code_depends_on_planning_providers() -> None:
    done = planwave("doctor", providers=Nobody())
    assert done.exit_code == 4
    assert "nothing can be planned" in done.stderr
    done = planwave("doctor", providers=Nobody(), embedded=FakeEmbeddedModel("qwen2.5-coder-1.5b"))
    assert done.exit_code == 0
    assert "The first run downloads the embedded model" in done.stdout


NAME = "qwen2.5-coder-0.5b"


def fetch(name: str, directory: Path, *, progress: Any) -> Path:
    for done in range(0, 101):
        progress(name, done * 1_000_000, 100_000_000)
    return directory / f"{name}.gguf"


def interrupted(name: str, directory: Path, *, progress: Any) -> Path:
    raise KeyboardInterrupt


def test_download_prints_every_tenth_in_a_pipe(tmp_path: Path) -> None:
    console = plain_console()
    path = download_with_progress(console, Settings(model_dir=tmp_path), NAME, fetch)
    assert path == tmp_path / f"{NAME}.gguf"
    lines = console_output(console).splitlines()
    assert lines == [f"{NAME}: {percent} % of 100 MB" for percent in range(0, 101, 10)]


def test_download_shows_a_transient_bar_on_a_terminal(tmp_path: Path) -> None:
    console = terminal_console(width=100)
    download_with_progress(console, Settings(model_dir=tmp_path), NAME, fetch)
    assert "100.0/100.0 MB" in console_output(console)
    assert visible_lines(console) == []


def test_download_announces_size_and_directory(tmp_path: Path) -> None:
    console = plain_console()
    download_model(console, Settings(model_dir=tmp_path), NAME, fetch)
    first = console_output(console).splitlines()[0]
    assert "0.5 GB" in first
    assert str(tmp_path) in first


def test_interrupted_download_says_that_it_can_continue(tmp_path: Path) -> None:
    console = plain_console()
    with pytest.raises(Interrupted, match=f"the downloaded part of {NAME} is stored") as caught:
        download_with_progress(console, Settings(model_dir=tmp_path), NAME, interrupted)
    assert caught.value.hint == f"continue with: planwave model pull {NAME}"


def test_own_model_file_is_not_downloaded(tmp_path: Path) -> None:
    console = plain_console()
    with pytest.raises(InputError, match=r"my\.gguf is a file of your own") as caught:
        download_with_progress(console, Settings(model_dir=tmp_path), "~/my.gguf", fetch)
    assert "planwave model pull qwen2.5-coder-1.5b" in str(caught.value.hint)


def test_unknown_home_directory_is_shown_as_written() -> None:
    console = plain_console()
    download_model(console, Settings(model_dir=Path("~nobody-of-that-name/m")), NAME, fetch)
    assert "~nobody-of-that-name/m" in console_output(console)


def test_unknown_model_is_rejected_before_output(tmp_path: Path) -> None:
    console = plain_console()
    with pytest.raises(UnknownModel):
        download_with_progress(console, Settings(model_dir=tmp_path), "nothing", fetch)
    assert console_output(console) == ""
