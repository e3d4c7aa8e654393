"""The embedded model server's life, with a stand-in for the server program."""

from __future__ import annotations

import asyncio
import json
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import PlanwaveError, ProviderError, UnknownModel
from planwave.providers.local import process
from planwave.providers.local.capacity import Machine
from planwave.providers.local.model_files import MODEL_FILES
from planwave.providers.local.models import SLOTS, LocalModelServers
from planwave.providers.protocols import LocalProvider, ModelRequest
from planwave.settings import Settings

ROOMY = Machine(cores=2, idle_cores=2.0, free_memory=10**12, avx2=True)
CRAMPED = Machine(cores=2, idle_cores=2.0, free_memory=10**8, avx2=True)

PROGRAM = """
import json, os, pathlib, socketserver, sys, threading
wanted = json.loads(sys.stdin.readline())
here = pathlib.Path(__file__)

class Well(socketserver.StreamRequestHandler):
    def handle(self):
        self.rfile.readline()
        self.wfile.write(b"HTTP/1.0 200 OK\\r\\n\\r\\n")

server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Well)
threading.Thread(target=server.serve_forever, daemon=True).start()
with here.with_name("starts").open("a") as starts:
    starts.write(json.dumps(wanted | {"pid": os.getpid()}) + "\\n")
print(json.dumps({"address": "http://127.0.0.1:%d" % server.server_address[1]}), flush=True)
sys.stdin.read()
here.with_name("ended").write_text("ended")
"""
MUTE = "import os, pathlib, sys; pathlib.Path(__file__).with_name('starts').touch(); os.read(0, 1); sys.stdin.read()"


def settings(folder: Path, model: str = "qwen2.5-coder-1.5b", **more: int) -> Settings:
    return Settings(local_model=model, model_dir=folder, **more)  # type: ignore[arg-type]


