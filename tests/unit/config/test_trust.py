from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from planwave.config import trust

PROOF = "0" * 64


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory of a user who trusts nothing yet."""
    monkeypatch.setattr(trust, "_of_this_process", set())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state"


def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_of_this_process", set())


def test_what_is_recorded_is_trusted_with_that_proof_at_that_path_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not trust.is_trusted(Path("here.toml"), PROOF)
    assert trust.record(Path("here.toml"), PROOF)
    another_process(monkeypatch)
    assert trust.is_trusted(tmp_path / "here.toml", PROOF)
    assert not trust.is_trusted(Path("here.toml"), "1" * 64)
    assert not trust.is_trusted(Path("there.toml"), PROOF)
    trust.record(Path("here.toml"), "1" * 64)
    another_process(monkeypatch)
    assert not trust.is_trusted(Path("here.toml"), PROOF)
    assert [(each.path, each.proof) for each in trust.recorded()] == [
        (str(tmp_path / "here.toml"), "1" * 64)
    ]
    assert trust.revoke(Path("here.toml"))
    assert not trust.revoke(Path("here.toml"))
    assert trust.recorded() == []


def test_a_link_is_not_what_it_points_to_but_its_folder_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.toml").touch()
    trust.record(tmp_path / "mine" / "a.toml", PROOF)
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "a.toml").symlink_to(tmp_path / "mine" / "a.toml")
    (tmp_path / "alias").symlink_to(tmp_path / "mine")
    assert not trust.is_trusted(tmp_path / "clone" / "a.toml", PROOF)
    assert trust.is_trusted(tmp_path / "alias" / "a.toml", PROOF)
    assert trust.is_trusted(tmp_path / "clone" / ".." / "mine" / "a.toml", PROOF)


def test_records_are_private(state: Path) -> None:
    trust.record(Path("here.toml"), PROOF)
    (file,) = state.glob("planwave/trusted/*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_record_that_others_may_write_is_none(
    state: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust.record(Path("here.toml"), PROOF)
    another_process(monkeypatch)
    (file,) = state.glob("planwave/trusted/*.json")
    file.chmod(mode)
    assert not trust.is_trusted(Path("here.toml"), PROOF)


def test_record_of_another_user_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    trust.record(Path("here.toml"), PROOF)
    another_process(monkeypatch)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert not trust.is_trusted(Path("here.toml"), PROOF)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"path": 1}', "\xff", "[" * 100_000])
def test_damaged_record_is_none(state: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trust.record(Path("here.toml"), PROOF)
    another_process(monkeypatch)
    (file,) = state.glob("planwave/trusted/*.json")
    file.write_text(content, "latin-1")
    assert not trust.is_trusted(Path("here.toml"), PROOF)
    assert trust.recorded() == []


def test_record_copied_to_another_name_is_none(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust.record(Path("here.toml"), PROOF)
    (file,) = state.glob("planwave/trusted/*.json")
    trust.record(Path("there.toml"), PROOF)
    (other,) = set(state.glob("planwave/trusted/*.json")) - {file}
    other.write_text(json.dumps(json.loads(file.read_text())))
    another_process(monkeypatch)
    assert not trust.is_trusted(Path("there.toml"), PROOF)


@pytest.mark.parametrize("is_absent", [True, False], ids=["no home", "home cannot be written"])
def test_without_a_writable_home_only_this_process_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_absent: bool
) -> None:
    (tmp_path / "file").touch()
    if is_absent:
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.setenv("HOME", "")
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert not trust.record(Path("here.toml"), PROOF)
    assert trust.is_trusted(Path("here.toml"), PROOF)
    with trust.exclusive():
        another_process(monkeypatch)
    assert not trust.is_trusted(Path("here.toml"), PROOF)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize("value", ["", "state", "~/state", "./state"])
def test_relative_directory_in_the_environment_is_that_of_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    assert trust.state_directory() == tmp_path / "home" / ".local" / "state" / "planwave"
    assert trust.config_directory() == tmp_path / "home" / ".config" / "planwave"
