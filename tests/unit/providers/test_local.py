"""The embedded model server's life, with a stand-in for the server program."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from planwave.errors import PlanwaveError, ProviderError, UnknownModel
from planwave.providers.api import LocalProvider
from planwave.providers.local import SLOTS, LocalModels
from planwave.providers.local_fit import Machine
from planwave.settings import Settings

ROOMY = Machine(cores=2, idle_cores=2.0, free_memory=10**12, avx2=True)
CRAMPED = Machine(cores=2, idle_cores=2.0, free_memory=10**8, avx2=True)

PROGRAM = """
import json, os, pathlib, sys
wanted = json.loads(sys.stdin.readline())
here = pathlib.Path(__file__)
with here.with_name("starts").open("a") as starts:
    starts.write(json.dumps(wanted | {"pid": os.getpid()}) + "\\n")
print(json.dumps({"address": "http://127.0.0.1:1"}), flush=True)
sys.stdin.read()
here.with_name("ended").write_text("ended")
"""
MUTE = "import os, pathlib, sys; pathlib.Path(__file__).with_name('starts').touch(); os.read(0, 1); sys.stdin.read()"


def settings(folder: Path, model: str = "qwen2.5-coder-1.5b", **more: int) -> Settings:
    return Settings(local_model=model, model_dir=folder, **more)  # type: ignore[arg-type]


def served(folder: Path, program: str = PROGRAM, machine: Machine = ROOMY) -> LocalModels:
    """Give local models whose one model is a file of its own and whose server is a script."""
    (folder / "own.gguf").write_bytes(b"GGUF and weights")
    script = folder / "program.py"
    script.write_text(program)
    return LocalModels(
        settings(folder, str(folder / "own.gguf")),
        machine=lambda: machine,
        busy=lambda: machine,
        installed=lambda: True,
        program=script,
    )


def starts(folder: Path) -> list[str]:
    return (folder / "starts").read_text().splitlines()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_of(start: str) -> int:
    return int(json.loads(start)["pid"])


async def test_calls_that_come_at_once_start_one_server(tmp_path: Path) -> None:
    local: LocalProvider = served(tmp_path)
    found: list[tuple[str, str]] = []

    async def ask() -> None:
        found.append(await local.endpoint("own"))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(ask())
    assert len(starts(tmp_path)) == 1
    assert len(set(found)) == 1
    base_url, key = found[0]
    assert base_url == "http://127.0.0.1:1/v1"
    assert len(key) >= 24
    await local.close()


async def test_the_event_loop_turns_while_a_server_starts(tmp_path: Path) -> None:
    local = served(tmp_path)
    starting = asyncio.ensure_future(local.endpoint("own"))  # noqa: TID251  # watched from outside
    turns = 0
    while not starting.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 100
    await local.close()


async def test_close_ends_the_server_and_the_next_call_starts_another(tmp_path: Path) -> None:
    local = served(tmp_path)
    _, first_key = await local.endpoint("own")
    await local.close()
    assert not is_alive(pid_of(starts(tmp_path)[0]))
    _, second_key = await local.endpoint("own")
    assert first_key != second_key
    assert len(starts(tmp_path)) == 2
    await local.close()
    await local.close()


async def test_a_server_that_died_is_started_again(tmp_path: Path) -> None:
    local = served(tmp_path)
    await local.endpoint("own")
    pid = pid_of(starts(tmp_path)[0])
    os.kill(pid, 9)
    while len(starts(tmp_path)) == 1:
        await local.endpoint("own")
    await local.close()
    assert len(starts(tmp_path)) == 2


@pytest.mark.parametrize("end", ["", "import os; os._exit(3)"])
def test_a_server_that_was_never_closed_ends_with_the_process(tmp_path: Path, end: str) -> None:
    served(tmp_path)
    # The stand-in writes here when its stdin ends, which is how it hears that it is alone.
    os.mkfifo(tmp_path / "ended")
    heard = os.open(tmp_path / "ended", os.O_RDONLY | os.O_NONBLOCK)
    script = f"""
import asyncio, pathlib
from planwave.providers.local import LocalModels
from planwave.providers.local_fit import Machine
from planwave.settings import Settings
folder = pathlib.Path({str(tmp_path)!r})
machine = lambda: Machine(cores=2)
local = LocalModels(
    Settings(local_model=str(folder / "own.gguf")),
    machine=machine, busy=machine, installed=lambda: True, program=folder / "program.py",
)
asyncio.run(local.endpoint("own"))
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (3 if end else 0, "")
    with open(heard, "rb") as told:
        assert select.select([told], [], [], 50)[0]
        assert told.read() == b"ended"


