"""Embedded model servers: OpenAI-compatible endpoints that planwave starts and stops.

Nothing starts before the first ``LocalModelServers.endpoint``. Each model gets one server process
(``server_main.py`` says why a process), on its own loopback port, with a random key.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import secrets
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from planwave.errors import InputError, ProviderError, UnknownModel, reason_of
from planwave.providers.local import server_main
from planwave.providers.local.capacity import (
    Machine,
    machine_under_load,
    this_machine,
    threads_for,
    unfit_reason,
)
from planwave.providers.local.download import (
    expand_home,
    is_present,
    model_path,
    running_download,
    verified_path,
)
from planwave.providers.local.model_files import MODEL_FILES, ModelFile, is_path
from planwave.providers.local.process import (
    ModelServer,
    exit_reason,
    handshake,
    start_process,
    stop,
)
from planwave.providers.local.prompt_state import FOLDER, PromptStateFiles, load_prompt_state
from planwave.providers.protocols import ModelDownload, ModelProfile, ModelRequest
from planwave.settings import Settings

PROVIDER = "local"
SLOTS = 2
"""Concurrent calls. On two cores more calls at once have the same throughput."""
CONTEXT_TOKENS = 4_096
"""Per slot: enough for eight earlier results of 220 tokens, the goal and the step's own text."""
SMALL_MODEL_TOKENS = 220
"""Longest reply of a step on a small model: a few sentences, 15 s on two cores."""
_SMALL_BYTES = 3_000_000_000
_GGUF = b"GGUF"
_DOCTOR_HINT = "run: planwave doctor"


