"""What a settings file or a storage directory would bring, for a person who is asked to trust it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretStr

from planwave.cli.formatting import one_line, truncate

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole
    from planwave.config.files import SettingsFile

_VALUE_CHARS = 500
_SECRET = "set"  # noqa: S105 - stands for one


def show_settings_file(
    console: CommandConsole, file: SettingsFile, only: Iterable[str] | None = None
) -> None:
    """Show what a settings file sets, each setting in a line; of secrets only that they are there.

    Args:
        console: Where.
        file: The file.
        only: Names, such as ``limits.nodes``; None for all.
    """
    names, is_cut = None if only is None else set(only), False
    console.verbatim(f"{file.path} sets:")
    for name, value in setting_values(file):
        if names is None or name in names or name.partition(".")[0] in names:
            is_cut = is_cut or len(one_line(value)) > _VALUE_CHARS
            console.verbatim(f"  {one_line(name)} = {truncate(one_line(value), _VALUE_CHARS)}")
    if is_cut:
        console.note(f"what is cut here may name programs and addresses: read {file.path}")
    if file.problem is not None:
        console.note(f"{file.path} {file.problem}")


def setting_values(file: SettingsFile) -> Iterator[tuple[str, str]]:
    """Return name and value of each setting in a file, as JSON; entries of tables are apart."""
    for name, value in file.values().items():
        if isinstance(value, Mapping):
            for key, entry in value.items():  # pyright: ignore[reportUnknownVariableType]
                yield f"{name}.{key}", _shown(entry)
        else:
            yield name, _shown(value)


def _shown(value: Any) -> str:
    return json.dumps(plain_value(value), ensure_ascii=False)


def plain_value(value: Any) -> Any:
    """Return a value of a setting as JSON; of a secret only that it is there."""
    match value:
        case SecretStr():
            return _SECRET
        case BaseModel():
            return {
                name: plain_value(getattr(value, name)) for name in sorted(value.model_fields_set)
            }
        case Mapping():
            return {str(key): plain_value(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [plain_value(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case str() | int() | float() | None:
            return value
        case _:
            return str(value)
