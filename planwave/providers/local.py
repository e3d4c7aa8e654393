"""The embedded model server: an OpenAI-compatible endpoint planwave starts, keys and stops itself.

Nothing starts before the first :meth:`LocalModels.endpoint`. Each model gets one server process
(``local_server.py`` says why a process), on a loopback port of its own, with a random key.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import secrets
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from planwave.errors import InputError, ProviderError, UnknownModel
from planwave.providers.api import ModelProfile
from planwave.providers.local_catalogue import MODEL_FILES, is_path
from planwave.providers.local_files import is_present, model_path, verified_path
from planwave.providers.local_fit import (
    Machine,
    busy_machine,
    this_machine,
    threads_for,
    unfit_reason,
)
from planwave.settings import Settings

PROVIDER = "local"
SLOTS = 2
"""Calls served at once. Two cores are no faster with more: each call only takes longer."""
CONTEXT_TOKENS = 4_096
"""Per slot: a step that reads eight earlier results of 220 tokens, its goal and its own text."""
SMALL_MODEL_TOKENS = 220
"""What a step of a small model may write: a few sentences, fifteen seconds on two cores."""
_SMALL_BYTES = 3_000_000_000
_START_S = 120.0
_STOP_S = 1.0
_GGUF = b"GGUF"


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A server process that answers."""

    process: subprocess.Popen[str]
    address: str
    key: str

    @property
    def runs(self) -> bool:
        """Whether the process is alive."""
        return self.process.poll() is None


class LocalModels:
    """Satisfies :class:`planwave.providers.api.LocalProvider`.

    Use from any thread and any event loop: a first call blocks neither, and however many come at
    once, one server is started. With or without :meth:`close`, no server outlives this process.
    """

    slots = SLOTS
    """How many calls to have in flight at most; a further one would wait inside the server."""

    def __init__(
        self,
        settings: Settings,
        *,
        machine: Callable[[], Machine] = this_machine,
        busy: Callable[[], Machine] = busy_machine,
        installed: Callable[[], bool] | None = None,
        program: Path | None = None,
    ) -> None:
        self._settings = settings
        self._machine = machine
        self._busy = busy
        self._installed = installed or _is_installed
        self._program = program or Path(__file__).with_name("local_server.py")
        self._starting = threading.Lock()
        self._servers: dict[str, ModelServer] = {}
        self._processes: list[subprocess.Popen[str]] = []
        weakref.finalize(self, _stop, self._processes)

    @property
    def default_model(self) -> str:
        """The configured model: a known name, or the file name of a GGUF without its ending."""
        return _name_of(self._settings.local_model)

    @property
    def models(self) -> tuple[str, ...]:
        """The default first, then the other known models that were pulled."""
        directory = self._settings.model_dir
        pulled = (file.name for file in MODEL_FILES.values() if is_present(file, directory))
        return tuple(dict.fromkeys((self.default_model, *pulled)))

    def availability(self) -> tuple[bool, str, str]:
        """Give ``(available, reason, how_to_enable)`` of the default model; reads no content."""
        model = self.default_model
        if not self._installed():
            return (
                False,
                "the embedded model server is not installed",
                "pip install 'planwave[local]'",
            )
        try:
            path, memory = self._file_of(model)
        except InputError as error:
            return False, error.message, error.hint or ""
        unfit = None if self._is_running(model) else unfit_reason(memory, self._machine())
        if unfit is not None:
            return False, *unfit
        if not self._is_there(model, path):
            if model in MODEL_FILES:
                size = MODEL_FILES[model].size / 1e9
                return False, f"{model} ({size:.1f} GB) is not here yet", "planwave model pull"
            return False, f"{path} is not a GGUF file", "set PLANWAVE_LOCAL_MODEL to one that is"
        return True, f"{model} is in {path.parent}", ""

    def missing_model(self) -> str | None:
        """Give the model whose pull would make this provider available, None where that is not it.

        A command that is about to need a model asks this, pulls with a progress bar, and goes on.
        """
        model = self.default_model
        available, _, _ = self.availability()
        if available or model not in MODEL_FILES or not self._installed():
            return None
        if unfit_reason(MODEL_FILES[model].memory, self._machine()) is not None:
            return None
        return model

    def profile(self, model: str) -> ModelProfile:
        """Give what a model can do: none calls tools, and those below 3 GB need the small path."""
        try:
            path, _ = self._file_of(model)
            size = MODEL_FILES[model].size if model in MODEL_FILES else path.stat().st_size
        except (InputError, OSError):
            size = 0
        small = size < _SMALL_BYTES
        return ModelProfile(
            small=small,
            structured_output=True,
            tools=False,
            max_output_tokens=SMALL_MODEL_TOKENS if small else 4 * SMALL_MODEL_TOKENS,
        )

    async def endpoint(self, model: str) -> tuple[str, str]:
        """Give ``(base_url, key)`` of a running server, starting it if needed.

        Raises:
            UnknownModel: Neither a known model nor the configured file.
            ProviderError: The file is missing or wrong, the machine does not suffice, or the server
                did not start.
        """
        server = self._servers.get(model)
        if server is None or not server.runs:
            server = await asyncio.to_thread(self._started, model)
        return f"{server.address}/v1", server.key

    async def close(self) -> None:
        """Stop the servers, also one that is just starting."""
        await asyncio.to_thread(_stop, self._processes)
        self._servers.clear()

    def _started(self, model: str) -> ModelServer:
        with self._starting:
            server = self._servers.get(model)
            if server is not None and server.runs:
                return server
            path, memory = self._file_of(model)
            if not self._installed():
                raise _failure(
                    "the embedded model server is not installed",
                    model,
                    "pip install 'planwave[local]'",
                )
            if model in MODEL_FILES:
                path = verified_path(MODEL_FILES[model], self._settings.model_dir)
            elif not _is_gguf(path):
                raise _failure(f"{path} is not a GGUF file", model, "set PLANWAVE_LOCAL_MODEL")
            machine = self._busy()
            unfit = unfit_reason(memory, machine)
            if unfit is not None:
                raise _failure(unfit[0], model, unfit[1])
            server = self._launch(model, path, threads_for(machine, self._settings.local_threads))
            self._servers[model] = server
            return server

    def _launch(self, model: str, path: Path, threads: int) -> ModelServer:
        key = secrets.token_urlsafe(24)
        wanted = {"path": str(path), "name": model, "slots": SLOTS, "context": CONTEXT_TOKENS}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            process = _start_process(self._program, said)
            self._processes.append(process)
            answer = _ask(process, {**wanted, "threads": threads, "key": key})
            if "address" not in answer:
                _stop([process])
                with suppress(ValueError):  # close() may have been there first
                    self._processes.remove(process)
                said.seek(0)
                last = said.read().strip().splitlines()[-1:] or ["it said nothing"]
                raise _failure(
                    f"the embedded model server did not start: {answer.get('error', last[0])}",
                    model,
                    "run: planwave doctor",
                )
        return ModelServer(process, answer["address"], key)

    def _is_running(self, model: str) -> bool:
        server = self._servers.get(model)
        return server is not None and server.runs

    def _is_there(self, model: str, path: Path) -> bool:
        if model in MODEL_FILES:
            return is_present(MODEL_FILES[model], self._settings.model_dir)
        return _is_gguf(path)

    def _file_of(self, model: str) -> tuple[Path, int]:
        """Give a model's path and the memory it takes (bytes)."""
        configured = self._settings.local_model
        if model in MODEL_FILES:
            file = MODEL_FILES[model]
            return model_path(file, self._settings.model_dir), file.memory
        if model != self.default_model or not is_path(configured):
            raise UnknownModel(
                f"no embedded model is called {model!r}",
                hint=f"known are {', '.join(MODEL_FILES)}, or set PLANWAVE_LOCAL_MODEL to a GGUF",
            )
        path = Path(configured).expanduser()
        size = path.stat().st_size if path.is_file() else 0
        return path, size + size // 4 + 500_000_000