def served(
    folder: Path,
    program: str = PROGRAM,
    machine: Machine = ROOMY,
    busy: Callable[[], Machine] | None = None,
) -> LocalModelServers:
    """Give local models whose one model is a file of its own and whose server is a script."""
    (folder / "own.gguf").write_bytes(b"GGUF and weights")
    script = folder / "program.py"
    script.write_text(program)
    return LocalModelServers(
        settings(folder, str(folder / "own.gguf")),
        machine=lambda: machine,
        busy=busy or (lambda: machine),
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


async def test_concurrent_calls_start_one_server(tmp_path: Path) -> None:
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
    assert base_url.startswith("http://127.0.0.1:")
    assert base_url.endswith("/v1")
    assert len(key) >= 24
    await local.close()


async def test_event_loop_runs_during_server_start(tmp_path: Path) -> None:
    local = served(tmp_path)
    starting = asyncio.ensure_future(local.endpoint("own"))  # noqa: TID251  # watched from outside
    turns = 0
    while not starting.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 10
    await local.close()


async def test_closed_server_is_restarted_by_the_next_call(tmp_path: Path) -> None:
    local = served(tmp_path)
    _, first_key = await local.endpoint("own")
    await local.close()
    assert not is_alive(pid_of(starts(tmp_path)[0]))
    _, second_key = await local.endpoint("own")
    assert first_key != second_key
    assert len(starts(tmp_path)) == 2
    await local.close()
    await local.close()


async def test_dead_server_is_restarted(tmp_path: Path) -> None:
    local = served(tmp_path)
    await local.endpoint("own")
    pid = pid_of(starts(tmp_path)[0])
    os.kill(pid, 9)
    while len(starts(tmp_path)) == 1:
        await local.endpoint("own")
    await local.close()
    assert len(starts(tmp_path)) == 2


@pytest.mark.slow
async def test_hanging_server_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = served(tmp_path)
    first = await local.endpoint("own")
    assert await local.endpoint("own") == first
    pid = pid_of(starts(tmp_path)[0])
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(process, "_SILENT_S", 3.0)  # enough for one that is well
    async with asyncio.TaskGroup() as tasks:
        requested = [tasks.create_task(local.endpoint("own")) for _ in range(3)]
    assert {task.result() for task in requested} == {await local.endpoint("own")} != {first}
    assert not is_alive(pid)
    assert len(starts(tmp_path)) == 2
    await local.close()


@pytest.mark.parametrize("end", ["", "import os; os._exit(3)"])
def test_server_ends_with_its_parent_process(tmp_path: Path, end: str) -> None:
    served(tmp_path)
    # The stand-in writes here when its stdin ends, which is how it hears that it is alone.
    os.mkfifo(tmp_path / "ended")
    heard = os.open(tmp_path / "ended", os.O_RDONLY | os.O_NONBLOCK)
    script = f"""
import asyncio, pathlib
from planwave.providers.local.models import LocalModelServers
from planwave.providers.local.capacity import Machine
from planwave.settings import Settings
folder = pathlib.Path({str(tmp_path)!r})
machine = lambda: Machine(cores=2)
local = LocalModelServers(
    Settings(local_model=str(folder / "own.gguf"), model_dir=folder),
    machine=machine, busy=machine, installed=lambda: True, program=folder / "program.py",
)
asyncio.run(local.endpoint("own"))
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (3 if end else 0, "")
    with open(heard, "rb") as received:
        assert select.select([received], [], [], 120)[0]
        assert received.read() == b"ended"


async def test_close_cancels_a_hanging_start(tmp_path: Path) -> None:
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


def test_a_stop_ends_a_handshake_that_just_begins_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "server.py"
    program.write_text(MUTE)
    with (tmp_path / "stderr").open("w+") as stderr:
        started = process.start_process(program, stderr)

        class StoppedSelector(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> Any:
                process.stop([started])
                return super().select(timeout)

        monkeypatch.setattr(selectors, "DefaultSelector", StoppedSelector)
        monkeypatch.setattr(process, "_START_S", 5.0)
        assert process.handshake(started, {}) == {}


async def test_close_cancels_a_start_without_process(tmp_path: Path) -> None:
    looking, look_on = threading.Event(), threading.Event()

    def busy() -> Machine:
        looking.set()
        assert look_on.wait(60)
        return ROOMY

    local = served(tmp_path, busy=busy)
    async with asyncio.TaskGroup() as tasks:
        requested = [tasks.create_task(refused(local)) for _ in range(3)]
        assert await asyncio.to_thread(looking.wait, 60)
        await local.close()
        look_on.set()
    assert {task.result().code for task in requested} == {"local-model-unavailable"}
    assert not (tmp_path / "starts").exists()
    await local.endpoint("own")
    assert len(starts(tmp_path)) == 1
    await local.close()


async def refused(local: LocalModelServers, model: str = "own") -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await local.endpoint(model)
    return caught.value


async def test_memory_of_a_loading_model_counts_as_available(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "loaded")
    local = LocalModelServers(
        settings(tmp_path, str(tmp_path / "own.gguf")),
        machine=lambda: CRAMPED if (tmp_path / "loading").exists() else ROOMY,
        busy=lambda: ROOMY,
        installed=lambda: True,
        program=tmp_path / "program.py",
    )
    served(tmp_path, SLOW + PROGRAM)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(local.endpoint("own"))
        while not (tmp_path / "loading").exists():  # noqa: ASYNC110  # another process makes it
            await asyncio.sleep(0)
        available = local.availability()
        (tmp_path / "loaded").write_text("go on")
    assert available == (True, f"own is in {tmp_path}", "")
    await local.close()
    assert not local.availability()[0], "its memory is needed anew"


NO_CORE = "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
SLOW = """
import pathlib
here = pathlib.Path(__file__)
here.with_name("loading").touch()
here.with_name("loaded").read_text()
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "ended by signal 9 (Killed); most likely memory"),
        (NO_CORE + "os.kill(os.getpid(), 4)", "(Illegal instruction); most likely this processor"),
        ("import os; os.kill(os.getpid(), 15)", "ended by signal 15 (Terminated)"),
        ("input(); print(5)", "it said nothing"),
        ("raise SystemExit('boom')", "boom"),
        ('input(); print(\'{"error": "RuntimeError: bad file"}\')', "RuntimeError: bad file"),
        ("input(); print('llama: hello')", "it said nothing"),
    ],
)
async def test_failed_start_has_a_reason(tmp_path: Path, program: str, said: str) -> None:
    local = served(tmp_path, program)
    with pytest.raises(ProviderError, match="did not start") as caught:
        await local.endpoint("own")
    assert said in caught.value.message
    assert f"check that {tmp_path}/own.gguf is complete" in str(caught.value.hint)
    await local.close()


