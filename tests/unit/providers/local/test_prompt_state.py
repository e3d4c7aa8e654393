"""Saved prompt states, with a fake of the server's slots."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planwave.providers.local.prompt_state import (
    MAX_FILES,
    PromptStateFiles,
    load_prompt_state,
)
from planwave.providers.protocols import ModelRequest
from tests.support.llm.fake_slot_server import FakeSlotServer

BEGINNING = "Here is the plan for another goal. "
REQUEST = ModelRequest(
    "local",
    "own",
    BEGINNING + "Goal: the secret trip",
    system="You plan.",
    fixed_chars=len(BEGINNING),
)
SETTINGS = {"model": "sha", "runtime": "1", "context": 4_096}


@pytest.fixture
def files(tmp_path: Path) -> PromptStateFiles:
    files = PromptStateFiles(tmp_path / "cache" / "prompt-state")
    assert files.open()
    return files


@pytest.fixture
def server(files: PromptStateFiles) -> Iterator[FakeSlotServer]:
    with FakeSlotServer(files.folder) as server:
        yield server


async def load(
    server: Any,
    files: PromptStateFiles,
    request: ModelRequest = REQUEST,
    key: str = "secret",
    **changes: Any,
) -> None:
    running: Any = SimpleNamespace(address=server.address, key=key)
    await load_prompt_state(running, files, request, SETTINGS | changes, 30.0)


def names(files: PromptStateFiles) -> list[str]:
    return sorted(path.name for path in files.folder.iterdir())


async def test_first_call_saves_the_fixed_beginning_alone(
    server: FakeSlotServer, files: PromptStateFiles
) -> None:
    await load(server, files)
    assert server.done == ["chat", "save"]
    _, slot, body = server.calls[0]
    assert body["max_tokens"] == 0
    assert server.slots[slot] == f"You plan.\n{BEGINNING}"
    [name] = names(files)
    assert "secret trip" not in (files.folder / name).read_text()


async def test_next_process_loads_the_saved_state(
    server: FakeSlotServer, files: PromptStateFiles
) -> None:
    await load(server, files)
    server.calls.clear()
    server.slots = ["", ""]
    await load(server, files, replace(REQUEST, prompt=BEGINNING + "Goal: another"))
    assert server.done == ["restore"]
    assert server.slots == [f"You plan.\n{BEGINNING}", ""]


async def test_a_busy_slot_is_left_alone(server: FakeSlotServer, files: PromptStateFiles) -> None:
    server.busy = {0}
    await load(server, files)
    assert [slot for _, slot, _ in server.calls] == [1, 1]
    server.calls.clear()
    server.busy = {0, 1}
    await load(server, files)
    assert server.calls == []


@pytest.mark.parametrize(
    "change",
    [{"model": "other"}, {"runtime": "2"}, {"context": 8_192}],
    ids=["model", "runtime", "context"],
)
async def test_a_state_of_other_settings_is_not_loaded(
    server: FakeSlotServer, files: PromptStateFiles, change: dict[str, Any]
) -> None:
    await load(server, files)
    await load(server, files, **change)
    assert server.done == ["chat", "save"] * 2
    assert len(names(files)) == 2


@pytest.mark.parametrize(
    "request_",
    [
        replace(REQUEST, system="You plan well."),
        replace(REQUEST, prompt=BEGINNING.upper() + "Goal: the secret trip"),
        replace(REQUEST, fixed_chars=len(BEGINNING) - 1),
    ],
    ids=["system", "beginning", "length"],
)
async def test_a_state_of_another_beginning_is_not_loaded(
    server: FakeSlotServer, files: PromptStateFiles, request_: ModelRequest
) -> None:
    await load(server, files)
    await load(server, files, request_)
    assert server.done == ["chat", "save"] * 2


@pytest.mark.parametrize("damage", [b"", b"STATE of something else", b"rubbish"])
async def test_a_damaged_file_is_deleted_and_made_again(
    server: FakeSlotServer, files: PromptStateFiles, damage: bytes
) -> None:
    await load(server, files)
    [name] = names(files)
    content = (files.folder / name).read_bytes()
    (files.folder / name).write_bytes(damage)
    await load(server, files)
    assert server.done == ["chat", "save"] * 2
    assert names(files) == [name]
    assert (files.folder / name).read_bytes() == content


async def test_a_file_that_the_server_refuses_is_deleted_and_made_again(
    server: FakeSlotServer, files: PromptStateFiles
) -> None:
    await load(server, files)
    [name] = names(files)
    draft = files.folder / "refused"
    draft.write_text("an older format")
    (files.folder / name).unlink()
    files.install("refused", name.partition("-")[0])
    await load(server, files)
    assert server.done == ["chat", "save", "restore", "chat", "save"]
    assert names(files) == [name]


async def test_a_state_with_the_text_of_another_call_is_not_kept(
    server: FakeSlotServer, files: PromptStateFiles
) -> None:
    server.stolen = "what a user wrote"
    await load(server, files)
    assert server.done == ["chat", "save"]
    assert names(files) == []


async def test_a_server_that_fails_is_no_error(
    server: FakeSlotServer, files: PromptStateFiles
) -> None:
    await load(server, files, key="wrong")
    assert names(files) == []
    await load(SimpleNamespace(address="http://127.0.0.1:1"), files)


async def test_a_folder_that_vanished_is_no_error(
    server: FakeSlotServer, files: PromptStateFiles
) -> None:
    server.folder = files.folder.parent
    await load(server, files)
    assert names(files) == []


def test_the_files_used_last_are_kept(files: PromptStateFiles) -> None:
    def add(key: str, age_s: int) -> None:
        (files.folder / "draft").write_text(f"STATE {key}")
        files.install("draft", key)
        [path] = files.folder.glob(f"{key}-*")
        os.utime(path, (1_700_000_000 - age_s,) * 2)

    for number in range(MAX_FILES):
        add(f"key{number}", age_s=100 - number)
    assert files.find("key0") is not None, "used again, so not the oldest any more"
    (files.folder / "draft").write_text("STATE new")
    files.install("draft", "new")
    kept = {name.partition("-")[0] for name in names(files)}
    assert kept == {"new", "key0"} | {f"key{number}" for number in range(2, MAX_FILES)}


def test_the_folder_is_the_owners(files: PromptStateFiles) -> None:
    files.folder.chmod(0o755)
    assert files.open()
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not PromptStateFiles(tmp_path / "file" / "prompt-state").open()
