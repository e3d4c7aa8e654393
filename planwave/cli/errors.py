"""How errors are shown, as text and as JSON, and the exit code of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, cast

from pydantic import ValidationError
from rich.text import Text

from planwave.cli.console import CommandConsole
from planwave.cli.formatting import one_line
from planwave.cli.signals import Interrupted
from planwave.errors import (
    GraphInvalid,
    InputError,
    InvalidAnswer,
    InvalidChanges,
    InvalidInputs,
    PlanwaveError,
    ProviderError,
    UnavailableProvider,
    UnknownModel,
    UnknownProvider,
    Unreachable,
)
from planwave.graph.diagnostics import Diagnostic
from planwave.validation import describe_error


class ExitCode(IntEnum):
    """The exit codes of ``planwave``."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INVALID_PLAN = 3
    NO_PROVIDER = 4
    NO_SERVICE = 5
    """The service does not answer: what became of the work is not known here."""
    INTERRUPTED = 130


def exit_code_of(error: PlanwaveError) -> int:
    """Return the exit code of an error outside a running execution."""
    match error:
        case Interrupted():
            return error.exit_code
        case InvalidAnswer() | InvalidChanges() | InvalidInputs():
            return ExitCode.USAGE
        case GraphInvalid():
            return ExitCode.INVALID_PLAN
        case UnknownProvider() | UnavailableProvider() | UnknownModel() | ProviderError():
            return ExitCode.NO_PROVIDER
        case InputError():
            return ExitCode.USAGE
        case Unreachable():
            return ExitCode.NO_SERVICE
        case _:
            return ExitCode.FAILED


def root_error(error: BaseException) -> BaseException:
    """Return the error; of an exception group, the first error inside it."""
    while inner := cast("tuple[BaseException, ...]", getattr(error, "exceptions", ())):
        error = inner[0]
    return error


def usage_error(error: Any) -> InputError:
    """Convert a usage error of Typer into an [InputError][planwave.InputError]."""
    message = str(error.format_message()).strip()
    if isinstance(refused := error.__cause__, ValidationError):
        reason = describe_error("it", refused.errors()[0]).removeprefix("it: ")
        message = message.removesuffix(error.message) + reason
    message = message.rstrip(".")
    command = getattr(getattr(error, "ctx", None), "command_path", "planwave")
    hint = f"see: {command} --help"
    if message == "Missing argument 'ID'":
        hint = f"the newest one: {command} last; {hint}"
    return InputError(message[:1].lower() + message[1:], code="usage", hint=hint)


def system_error(error: OSError) -> PlanwaveError:
    """Convert an error of the operating system into a [PlanwaveError][planwave.PlanwaveError]."""
    message = error.strerror or str(error) or type(error).__name__
    what, hint = "", "check where the output goes, and the working directory"
    if error.filename:
        what, hint = f"{str(error.filename)!r}: ", "check its owner, its permissions and the disk"
    return PlanwaveError(f"the system refused: {what}{message}", code="system-error", hint=hint)


def internal_error(error: Exception, hint: str) -> PlanwaveError:
    """Convert an unexpected exception, a bug, into a [PlanwaveError][planwave.PlanwaveError]."""
    return PlanwaveError(f"this is a fault in planwave: {type(error).__name__}: {error}", hint=hint)


_SETTINGS_OF_LIMITS: Final = "limits are set by PLANWAVE_LIMIT_… or in planwave.toml"
_COMMAND_LINE: Final = {
    "call-timeout": _SETTINGS_OF_LIMITS,
    "chunk-timeout": _SETTINGS_OF_LIMITS,
    "execution-interrupted": "planwave resume ID",
    "foreign-format": "planwave import FILE",
    "first-byte-timeout": _SETTINGS_OF_LIMITS,
    "limit-exceeded": _SETTINGS_OF_LIMITS,
    "model-cannot-plan": "--provider, --model",
    "plan-invalid": "--provider, --model",
    "queue-full": _SETTINGS_OF_LIMITS,
    "store-unusable": "--storage or PLANWAVE_STORAGE_DIR",
    "unknown-node-type": "--import MODULE",
    "unknown-provider": "planwave doctor",
    "unauthorized": "PLANWAVE_TOKEN, or --token-file FILE",
    "unknown-tool": "--import MODULE",
    "template-memory": _SETTINGS_OF_LIMITS,
    "template-timeout": _SETTINGS_OF_LIMITS,
    "template-too-large": _SETTINGS_OF_LIMITS,
}
"""How the hint of an error is followed on the command line, by code.

The hints of the service are for Python, HTTP and the command line alike.
"""


def hint_of(error: PlanwaveError) -> str | None:
    """Return the hint of an error, with the option or command that follows it."""
    if error.hint and error.limit:
        return f"{error.hint} (PLANWAVE_LIMIT_{error.limit.upper()})"
    return hint_with_command(error.code, error.hint)


def hint_with_command(code: object, hint: str | None) -> str | None:
    """Return the hint of an error or diagnostic of a code, as ``hint_of``."""
    how = _COMMAND_LINE.get(str(code))
    return f"{hint} ({how})" if hint and how else hint


def show_error(console: CommandConsole, error: PlanwaveError) -> None:
    """Write an error: its message, its hint, and diagnostics that say more than these."""
    diagnostics = error.diagnostics if isinstance(error, GraphInvalid) else ()
    if console.json:
        hint = hint_of(error)
        document: dict[str, Any] = {
            "error": {**error.as_json(), **({"hint": hint} if hint else {})}
        }
        if diagnostics:
            document["diagnostics"] = [each.as_json() for each in diagnostics]
        console.result(document)
    if not _says_all(error, diagnostics):
        console.error(error.message.partition(": (1) ")[0])  # the list follows
        show_diagnostics(console, diagnostics)
        if (hint := hint_of(error)) and hint not in {each.hint for each in diagnostics}:
            console.hint(hint)
        return
    hint = hint_of(error)
    if diagnostics and error.hint == diagnostics[0].hint:
        hint = hint_with_command(diagnostics[0].code, error.hint)
    console.error(error.message, hint)


def _says_all(error: PlanwaveError, diagnostics: Sequence[Diagnostic]) -> bool:
    """Return whether the message and the hint of an error say what its diagnostics say."""
    if len(diagnostics) != 1:
        return not diagnostics
    (only,) = diagnostics
    return error.hint == only.hint or (not only.pointer and only.message in error.message)


def show_diagnostics(console: CommandConsole, diagnostics: Iterable[Diagnostic]) -> None:
    """Write diagnostics to stderr: location, message and hint of each."""
    for each in diagnostics:
        console.err.print(diagnostic_line(each), soft_wrap=True)
        if hint := hint_with_command(each.code, each.hint):
            console.err.print(Text(f"      {one_line(hint)}", style="dim"), soft_wrap=True)


_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}


def diagnostic_line(diagnostic: Diagnostic) -> Text:
    """Return the line of one diagnostic."""
    return Text.assemble(
        "  ",
        (f"{diagnostic.severity:<7} ", _STYLES.get(diagnostic.severity, "")),
        (f"{one_line(diagnostic.pointer) or '/'}  ", "bold"),
        one_line(diagnostic.message),
        (f"  [{diagnostic.code}]", "dim"),
    )