async def test_slow_start_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_START_S", 0.05)
    error = await refused(served(tmp_path, MUTE))
    assert "it was not ready after 0.05 s" in error.message


async def test_unstartable_process_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = served(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    error = await refused(local)
    assert error.code == "local-model-unavailable"
    assert "No such file" in error.message


def shown_of(pid: int) -> bytes:
    """Give what the system shows of a process: its command line and its environment."""
    shown = (Path(f"/proc/{pid}/{name}") for name in ("cmdline", "environ"))
    return b"".join(path.read_bytes() for path in shown if path.exists())


async def test_key_is_not_visible_in_process_or_repr(
    tmp_path: Path,
) -> None:
    local = served(tmp_path)
    _, key = await local.endpoint("own")
    server = local._servers["own"]
    assert key not in repr(server)
    assert key.encode() not in shown_of(server.process.pid)
    await local.close()


async def test_server_gets_threads_slots_and_context(tmp_path: Path) -> None:
    local = served(tmp_path, machine=Machine(cores=2, idle_cores=0.4))
    await local.endpoint("own")
    wanted = json.loads(starts(tmp_path)[0])
    await local.close()
    assert (wanted["threads"], wanted["slots"], wanted["name"]) == (1, SLOTS, "own")
    assert wanted["context"] >= 4_000
    assert wanted["path"] == str(tmp_path / "own.gguf")


async def test_insufficient_memory_is_rejected_before_start(tmp_path: Path) -> None:
    local = served(tmp_path, machine=CRAMPED)
    with pytest.raises(ProviderError, match="free memory"):
        await local.endpoint("own")
    assert not (tmp_path / "starts").exists()


async def test_unknown_missing_or_invalid_model_is_rejected(tmp_path: Path) -> None:
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
) -> LocalModelServers:
    return LocalModelServers(
        configured, machine=lambda: machine, busy=lambda: machine, installed=lambda: installed
    )


def test_unavailability_has_reason_and_hint(tmp_path: Path) -> None:
    ready, reason, way = local_of(settings(tmp_path), installed=False).availability()
    assert (ready, way) == (False, "pip install 'planwave[local]'")
    assert "not installed" in reason

    ready, reason, way = local_of(settings(tmp_path)).availability()
    assert (ready, way) == (False, "planwave model pull")
    assert reason == "qwen2.5-coder-1.5b (1.1 GB) is not downloaded yet"

    ready, reason, _ = local_of(settings(tmp_path), CRAMPED).availability()
    assert not ready
    assert "needs 2.5 GB of free memory" in reason

    ready, reason, way = local_of(settings(tmp_path, "gpt-9")).availability()
    assert not ready
    assert "smollm2-135m" in way

    ready, reason, way = local_of(settings(tmp_path, str(tmp_path / "no.gguf"))).availability()
    assert (ready, way) == (False, "set PLANWAVE_LOCAL_MODEL to one that is")
    assert "no.gguf is not a GGUF file" in reason


def test_own_model_file_is_available_under_its_name(tmp_path: Path) -> None:
    local = served(tmp_path)
    assert local.availability() == (True, f"own is in {tmp_path}", "")
    assert local.default_model == "own"
    assert local.models == ("own",)


async def test_own_model_file_may_have_the_name_of_a_known_model(tmp_path: Path) -> None:
    served(tmp_path)
    own = tmp_path / "qwen2.5-coder-1.5b.gguf"
    shutil.move(tmp_path / "own.gguf", own)
    local = LocalModelServers(
        Settings(local_model=str(own), model_dir=tmp_path / "elsewhere"),
        machine=lambda: ROOMY,
        busy=lambda: ROOMY,
        installed=lambda: True,
        program=tmp_path / "program.py",
    )
    assert local.availability() == (True, f"qwen2.5-coder-1.5b is in {tmp_path}", "")
    assert local.required_download() is None
    await local.endpoint("qwen2.5-coder-1.5b")
    assert json.loads(starts(tmp_path)[0])["path"] == str(own)
    await local.close()
    own.unlink()
    assert local.required_download() is None


def test_model_path_with_unknown_home_is_unavailable(tmp_path: Path) -> None:
    local = local_of(settings(tmp_path, "~nobody-of-that-name/own.gguf"))
    assert local.availability()[:2] == (
        False,
        "~nobody-of-that-name/own.gguf is not a GGUF file",
    )