def _start_process(program: Path, said: IO[str]) -> subprocess.Popen[str]:
    # -P: the program's own folder holds modules with everyday names. A session of its own: Ctrl-C
    # in the terminal is planwave's to answer, and its calls end in order.
    return subprocess.Popen(  # noqa: S603  # our own program, no shell
        [sys.executable, "-P", str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        start_new_session=True,
    )


def _ask(process: subprocess.Popen[str], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Hand the program its orders and give its one line of answer, {} where there is none."""
    assert process.stdin is not None  # noqa: S101  # both are pipes
    assert process.stdout is not None  # noqa: S101
    late = threading.Timer(_START_S, process.kill)
    late.daemon = True
    late.start()
    try:
        process.stdin.write(json.dumps(wanted) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        return json.loads(line) if line else {}
    except (OSError, ValueError):
        return {}
    finally:
        late.cancel()


def _stop(processes: list[subprocess.Popen[str]]) -> None:
    """End server processes: politely by the end of their stdin, then by force."""
    ended = list(processes)
    for process in ended:
        if process.stdin is not None:
            with suppress(OSError, ValueError):
                process.stdin.close()
    for process in ended:
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            with suppress(OSError, ValueError):
                process.stdout.close()
        with suppress(ValueError):
            processes.remove(process)


def _failure(message: str, model: str, hint: str) -> ProviderError:
    return ProviderError(
        message, provider=PROVIDER, model=model, code="local-model-unavailable", hint=hint
    )


def _is_installed() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None


def _name_of(configured: str) -> str:
    return Path(configured).stem if is_path(configured) else configured


def _is_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == _GGUF
    except OSError:
        return False
