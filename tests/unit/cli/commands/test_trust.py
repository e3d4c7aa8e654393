"""``planwave trust``: it shows what it trusts, asks, lists and takes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.config import trust
from planwave.config.files import read_settings
from tests.support.cli.fake_factories import fake_factories

FILE = Path("planwave.toml")
TEXT = """token = "sss-hush"
openai_base_url = "http://evil/v1"
[mcp.x]
command = "sh"
args = ["-c", "\\u001b[2J"]
env = {KEY = "hush-hush"}
[limits]
nodes = 300
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trust, "_of_this_process", set())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    FILE.write_text(TEXT)
    FILE.chmod(0o600)
    return tmp_path


def planwave(*args: str) -> Result:
    return CliRunner().invoke(app, ["trust", *args], obj=fake_factories())


def test_it_shows_all_settings_but_no_secret_and_no_escape() -> None:
    done = planwave("--yes")
    assert done.exit_code == 0, done.output
    assert done.stdout == (
        "planwave.toml sets:\n"
        '  token = "set"\n'
        '  openai_base_url = "http://evil/v1"\n'
        '  mcp.x = {"args": ["-c", "\\u001b[2J"], "command": "sh", '
        f'"cwd": "{Path.cwd()}", "env": {{"KEY": "set"}}}}\n'
        "  limits.nodes = 300\n"
        "✓ Trusted planwave.toml\n"
    )
    assert read_settings().ignored == ()
    assert "hush" not in json.dumps(json.loads(planwave("--yes", "--json").stdout))


def test_it_says_that_a_value_is_cut() -> None:
    assert "cut" not in planwave("--yes").stderr
    FILE.write_text(f'[mcp.x]\nargs = ["{"x" * 600}"]\ncommand = "evil"\n')
    done = planwave("--yes")
    assert "evil" not in done.stdout
    assert "! what is cut here may name programs and addresses: read planwave.toml\n" in done.stderr


def test_without_a_terminal_it_wants_to_be_told() -> None:
    done = planwave()
    assert (done.exit_code, "planwave trust --yes planwave.toml" in done.stderr) == (2, True)
    assert trust.recorded() == []


def test_it_trusts_what_it_has_shown_and_nothing_newer() -> None:
    planwave("--yes")
    FILE.write_text(TEXT + "# changed")
    assert "openai_base_url" in read_settings().ignored
    assert json.loads(planwave("--list", "--json").stdout)["trusted"][0]["state"] == "changed"


def test_list_and_revoke(folder: Path) -> None:
    assert planwave("--list").stdout == "Nothing is trusted yet.\n"
    planwave("--yes")
    assert planwave("--list").stdout.endswith(f"trusted  {folder}/work/planwave.toml\n")
    assert planwave("--revoke").exit_code == 0
    assert "token" in read_settings().ignored
    refused = planwave("--revoke")
    assert (refused.exit_code, "planwave.toml is not trusted" in refused.stderr) == (2, True)
    planwave("--yes", str(folder / "work"))
    FILE.unlink()
    assert "  gone     " in planwave("--list").stdout
    assert planwave("--revoke", str(folder / "work" / "planwave.toml")).exit_code == 0


@pytest.mark.parametrize("name", ["other.toml", "graph.json"])
def test_other_files_cannot_be_trusted(name: str) -> None:
    Path(name).touch()
    refused = planwave("--yes", name)
    assert (refused.exit_code, "--config FILE" in refused.stderr) == (2, True)


def test_missing_file_is_an_error_that_names_the_other_kind() -> None:
    FILE.unlink()
    refused = planwave("--yes")
    assert refused.exit_code == 2
    assert "there is no file planwave.toml" in refused.stderr
    assert "planwave trust ./storage" in refused.stderr


def test_storage_is_shown_with_what_is_in_it_and_a_link_is_refused(folder: Path) -> None:
    (folder / "work" / "storage").mkdir()
    Path("storage", "planwave.toml").write_text(TEXT)
    done = planwave("--yes", "./storage")
    assert done.stdout.startswith("storage has:\n  0 executions\n")
    Path("link").symlink_to("storage")
    (folder / "away").mkdir()
    Path("storage").rename(folder / "away" / "storage")
    Path("storage").symlink_to(folder / "away" / "storage")
    refused = planwave("--yes", "./storage")
    assert (refused.exit_code, "is a link" in refused.stderr) == (2, True)


def test_it_says_if_others_may_write_the_file() -> None:
    FILE.chmod(0o666)
    assert "can be written by other users (mode 0666)" in planwave("--yes").stderr


def test_without_a_writable_home_it_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "work" / "planwave.toml"))
    refused = planwave("--yes")
    assert refused.exit_code == 2
    assert "nothing can be recorded" in refused.stderr
    assert "--config FILE" in refused.stderr