@pytest.mark.parametrize(
    ("provider", "asked", "default"),
    [
        (None, "qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b"),
        ("local", "qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b"),
        ("mine", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"),
        (None, "gpt-9", "qwen2.5-coder-1.5b"),
    ],
)
def test_known_model_in_settings_is_the_default(
    tmp_path: Path, provider: str | None, asked: str, default: str
) -> None:
    local = local_of(Settings(model_dir=tmp_path, provider=provider, model=asked))
    assert (local.default_model, local.required_download()) == (default, default)


def test_required_download_is_named_only_when_it_helps(tmp_path: Path) -> None:
    assert local_of(settings(tmp_path)).required_download() == "qwen2.5-coder-1.5b"
    assert local_of(settings(tmp_path), installed=False).required_download() is None
    assert local_of(settings(tmp_path), CRAMPED).required_download() is None
    assert local_of(settings(tmp_path, str(tmp_path / "no.gguf"))).required_download() is None
    assert served(tmp_path).required_download() is None


def test_known_models_are_small_without_tools(tmp_path: Path) -> None:
    profile = local_of(settings(tmp_path)).profile("qwen2.5-coder-1.5b")
    assert (profile.small, profile.structured_output, profile.tools) == (True, True, False)
    assert profile.max_output_tokens == 220


def test_only_planning_models_are_marked_so(tmp_path: Path) -> None:
    local = local_of(settings(tmp_path))
    able = {name for name in MODEL_FILES if local.profile(name).plans}
    assert able == {"qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"}
    own = local_of(settings(tmp_path, str(tmp_path / "smollm2-135m.gguf")))
    assert own.profile("smollm2-135m").plans, "nothing is known of a file of one's own"


def test_large_own_model_file_is_not_small(tmp_path: Path) -> None:
    with (tmp_path / "big.gguf").open("wb") as file:
        file.truncate(5_000_000_000)  # sparse: takes no room
    profile = local_of(settings(tmp_path, str(tmp_path / "big.gguf"))).profile("big")
    assert not profile.small
    assert not profile.tools


SLOT_PROGRAM = """
import json, pathlib, sys
sys.path.insert(0, {root!r})
from tests.support.llm.fake_slot_server import FakeSlotServer
wanted = json.loads(sys.stdin.readline())
with FakeSlotServer(pathlib.Path(wanted["states"]), wanted["key"]) as server:
    print(json.dumps({{"address": server.address}}), flush=True)
    sys.stdin.read()
    pathlib.Path(__file__).with_name("done").open("a").write(" ".join(server.done) + "; ")
"""


@pytest.mark.slow
async def test_the_state_of_a_fixed_beginning_outlives_the_server(tmp_path: Path) -> None:
    program = SLOT_PROGRAM.format(root=str(Path(__file__).parents[4]))
    request = ModelRequest("local", "own", "Plan this: a trip", fixed_chars=11)
    for _ in range(2):
        local = served(tmp_path, program)
        os.utime(tmp_path / "own.gguf", (1, 1))
        await local.prepare(request)  # no server runs yet
        await local.endpoint("own")
        await local.prepare(request)
        await local.close()
    assert (tmp_path / "done").read_text() == "chat save; restore; "
    folder = tmp_path / "prompt-state"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(list(folder.iterdir())) == 1


@pytest.mark.slow
async def test_another_file_of_the_same_name_has_another_state(tmp_path: Path) -> None:
    program = SLOT_PROGRAM.format(root=str(Path(__file__).parents[4]))
    request = ModelRequest("local", "own", "Plan this: a trip", fixed_chars=11)
    for seconds in (1, 2):
        local = served(tmp_path, program)
        os.utime(tmp_path / "own.gguf", (seconds, seconds))
        await local.endpoint("own")
        await local.prepare(request)
        await local.close()
    assert (tmp_path / "done").read_text() == "chat save; chat save; "


async def test_without_a_folder_for_states_calls_work(tmp_path: Path) -> None:
    (tmp_path / "prompt-state").write_text("in the way")
    local = served(tmp_path)
    await local.endpoint("own")
    assert json.loads(starts(tmp_path)[0])["states"] == ""
    await local.prepare(ModelRequest("local", "own", "Plan this: a trip", fixed_chars=11))
    await local.close()
