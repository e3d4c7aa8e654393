"""The context of one command: what ``main`` composed for it, and the options of every command."""

from __future__ import annotations

import asyncio
import math
import os
import shlex
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar, cast

from pydantic import SecretStr

from planwave.cli.backends.lock_owner import LockOwner, is_planwave_service, lock_owner
from planwave.cli.console import CommandConsole
from planwave.cli.views.trust import show_settings_file
from planwave.errors import (
    Conflict,
    InputError,
    PlanwaveError,
    StoreError,
    Unreachable,
    reason_of,
)
from planwave.providers.local.model_files import is_path, model_file
from planwave.redaction import NOTHING_SECRET, Redactor
from planwave.settings import TOKEN_VARIABLE, URL_VARIABLE, unknown_variables
from planwave.storage.ownership import is_trusted, untrusted_error

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend, Queries
    from planwave.cli.backends.local import LocalBackend
    from planwave.cli.backends.remote import RemoteBackend
    from planwave.cli.backends.shared_service import CommandServer
    from planwave.cli.signals import Interrupt
    from planwave.client import AsyncClient
    from planwave.config.files import LoadedSettings
    from planwave.mcp.servers import McpServers
    from planwave.nodes.registry import Registry
    from planwave.providers.protocols import Providers
    from planwave.service.carriers.carrier import Role
    from planwave.service.queries.history import History
    from planwave.service.service import Service
    from planwave.settings import Settings

_Result = TypeVar("_Result")
LOCK_WAIT_S: Final = 10.0
"""How long a command waits for the owner of the directory to end, or to write its address."""
LOCK_NOTE_S: Final = 1.0
_LOCK_POLL_S: Final = 0.05
_MAX_TOKEN_CHARS: Final = 10_000


class EmbeddedModel(Protocol):
    """The part of the embedded model that commands use before a run."""

    def required_download(self) -> str | None:
        """Return the model whose download is missing; None if a download would not help."""
        ...


@dataclass(frozen=True)
class Factories:
    """The factories that ``main`` composes; commands only call them.

    Attributes:
        settings: Reads the settings files, of which one may be named, and the environment.
        service: Opens the service, which owns the storage directory while it is open.
        history: Opens stored data read-only, also while another process writes.
        catalogue: Returns the node types, checked against the available providers.
        providers: Returns the configured providers and the embedded model behind them.
        serve: Serves HTTP, or drives executions, until a signal stops it, passes the URL to the callback once
            it listens, and returns the exit code.
        mcp_servers: Returns the MCP servers; none is started.
        has_web_ui: Returns whether the web UI is built.
        command_server: Imports and builds the HTTP server of a command; called in a thread. None
            once the given function returns False.
    """

    settings: Callable[[Path | None], LoadedSettings]
    service: Callable[[Settings], Service]
    history: Callable[[Settings], History]
    catalogue: Callable[[Settings], Registry]
    providers: Callable[[Settings], tuple[Providers, EmbeddedModel]]
    serve: Callable[[Settings, Callable[[str], object], Role], Coroutine[Any, Any, int]]
    mcp_servers: Callable[[Settings], McpServers]
    has_web_ui: Callable[[], bool]
    command_server: Callable[[Settings, Callable[[], bool]], CommandServer | None]


Untrusted = Literal["ignore", "ask", "refuse"]
"""What a command does about a ``planwave.toml`` that nobody has trusted; only people are asked."""


