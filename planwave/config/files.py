"""The files that settings are read from, and what counts in a file that nobody has trusted.

The environment has precedence over the file that the user names (``--config``, ``PLANWAVE_CONFIG``), this
over ``planwave.toml`` in the working directory, this over the user's own file
(``~/.config/planwave/planwave.toml``), and this over the defaults. A folder may come from a stranger:
its ``planwave.toml`` counts with the content that the user has trusted (``planwave trust``); else only
what makes a setting stricter does, see ``settings.Narrows``.
"""

from __future__ import annotations

import os
import stat
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pydantic import ValidationError

from planwave.config import trust
from planwave.errors import InputError, reason_of
from planwave.settings import (
    CONFIG_VARIABLE,
    EnvFirstSettings,
    Limits,
    Settings,
    narrows,
    variable_of,
)
from planwave.source_locations import callers_level
from planwave.validation import describe_error

FILE_NAME: Final = "planwave.toml"
MAX_BYTES: Final = 1024 * 1024
_TABLES: Final = ("providers", "mcp", "secrets", "notifications")
"""Tables whose entries are merged by name; an entry is never mixed of two files."""
_PATHS: Final = ("storage_dir", "model_dir", "local_model")


class SettingsFile(NamedTuple):
    """The content of a settings file.

    Attributes:
        path: As it was named.
        content: Its bytes.
        status: Of the file that was read, and not of one that replaced it since.
    """

    path: Path
    content: bytes
    status: os.stat_result

    @property
    def problem(self) -> str | None:
        """Why somebody else may have written the file; None where only its user and root may."""
        if self.status.st_uid not in (0, os.geteuid()):
            return "belongs to another user"
        if self.status.st_mode & trust.WRITABLE_BY_OTHERS:
            return f"can be written by other users (mode {stat.S_IMODE(self.status.st_mode):04o})"
        return None

    @property
    def is_here(self) -> bool:
        """Whether the file lies in the working directory."""
        return os.path.realpath(self.path.parent) == os.path.realpath(os.curdir)

    @property
    def is_trusted(self) -> bool:
        """Whether the user has trusted this content at this path."""
        return trust.is_trusted(self.path, trust.sha256(self.content))

    def trust(self) -> bool:
        """Trust this content at this path; return whether later processes know of it."""
        return trust.record(self.path, trust.sha256(self.content))

    def values(self) -> dict[str, Any]:
        """Return the settings in the file, checked, with ``limits`` as a dictionary.

        Raises:
            InputError: A value is invalid; the message names the file and the setting.
        """
        try:
            # Editors of Windows write a mark at the beginning.
            table = tomllib.loads(self.content.decode("utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{self.path} cannot be read: {reason_of(error)}") from error
        settings, limits = _models_of_files()
        try:
            written = table.pop("limits", {})
            if not isinstance(written, dict):
                raise InputError(f"setting limits has to be a table; look in {self.path}")
            values, limit_table = _given(settings(**table)), cast("dict[str, Any]", written)
            if limit_table:
                values["limits"] = _given(limits(**limit_table))
            for name, server in values.get("mcp", {}).items():
                if server.kind == "stdio" and server.cwd is None:
                    # The working directory may be of a stranger, and `python -m` or `npx` look there first.
                    beside = {"cwd": self.path.absolute().parent}
                    values["mcp"][name] = server.model_copy(update=beside)
        except ValidationError as error:
            raise _invalid_setting(error, self.path) from error
        return values


@dataclass(frozen=True)
class LoadedSettings:
    """The settings that hold, and what does not.

    Attributes:
        settings: The settings.
        file: The ``planwave.toml`` of the working directory, if it is there and not trusted.
        ignored: What it sets in vain, such as ``openai_base_url`` and ``limits.nodes``.
        warnings: Files that count although other users may write them.
        files: The files that count, wholly or in part; a later one goes before an earlier one.
    """

    settings: Settings
    file: SettingsFile | None = None
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files: tuple[SettingsFile, ...] = ()

    def origins(self) -> dict[str, Path | str]:
        """Return where each setting is from that is no default: a file, or a variable's name.

        Limits are named ``limits.NAME``, entries of tables ``TABLE.NAME``.
        """
        origins: dict[str, Path | str] = {}
        for file in self.files:
            for name in _flat_names(file.values()):
                if file is not self.file or name not in self.ignored:
                    origins[name] = file.path
        set_here = {name.upper(): name for name, value in os.environ.items() if value}
        for model, table in ((Settings, ""), (Limits, "limits.")):
            for name in model.model_fields:
                if (variable := set_here.get(variable_of(model, name))) is not None:
                    origins[table + name] = variable
        return origins

    @property
    def notice(self) -> str | None:
        """What is ignored, in one line; None if that is nothing."""
        if not self.ignored:
            return None
        return f"./{FILE_NAME} is not trusted, and ignored in it: {', '.join(self.ignored)}"

    def require_trust(self) -> None:
        """Raise an error if something is ignored.

        Raises:
            InputError: ``settings-untrusted``.
        """
        if self.ignored:
            raise InputError(
                f"./{FILE_NAME} is not trusted, and sets {', '.join(self.ignored)}",
                code="settings-untrusted",
                hint=f"read it, then trust it: planwave trust; or name it: --config {FILE_NAME}",
            )


def load_settings(config: Path | None = None) -> Settings:
    """Read the settings of a Python program, which is never asked: it is warned of what is ignored.

    Raises:
        InputError: A file or a value is invalid; the message names the file and the field.
    """
    loaded = read_settings(config)
    messages = [*loaded.warnings]
    if loaded.notice is not None:
        messages.append(
            f"{loaded.notice}; trust it: planwave trust, or name it in {CONFIG_VARIABLE}"
        )
    for each in messages:
        warnings.warn(each, stacklevel=callers_level())
    return loaded.settings


def read_settings(config: Path | None = None) -> LoadedSettings:
    """Read the settings from the environment and the files.

    Args:
        config: The file that the user names; by default the one in ``PLANWAVE_CONFIG``.

    Raises:
        InputError: A file or a value is invalid; the message names the file and the field.
    """
    own, named, here = own_file(), _named_file(config), read_file(Path(FILE_NAME))
    if here is not None and any(
        other is not None and os.path.samestat(here.status, other.status) for other in (own, named)
    ):
        here = None
    held: dict[str, Any] = {} if own is None else _own_values(own)
    elsewhere = [held.get("node_modules")]
    ignored: tuple[str, ...] = ()
    if here is not None:
        held, ignored = _with_folder(held, here)
    if named is not None:
        values = named.values()
        held = _merged(held, values)
        if not named.is_here:
            elsewhere.append(values.get("node_modules"))
    warned = () if named is None or named.problem is None else (f"{named.path} {named.problem}",)
    settings = _with_environment(held)
    modules = held.get("node_modules")
    if any(modules is each for each in elsewhere) and not os.environ.get("PLANWAVE_NODE_MODULES"):
        # They mean the same in every folder, so none is taken from the folder of a stranger.
        settings = settings.with_installed(modules or ())
    files = tuple(each for each in (own, here, named) if each is not None)
    return LoadedSettings(settings, here if ignored else None, ignored, warned, files)


def read_file(path: Path) -> SettingsFile | None:
    """Read a settings file; None if there is no regular file.

    Raises:
        InputError: It cannot be read, or is too large.
    """
    try:
        # Not blocking: a pipe would wait for somebody who writes.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return None
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {reason_of(error)}") from error
    if len(content) > MAX_BYTES:
        raise InputError(f"{path} cannot be read: it has more than {MAX_BYTES:,} bytes")
    return SettingsFile(path, content, status)


def own_file() -> SettingsFile | None:
    """Return the user's own settings file; None if there is none.

    Raises:
        InputError: Other users may have written it.
    """
    folder = trust.config_directory()
    file = None if folder is None else read_file(folder / FILE_NAME)
    if file is not None and file.problem is not None:
        raise InputError(
            f"{file.path} {file.problem}",
            code="settings-untrusted",
            hint=f"own it, and let nobody else write it: chmod 600 {file.path}",
        )
    return file


def _named_file(config: Path | None) -> SettingsFile | None:
    variable = os.environ.get(CONFIG_VARIABLE)
    path = config or (Path(os.path.expanduser(variable)) if variable else None)
    if path is None:
        return None
    file = read_file(path)
    if file is None:
        option = "--config" if config else CONFIG_VARIABLE
        problem = "is no file" if os.path.lexists(path) else "does not exist"
        raise InputError(f"settings file {str(path)!r} {problem}", hint=f"correct {option}")
    return file


def _flat_names(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if name in ("limits", *_TABLES):
            yield from (f"{name}.{entry}" for entry in value)
        else:
            yield name


def _own_values(own: SettingsFile) -> dict[str, Any]:
    """Return the user's own settings, whose paths have to mean the same in every folder.

    Raises:
        InputError: A path is relative.
    """
    values = own.values()
    for name in _PATHS:
        written = os.path.expanduser(values.get(name, os.sep))
        is_path = name != "local_model" or os.sep in written
        if is_path and not os.path.isabs(written):
            raise InputError(
                f"setting {name} has to be an absolute path in {own.path}",
                hint="a relative one would be another in every folder",
            )
    return values


def _with_folder(
    held: dict[str, Any], here: SettingsFile
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the settings with those of the folder; what does not count of these is named."""
    written = here.values()
    if here.is_trusted:
        return _merged(held, written), ()
    limits = written.pop("limits", {})
    stricter, ignored = _stricter(Settings, held, written)
    if limits:
        held_limits: dict[str, Any] = held.get("limits", {})
        strict_limits, more = _stricter(Limits, held_limits, limits)
        stricter["limits"] = strict_limits
        ignored += [f"limits.{name}" for name in more]
    return _merged(held, stricter), tuple(ignored)


def _stricter(
    model: type[EnvFirstSettings], held: Mapping[str, Any], written: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return what a file that nobody has trusted makes stricter, and the names that do not hold."""
    stricter_values: dict[str, Any] = {}
    ignored: list[str] = []
    for name, value in written.items():
        field = model.model_fields[name]
        present = held.get(name, field.get_default(call_default_factory=True))
        mark = narrows(field, is_limit=model is Limits)
        if mark is not None:
            stricter_values[name] = present = mark.stricter(present, value)
        if present != value:
            ignored.append(name)
    return stricter_values, ignored


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of two files; tables with entries of their own are merged by their names."""
    merged = {**below, **above}
    for name in ("limits", *_TABLES):
        if name in below and name in above:
            merged[name] = {**below[name], **above[name]}
    return merged


def _with_environment(held: Mapping[str, Any]) -> Settings:
    values = dict(held)
    try:
        limits = Limits(**values.pop("limits", {}))
        return Settings(**values, limits=limits)
    except ValidationError as error:
        raise _invalid_setting(error, None) from error


def _given(parsed: EnvFirstSettings) -> dict[str, Any]:
    fields = type(parsed).model_fields
    return {name: getattr(parsed, name) for name in fields if name in parsed.model_fields_set}


@cache
def _models_of_files() -> tuple[type[Settings], type[Limits]]:
    """Return the models of a file on its own, without the environment; made at their first use."""

    class FileSettings(Settings):
        reads_environment = False

    class FileLimits(Limits):
        reads_environment = False

    return FileSettings, FileLimits


def _invalid_setting(error: ValidationError, file: Path | None) -> InputError:
    """Return an error that names the invalid setting, in a file or (None) in the environment."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    is_limit = error.title.endswith(Limits.__name__)
    fields = Limits.model_fields if is_limit else Settings.model_fields
    near = get_close_matches(name, fields, n=1) if first["type"] == "extra_forbidden" else []
    hint = f"did you mean {near[0]!r}? " if near else ""
    variable = f"PLANWAVE_{'LIMIT_' if is_limit else ''}{name.upper()}"
    hint += f"look at {variable} in the environment" if file is None else f"look in {file}"
    table = "limits." if is_limit else ""
    return InputError(describe_error(f"setting {table}{name}", first), hint=hint)