async def test_close_gives_up_a_start_that_hangs(tmp_path: Path) -> None:
    local = served(tmp_path, MUTE)
    faults: list[ProviderError] = []

    async def ask() -> None:
        try:
            await local.endpoint("own")
        except ProviderError as error:
            faults.append(error)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ask())
        while not (tmp_path / "starts").exists():  # noqa: ASYNC110  # another process makes it
            await asyncio.sleep(0)
        await local.close()
    assert faults[0].code == "local-model-unavailable"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise SystemExit('boom')", "boom"),
        ('input(); print(\'{"error": "RuntimeError: bad file"}\')', "RuntimeError: bad file"),
        ("input(); print('llama: hello')", "it said nothing"),
    ],
)
async def test_a_server_that_does_not_start_says_why(
    tmp_path: Path, program: str, said: str
) -> None:
    local = served(tmp_path, program)
    with pytest.raises(ProviderError, match="did not start") as caught:
        await local.endpoint("own")
    assert said in caught.value.message
    await local.close()


async def test_the_server_is_told_threads_slots_and_context(tmp_path: Path) -> None:
    local = served(tmp_path, machine=Machine(cores=2, idle_cores=0.4))
    await local.endpoint("own")
    wanted = json.loads(starts(tmp_path)[0])
    await local.close()
    assert (wanted["threads"], wanted["slots"], wanted["name"]) == (1, SLOTS, "own")
    assert wanted["context"] >= 4_000
    assert wanted["path"] == str(tmp_path / "own.gguf")


async def test_a_machine_that_became_too_small_is_refused_before_loading(tmp_path: Path) -> None:
    local = served(tmp_path, machine=CRAMPED)
    with pytest.raises(ProviderError, match="free memory"):
        await local.endpoint("own")
    assert not (tmp_path / "starts").exists()


async def test_what_cannot_be_served_is_refused_by_name(tmp_path: Path) -> None:
    local = served(tmp_path)
    with pytest.raises(UnknownModel, match="'gpt-9'"):
        await local.endpoint("gpt-9")
    with pytest.raises(ProviderError, match="smollm2-135m is not in") as caught:
        await local.endpoint("smollm2-135m")
    assert caught.value.hint == "run: planwave model pull smollm2-135m"
    (tmp_path / "own.gguf").write_bytes(b"ELF")
    with pytest.raises(PlanwaveError, match="not a GGUF file"):
        await local.endpoint("own")


def local_of(
    configured: Settings, machine: Machine = ROOMY, *, installed: bool = True
) -> LocalModels:
    return LocalModels(
        configured, machine=lambda: machine, busy=lambda: machine, installed=lambda: installed
    )


def test_unavailable_says_why_and_how_to_enable(tmp_path: Path) -> None:
    ready, reason, way = local_of(settings(tmp_path), installed=False).availability()
    assert (ready, way) == (False, "pip install 'planwave[local]'")
    assert "not installed" in reason

    ready, reason, way = local_of(settings(tmp_path)).availability()
    assert (ready, way) == (False, "planwave model pull")
    assert reason == "qwen2.5-coder-1.5b (1.1 GB) is not here yet"

    ready, reason, _ = local_of(settings(tmp_path), CRAMPED).availability()
    assert not ready
    assert "needs 2.5 GB of free memory" in reason

    ready, reason, way = local_of(settings(tmp_path, "gpt-9")).availability()
    assert not ready
    assert "smollm2-135m" in way

    ready, reason, way = local_of(settings(tmp_path, str(tmp_path / "no.gguf"))).availability()
    assert (ready, way) == (False, "set PLANWAVE_LOCAL_MODEL to one that is")
    assert "no.gguf is not a GGUF file" in reason


def test_a_file_of_ones_own_is_available_under_its_name(tmp_path: Path) -> None:
    local = served(tmp_path)
    assert local.availability() == (True, f"own is in {tmp_path}", "")
    assert local.default_model == "own"
    assert local.models == ("own",)


def test_the_model_to_pull_is_named_only_where_a_pull_would_help(tmp_path: Path) -> None:
    assert local_of(settings(tmp_path)).missing_model() == "qwen2.5-coder-1.5b"
    assert local_of(settings(tmp_path), installed=False).missing_model() is None
    assert local_of(settings(tmp_path), CRAMPED).missing_model() is None
    assert local_of(settings(tmp_path, str(tmp_path / "no.gguf"))).missing_model() is None
    assert served(tmp_path).missing_model() is None


def test_known_models_are_small_and_call_no_tools(tmp_path: Path) -> None:
    profile = local_of(settings(tmp_path)).profile("qwen2.5-coder-1.5b")
    assert (profile.small, profile.structured_output, profile.tools) == (True, True, False)
    assert profile.max_output_tokens == 220


def test_a_large_file_of_ones_own_is_not_small(tmp_path: Path) -> None:
    with (tmp_path / "big.gguf").open("wb") as file:
        file.truncate(5_000_000_000)  # sparse: takes no room
    profile = local_of(settings(tmp_path, str(tmp_path / "big.gguf"))).profile("big")
    assert not profile.small
    assert not profile.tools