class LocalModelServers:
    """The model servers of this process; a ``planwave.providers.protocols.LocalProvider``.

    Safe to use from any thread and any event loop: starting a server blocks no loop, and concurrent
    first calls start one server. No server outlives this process, even without ``close``.
    """

    slots = SLOTS
    """Calls that a server runs at once; further calls would wait inside the server."""

    def __init__(
        self,
        settings: Settings,
        *,
        machine: Callable[[], Machine] = this_machine,
        busy: Callable[[], Machine] = machine_under_load,
        installed: Callable[[], bool] | None = None,
        program: Path | None = None,
    ) -> None:
        self._settings = settings
        self._configured = _configured(settings)
        self._machine = machine
        self._busy = busy
        self._installed = installed or _is_installed
        self._program = program or Path(server_main.__file__)
        self._starting = threading.Lock()
        self._loading: set[str] = set()
        self._servers: dict[str, ModelServer] = {}
        self._closing = threading.Lock()
        self._closed = 0  # number of closes: a start that began before a close is cancelled
        self._processes: list[subprocess.Popen[str]] = []
        weakref.finalize(self, stop, self._processes)

    @property
    def default_model(self) -> str:
        """The configured model: a known name, or the file name of a GGUF without its ending."""
        return _name_of(self._configured)

    @property
    def models(self) -> tuple[str, ...]:
        """The default first, then the other offered models that were downloaded."""
        directory = self._settings.model_dir
        pulled = (file.name for file in MODEL_FILES.values() if is_present(file, directory))
        return tuple(dict.fromkeys((self.default_model, *pulled)))

    def availability(self) -> tuple[bool, str, str]:
        """Return ``(available, reason, how_to_enable)`` of the default model; reads no content."""
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
        unfit = None if self._is_loaded(model) else unfit_reason(memory, self._machine())
        if unfit is not None:
            return False, *unfit
        file = self._known_file(model)
        if file is None and not _is_gguf(path):
            return False, f"{path} is not a GGUF file", "set PLANWAVE_LOCAL_MODEL to one that is"
        if file is not None and not is_present(file, self._settings.model_dir):
            size, name = file.size / 1e9, "" if model == self._settings.local_model else f" {model}"
            return (
                False,
                f"{model} ({size:.1f} GB) is not downloaded yet",
                f"planwave model pull{name}",
            )
        return True, f"{model} is in {path.parent}", ""

    def running_download(self) -> ModelDownload | None:
        """Return how far a download of the default model is, None if there is none."""
        file = self._known_file(self.default_model)
        return None if file is None else running_download(file, self._settings.model_dir)

    def required_download(self) -> str | None:
        """Return the model whose download would make this provider available, else None.

        A command that needs a model downloads it with a progress bar first.
        """
        file = self._known_file(self.default_model)
        available, _, _ = self.availability()
        if available or file is None or not self._installed():
            return None
        if unfit_reason(file.memory, self._machine()) is not None:
            return None
        return file.name

    def profile(self, model: str) -> ModelProfile:
        """Return the capabilities of a model.

        Embedded models have neither tools nor images; those below 3 GB are small models.
        """
        file = self._known_file(model)
        try:
            size = self._file_of(model)[0].stat().st_size if file is None else file.size
        except (InputError, OSError):
            size = 0
        small = size < _SMALL_BYTES
        return ModelProfile(
            small=small,
            plans=file is None or file.plans,
            structured_output=True,
            tools=False,
            images=False,
            continues=True,
            grammars=True,
            max_output_tokens=SMALL_MODEL_TOKENS if small else 4 * SMALL_MODEL_TOKENS,
        )

    async def endpoint(self, model: str) -> tuple[str, str]:
        """Return ``(base_url, key)`` of a running server, starting it if needed.

        A server that hangs is stopped and replaced.

        Raises:
            UnknownModel: Neither an offered model nor the configured file.
            ProviderError: The file is missing or wrong, the machine is too small, or the server did
                not start.
        """
        server, closed = self._servers.get(model), self._closed
        if server is None or not await server.is_healthy():
            server = await asyncio.to_thread(self._start_server, model, closed, server)
        return f"{server.address}/v1", server.key

    async def prepare(self, request: ModelRequest) -> None:
        """Load the saved state of a request's fixed beginning, or save it for later processes."""
        server = self._servers.get(request.model)
        if server is not None and server.saves_states:
            settings = {
                "model": self._content_id(request.model),
                "runtime": _runtime_version(),
                "context": CONTEXT_TOKENS,
            }
            limit_s = self._settings.limits.call_s
            await load_prompt_state(server, self._states(), request, settings, limit_s)

    async def close(self) -> None:
        """Stop the servers, including those that are starting."""

        def close() -> None:
            with self._closing:
                self._closed += 1
                self._servers.clear()
            stop(self._processes)

        await asyncio.to_thread(close)

    def _start_server(self, model: str, closed: int, failed: ModelServer | None) -> ModelServer:
        """Return the server of a model, starting it unless another than ``failed`` runs."""
        with self._starting:
            server = self._servers.get(model)
            if server is not None and server is not failed and server.is_running:
                return server
            self._check_open(model, closed)
            path, memory = self._file_of(model)
            if not self._installed():
                raise _unavailable_error(
                    "the embedded model server is not installed",
                    model,
                    "pip install 'planwave[local]'",
                )
            file = self._known_file(model)
            if file is not None:
                path = verified_path(file, self._settings.model_dir)
            elif not _is_gguf(path):
                raise _unavailable_error(
                    f"{path} is not a GGUF file", model, "set PLANWAVE_LOCAL_MODEL"
                )
            if failed is not None:
                self._end(failed.process)
            machine = self._busy()
            unfit = unfit_reason(memory, machine)
            if unfit is not None:
                raise _unavailable_error(unfit[0], model, unfit[1])
            self._loading.add(model)
            try:
                threads = threads_for(machine, self._settings.local_threads)
                server = self._launch(model, path, threads, closed)
                self._servers[model] = server
                return server
            except OSError as error:
                raise _unavailable_error(
                    f"the embedded model server cannot be started: {reason_of(error)}", model
                ) from error
            finally:
                self._loading.discard(model)

    def _launch(self, model: str, path: Path, threads: int, closed: int) -> ModelServer:
        key = secrets.token_urlsafe(24)
        states = self._states()
        saves_states = states.open()
        options = {
            "path": str(path),
            "name": model,
            "slots": SLOTS,
            "context": CONTEXT_TOKENS,
            "states": str(states.folder) if saves_states else "",
        }
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
            with self._closing:
                self._check_open(model, closed)
                process = start_process(self._program, stderr)
                self._processes.append(process)
            reply = handshake(process, {**options, "threads": threads, "key": key})
            if "address" not in reply:
                reason = reply.get("error") or exit_reason(process, stderr)
                self._end(process)
                message = f"the embedded model server did not start: {reason}"
                raise _unavailable_error(message, model, self._start_hint(model, path))
        return ModelServer(process, reply["address"], key, saves_states)

    def _states(self) -> PromptStateFiles:
        return PromptStateFiles(expand_home(self._settings.model_dir) / FOLDER)

    def _content_id(self, model: str) -> str:
        """Return what changes with the content of a model's file.

        The sha256 of an offered model; for other files path, size and modification time, because reading
        gigabytes takes seconds.
        """
        file = self._known_file(model)
        if file is not None:
            return file.sha256
        path, _ = self._file_of(model)
        status = path.stat()
        return f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"

    def _start_hint(self, model: str, path: Path) -> str:
        if self._known_file(model) is not None:
            return _DOCTOR_HINT
        return f"check that {path} is complete and is a model that writes text"

    def _check_open(self, model: str, closed: int) -> None:
        if closed != self._closed:
            raise _unavailable_error(
                "the embedded model was closed while it started", model, "try again"
            )

    def _end(self, process: subprocess.Popen[str]) -> None:
        stop([process])
        with suppress(ValueError):  # close() may have removed it
            self._processes.remove(process)

    def _known_file(self, model: str) -> ModelFile | None:
        """Return the file of an offered model, unless the name is that of the configured file."""
        own = is_path(self._configured) and model == self.default_model
        return None if own else MODEL_FILES.get(model)

    def _is_loaded(self, model: str) -> bool:
        """Return whether a model is loaded or loading."""
        server = self._servers.get(model)
        return model in self._loading or (server is not None and server.is_running)

    def _file_of(self, model: str) -> tuple[Path, int]:
        """Return the path of a model and the memory it needs, in bytes."""
        file = self._known_file(model)
        if file is not None:
            return model_path(file, self._settings.model_dir), file.memory
        if model != self.default_model or not is_path(self._configured):
            raise UnknownModel(
                f"no embedded model is called {model!r}",
                hint=f"known are {', '.join(MODEL_FILES)}, or set PLANWAVE_LOCAL_MODEL to a GGUF",
            )
        path = expand_home(Path(self._configured))
        size = path.stat().st_size if path.is_file() else 0
        return path, size + size // 4 + 500_000_000


def _unavailable_error(message: str, model: str, hint: str = _DOCTOR_HINT) -> ProviderError:
    return ProviderError(
        message, provider=PROVIDER, model=model, code="local-model-unavailable", hint=hint
    )


def _is_installed() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None


def _runtime_version() -> str:
    return importlib.metadata.version("xllamacpp") if _is_installed() else ""


def _configured(settings: Settings) -> str:
    """Return the configured model: PLANWAVE_MODEL if it is offered, else the default."""
    chosen = settings.model if settings.provider in (None, PROVIDER) else None
    return chosen if chosen in MODEL_FILES else settings.local_model


def _name_of(configured: str) -> str:
    return Path(configured).stem if is_path(configured) else configured


def _is_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == _GGUF
    except OSError:
        return False
