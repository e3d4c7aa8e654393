"""``planwave config``: what holds, and where it is from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planwave.settings import Limits, Settings
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json

KEY = "sk-a-key-that-nobody-sees"


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def setting(name: str, *options: str) -> tuple[Any, str, str | None]:
    about = invoke_json("config", "show", *options)["settings"][name]
    return about["value"], about["from"], about["where"]


def test_every_setting_and_limit_is_shown_as_a_default() -> None:
    shown = invoke_json("config", "show")["settings"]
    expected = {"url", *Settings.model_fields, *(f"limits.{name}" for name in Limits.model_fields)}
    assert set(shown) == expected - {"limits"}
    changed = {name: about for name, about in shown.items() if about["from"] != "default"}
    assert set(changed) == {"model_dir"}  # the tests set it in the environment


def test_the_file_named_goes_before_the_trusted_one_and_this_before_the_own_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "home" / "planwave" / "planwave.toml"
    own.parent.mkdir(parents=True)
    own.write_text("port = 1\nhost = '127.0.0.2'\nmodel = 'own'\n[limits]\nnodes = 5\n")
    Path("planwave.toml").write_text("port = 2\nhost = '127.0.0.3'\n")
    assert invoke("trust", "--yes").exit_code == 0
    Path("named.toml").write_text("port = 3\n[secrets.shop]\nenv = 'SHOP'\nhosts = ['a.test']\n")
    monkeypatch.setenv("PLANWAVE_LIMIT_NODES", "7")
    options = ("--config", "named.toml")
    assert setting("port", *options) == (3, "file", "named.toml")
    assert setting("host", *options) == ("127.0.0.3", "file", "planwave.toml")
    assert setting("model", *options) == ("own", "file", str(own))
    assert setting("limits.nodes", *options) == (7, "environment", "PLANWAVE_LIMIT_NODES")
    assert setting("secrets.shop", *options)[1:] == ("file", "named.toml")
    assert setting("storage_dir", "--storage", "x") == ("x", "option", "--storage")
    paths = invoke("config", "path", *options).stdout.split()
    assert paths == ["named.toml", "planwave.toml", str(own)]
    assert invoke_json("config", "path", *options) == {"files": paths}
    assert invoke_json("doctor", *options)["settings_files"] == paths
    assert "named.toml, planwave.toml" in invoke("doctor", *options).stdout


def test_a_file_that_nobody_trusts_is_named_for_what_counts_in_it_alone() -> None:
    Path("planwave.toml").write_text("port = 2\n[limits]\nnodes = 5\n")
    assert setting("port") == (8000, "default", None)
    assert setting("limits.nodes") == (5, "file", "planwave.toml")
    assert "port" in invoke("config", "show").stderr


def test_of_secrets_only_that_they_are_set_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("PLANWAVE_TOKEN", KEY)
    assert setting("openai_api_key") == ("set", "environment", "OPENAI_API_KEY")
    assert setting("token") == ("set", "environment", "PLANWAVE_TOKEN")
    assert setting("anthropic_api_key") == (None, "default", None)
    for words in (("config", "show"), ("config", "show", "--json")):
        assert KEY not in invoke(*words).output


def test_the_service_that_commands_talk_to_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANWAVE_URL", "http://127.0.0.1:1/")
    assert setting("url") == ("http://127.0.0.1:1", "environment", "PLANWAVE_URL")
    assert setting("url", "--url", "http://127.0.0.1:2")[1:] == ("option", "--url")


def test_no_file_is_said_and_where_one_would_be() -> None:
    done = invoke("config", "path")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "./planwave.toml, or " in done.stderr
    assert json.loads(invoke("config", "path", "--json").stdout) == {"files": []}