@dataclass
class CommandContext:
    """The context of one command: the factories and the options of every command."""

    factories: Factories
    json: bool = False
    storage: str | None = None
    node_modules: list[str] = field(default_factory=list[str])
    provider: str | None = None
    model: str | None = None
    config: str | None = None
    url: str | None = None
    token_file: str | None = None
    untrusted: Untrusted = "ignore"
    command: str = ""
    subcommand: str | None = None
    redactor: Redactor = field(default=NOTHING_SECRET, init=False, repr=False)
    _has_warned: bool = field(default=False, init=False, repr=False)
    _has_noted_storage: bool = field(default=False, init=False, repr=False)
    _running_services: dict[Path, LockOwner | None] = field(
        default_factory=dict[Path, "LockOwner | None"], init=False, repr=False
    )

    def take(self, options: Mapping[str, Any]) -> None:
        """Add options of every command to those that came before."""
        self.json = self.json or options.get("json", False)
        self.node_modules += options.get("node_modules") or []
        self.provider = options.get("provider") or self.provider
        self.model = options.get("model") or self.model
        for name in ("storage", "config", "url", "token_file"):
            value = options.get(name)
            if value is not None:
                setattr(self, name, value)

    def console(self) -> CommandConsole:
        """Return the console of this command."""
        return CommandConsole(json=self.json)

    def command_hint(self, words: str) -> str:
        """Return a command line to type next, with the same place, settings and ``--import``."""
        options: list[str] = []
        for name in ("storage", "config", "url", "token_file"):
            if (value := getattr(self, name)) is not None:
                options += [f"--{name.replace('_', '-')}", value]
        for name in self.node_modules:
            options += ["--import", name]
        return " ".join([f"planwave {words}", *map(shlex.quote, options)])

    @property
    def service_url(self) -> str | None:
        """The address of the service that the user names; None to work in a directory."""
        url = self.url if self.url is not None else os.environ.get(URL_VARIABLE) or None
        return None if url is None else url.rstrip("/")

    def place(self, settings: Settings) -> str:
        """Return where the stored data is, for messages."""
        return self.service_url or str(settings.storage_dir)

    def check_url(self, *, over_http: bool) -> None:
        """Check that the place to work in is named once, and that the command can work there.

        Raises:
            InputError: ``usage``.
        """
        option = "--url" if self.url is not None else URL_VARIABLE
        away = "leave out --url" if self.url is not None else f"unset {URL_VARIABLE}"
        if self.service_url is None:
            if self.token_file is not None:
                hint = f"name it: --url URL, or {URL_VARIABLE}"
                raise InputError(
                    "--token-file needs the address of a service", code="usage", hint=hint
                )
        elif not over_http:
            raise InputError(
                f"{self.command} works on this machine, not with the service of {option}",
                code="usage",
                hint=f"type it where that service runs, or {away}",
            )
        elif self.storage is not None:
            raise InputError(
                f"--storage and {option} name two places",
                code="usage",
                hint=f"leave out --storage, or {away}",
            )

    def _named_service(self) -> LockOwner | None:
        """Return the service that the user names, with its token; None to work in a directory."""
        if self.service_url is None:
            return None
        return LockOwner(None, self.service_url, self._service_token())

    def _service_token(self) -> str | None:
        """Return the token for the service that the user names; one in a settings file is of another.

        Raises:
            InputError: The file of the token cannot be read.
        """
        if self.token_file is None:
            return os.environ.get(TOKEN_VARIABLE) or None
        try:
            with Path(os.path.expanduser(self.token_file)).open(encoding="utf-8") as file:
                return file.read(_MAX_TOKEN_CHARS).strip()
        except (OSError, ValueError) as error:
            raise InputError(
                f"the token file {self.token_file!r} cannot be read: {reason_of(error)}",
                hint="correct --token-file",
            ) from error

    def settings(self) -> Settings:
        """Read the settings and apply the options of this command; warn of what does not count.

        Raises:
            InputError: A setting is unusable; ``settings-untrusted``, see ``untrusted``.
            UnknownModel: No embedded model has the name given by ``--model``.
        """
        for option, value in (
            ("--storage DIR", self.storage),
            ("--config FILE", self.config),
            ("--url URL", self.url),
            ("--token-file FILE", self.token_file),
        ):
            if value == "":
                name, kind = option.split()
                kind = {"DIR": "a directory", "FILE": "a file", "URL": "an address"}[kind]
                raise InputError(f"{name} is empty", code="usage", hint=f"name {kind}: {option}")
        settings = self.loaded().settings
        if self.token_file is not None:
            update = {"token": SecretStr(self._service_token() or "")}
            settings = settings.model_copy(update=update)
        # Lazy: test_help_loads_no_heavy_library
        from planwave.nodes.secrets import open_redactor

        self.redactor = open_redactor(settings, os.environ)
        self._has_warned = True
        changes: dict[str, object] = {}
        if self.storage is not None:
            changes["storage_dir"] = Path(os.path.expanduser(self.storage))
        if self.node_modules:
            changes["node_modules"] = [*settings.node_modules, *self.node_modules]
        if self.provider is not None:
            changes |= {"provider": self.provider, "model": self.model}
            if self.provider == "local" and self.model is not None:
                changes["local_model"] = _embedded_model(self.model)
        elif self.model is not None:
            changes["model"] = self.model
        return settings.model_copy(update=changes) if changes else settings

    def loaded(self) -> LoadedSettings:
        """Read the settings; at the first time, warn or ask about what does not count."""
        file = None if self.config is None else Path(os.path.expanduser(self.config))
        loaded = self.factories.settings(file)
        if self.untrusted == "refuse":
            loaded.require_trust()
        if self._has_warned:
            return loaded
        console = self.console()
        if self.untrusted == "ask" and loaded.file is not None and console.is_interactive:
            show_settings_file(console, loaded.file, loaded.ignored)
            if console.confirm(f"Trust ./{loaded.file.path}, with this content, from now on?"):
                loaded.file.trust()
                loaded = self.factories.settings(file)
        for warning in loaded.warnings:
            console.note(warning)
        if loaded.notice is not None:
            console.note(f"{loaded.notice}; to trust it: planwave trust")
        for name, near in unknown_variables(os.environ, loaded.settings).items():
            suggestion = "" if near is None else f"; did you mean {near}?"
            console.note(f"{name} in the environment is no setting{suggestion}")
        return loaded

    def running_service(self, settings: Settings) -> LockOwner | None:
        """Return the process that owns the storage directory; None if none responds. Cached."""
        if (named := self._named_service()) is not None:
            return named
        directory = settings.storage_dir
        if directory not in self._running_services:
            owner = lock_owner(directory) if is_trusted(settings) else None
            is_there = (
                owner is not None and owner.url is not None and is_planwave_service(owner.url)
            )
            self._running_services[directory] = owner if is_there else None
        return self._running_services[directory]

    def remote_backend(self, settings: Settings) -> RemoteBackend | None:
        """Return a backend on the process that owns the storage directory; None without one."""
        served = self.running_service(settings)
        if served is None or served.url is None:
            return None
        # Lazy: test_help_loads_no_heavy_library
        from planwave.cli.backends.remote import RESPONSE_TIMEOUT_S, RemoteBackend
        from planwave.client import AsyncClient
        from planwave.client.requests import STREAM_ATTEMPTS

        attempts = STREAM_ATTEMPTS if served.is_service else 1  # a command does not come back
        client = AsyncClient(
            served.url, served.token, timeout_s=RESPONSE_TIMEOUT_S, stream_attempts=attempts
        )
        return RemoteBackend(
            client,
            settings.storage_dir if self.service_url is None else None,
            self.provider,
            self.model,
            is_service=served.is_service,
            import_conflict=self._import_conflict(served),
        )

    def _import_conflict(self, served: LockOwner) -> Conflict | None:
        if not self.node_modules:
            return None
        here = replace(self, url=None, token_file=None)
        again = f"start that again with: {here.command_hint('serve')}"
        return Conflict(
            f"{served.title} runs this with the node types it was started with; "
            "--import cannot add to them",
            hint=again if served.is_service else "wait until that command ends",
        )

    def queries(self, settings: Settings) -> History | RemoteBackend:
        """Return the stored data: through the service that owns it, or read from the disk."""
        return self.remote_backend(settings) or self.history(settings)

    def history(self, settings: Settings) -> History:
        """Return the stored data read from the disk; note, once, that its directory is not trusted."""
        if not is_trusted(settings) and not self._has_noted_storage:
            self._has_noted_storage = True
            error = untrusted_error(settings.storage_dir)
            self.console().note(f"{error.message}; {error.hint}")
        return self.factories.history(settings)

    def read(self, read: Callable[[Queries], Awaitable[_Result]]) -> _Result:
        """Run ``read`` on ``queries`` in a new event loop and return its result."""

        async def in_loop() -> _Result:
            settings = self.settings()
            try:
                async with self.queries(settings) as queries:
                    return await read(queries)
            except Unreachable:
                if self.service_url is not None:
                    raise
                # Its owner ended meanwhile: all of it is on the disk.
                async with self.history(settings) as stored:
                    return await read(stored)

        return asyncio.run(in_loop())

    def call_service(
        self, settings: Settings, call: Callable[[AsyncClient], Awaitable[_Result]]
    ) -> _Result:
        """Return the answer of the service that the user names, in a new event loop."""

        async def in_loop() -> _Result:
            async with cast("RemoteBackend", self.remote_backend(settings)) as backend:
                return await backend.choose(cast("Any", call), call)

        return asyncio.run(in_loop())

    def declared_inputs(self, graph: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the JSON Schema of the inputs of a graph document; None where it cannot be read."""
        # Lazy: test_help_loads_no_heavy_library
        from planwave.nodes.tools.flow_inputs import declared_inputs

        try:
            catalogue = self.factories.catalogue(self.settings())
        except PlanwaveError:  # a module is missing: what is stored can be shown all the same
            return None
        return declared_inputs(graph, catalogue)

    @asynccontextmanager
    async def backend(
        self, settings: Settings, interrupt: Interrupt | None = None
    ) -> AsyncGenerator[Backend]:
        """Open the backend: the process that owns the storage directory, or a service in this one.

        A service in this process is shared with commands in other terminals while it is open, and
        leaving the block waits for the executions that they started; ``interrupt`` watches for the
        signals of this command.

        Raises:
            StoreError: The storage cannot be opened. For ``storage-locked``, the hint says what its
                owner is.
        """
        # Lazy: test_a_press_of_tab_loads_no_service
        from planwave.cli.backends.local import LocalBackend
        from planwave.cli.backends.shared_service import leaving_others_running, shared

        opened = await self.open_backend(settings)
        if not isinstance(opened, LocalBackend):
            async with opened:
                yield opened
            return
        async with (
            opened.service as service,
            shared(service, partial(self.factories.command_server, settings)),
            leaving_others_running(opened, self.console(), interrupt),
        ):
            if service.audit is not None:
                facts = {"command": self.command}
                await service.audit.record("command.started", {}, is_strict=True, **facts)
            yield opened

    async def open_backend(self, settings: Settings) -> RemoteBackend | LocalBackend:
        """Return the backend, which the caller enters; see ``backend`` for the errors.

        An owner of the directory that ends or answers in a moment is waited for.
        """
        # Lazy: test_a_press_of_tab_loads_no_service
        from planwave.cli.backends.local import LocalBackend

        directory, until = settings.storage_dir, 0.0
        while True:
            probed = lock_owner(directory)
            self._running_services.pop(directory, None)
            remote = self.remote_backend(settings)
            if remote is not None:
                return remote
            try:
                return LocalBackend(self.factories.service(settings))
            except StoreError as error:
                if error.code != "storage-locked":
                    raise
                owner, now = lock_owner(directory), time.monotonic()
                until = until or now + LOCK_WAIT_S
                is_silent = owner is not None and owner.url is not None and owner == probed
                if is_silent or now > until:
                    error.hint = (
                        f"name the address of that service: --url, or {URL_VARIABLE}"
                        if owner is None and settings.database_url is not None
                        else _locked_hint(owner)
                    )
                    raise
                await self._wait_for_owner(directory, error.message, until)

    async def _wait_for_owner(self, directory: Path, locked: str, until: float) -> None:
        """Wait until the owner of a directory ends or has an address, at most until a time."""
        note_at = time.monotonic() + LOCK_NOTE_S
        await asyncio.sleep(_LOCK_POLL_S)
        while (owner := lock_owner(directory)) is not None and owner.url is None:
            now = time.monotonic()
            if now > note_at:
                note_at = math.inf
                self.console().note(f"{locked}; waiting for it")
            if now > until:
                return
            await asyncio.sleep(_LOCK_POLL_S)


def _locked_hint(owner: LockOwner | None) -> str:
    if owner is None or owner.url is None:
        return "it takes no commands from other terminals: wait until it ends, or stop it"
    if owner.is_service:
        return f"`planwave serve` holds it and does not answer at {owner.url}: read its log, or stop it"
    return f"that command does not answer at {owner.url}: wait until it ends, or stop it"


def _embedded_model(model: str) -> str:
    return model if is_path(model) else model_file(model).name
