import json
import logging
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import DEBUG_VARIABLE, app
from planwave.errors import PlanwaveError, StoreError
from planwave.service.queries.history import History
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.cli.fake_factories import fake_factories


def planwave(*args: str, fails: BaseException | None = None) -> Result:
    def history(_: Any) -> Any:
        assert fails is not None
        raise fails

    composition = fake_factories() if fails is None else fake_factories(history=history)
    return CliRunner().invoke(app, list(args), obj=composition)


def test_expected_error_has_message_and_hint() -> None:
    done = planwave("ls", fails=StoreError("the disk is gone", hint="plug it in"))
    assert done.exit_code == 1
    assert done.stderr == "✗ the disk is gone\n  → plug it in\n"


def test_unexpected_error_names_debug_variable() -> None:
    done = planwave("ls", fails=ZeroDivisionError("oops"))
    assert done.exit_code == 1
    assert "fault in planwave: ZeroDivisionError: oops" in done.stderr
    assert DEBUG_VARIABLE in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize("error", [ZeroDivisionError, PlanwaveError, OSError])
def test_no_error_shows_a_secret(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    monkeypatch.setenv("PLANWAVE_TOKEN", "canary-0123456789")
    for args in (["ls"], ["ls", "--json"]):
        done = planwave(*args, fails=error("it said canary-0123456789"))
        assert "it said [secret token]" in done.output
        assert "canary" not in done.output


def test_debug_variable_shows_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    assert isinstance(planwave("ls", fails=ZeroDivisionError("oops")).exception, ZeroDivisionError)


def test_ctrl_c_exits_130() -> None:
    done = planwave("ls", fails=KeyboardInterrupt())
    assert done.exit_code == 130
    assert "interrupted" in done.stderr


def test_json_error_is_an_object() -> None:
    for args in (["--json", "ls"], ["ls", "--json"]):
        done = planwave(*args, fails=PlanwaveError("x", code="odd"))
        assert '"code": "odd"' in done.stdout


@pytest.mark.parametrize(
    ("args", "says", "see"),
    [
        (
            ["ls", "--limit", "0"],
            "invalid value for '--limit' / '-n': it has to be at least 1",
            "planwave ls --help",
        ),
        (
            ["ls", "--limit", "ten"],
            "invalid value for '--limit' / '-n': it has to be a whole number",
            "planwave ls --help",
        ),
        (["show"], "missing argument 'ID'", "planwave show --help"),
        (["flow", "show"], "missing argument 'NAME_OR_ID'", "planwave flow show --help"),
        (["frob"], "no such command 'frob'", "planwave --help"),
        (["model", "frob"], "no such command 'frob'", "planwave model --help"),
        (["--frob"], "no such option: --frob", "planwave --help"),
    ],
)
def test_usage_error_has_message_and_help_command(args: list[str], says: str, see: str) -> None:
    done = planwave(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"✗ {says}")
    assert done.stderr.endswith(f"see: {see}\n")
    newest = "  → the newest one: planwave show last; see: "
    assert (newest in done.stderr) == (args == ["show"])
    if args[0] == "model":
        return  # a group of its own, without options
    done = planwave(*args, "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["code"] == "usage"


def test_system_error_names_the_file() -> None:
    done = planwave("ls", "--json", fails=PermissionError(13, "Permission denied", "/some/file"))
    assert done.exit_code == 1
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["message"]) == (
        "system-error",
        "the system refused: '/some/file': Permission denied",
    )


def test_ctrl_c_with_json_is_an_object() -> None:
    done = planwave("ls", "--json", fails=KeyboardInterrupt())
    assert done.exit_code == 130
    assert json.loads(done.stdout)["error"]["code"] == "interrupted"


def test_log_warning_is_printed_as_note() -> None:
    def history(_: Any) -> Any:
        logging.getLogger("anywhere").warning("odd\x1b[2J")
        return History(MemoryStore(), None)

    done = CliRunner().invoke(app, ["ls"], obj=fake_factories(history=history))
    assert done.exit_code == 0
    assert done.stderr == "! odd[2J\n"


def test_missing_command_prints_help() -> None:
    done = planwave()
    assert "Usage: planwave" in done.output or "Usage:" in done.output
    assert "doctor" in done.output


@pytest.mark.parametrize("name", ["run", "plan", "exec", "check", "ls", "show", "doctor"])
def test_command_help_has_example(name: str) -> None:
    done = planwave(name, "--help")
    assert done.exit_code == 0
    assert f"planwave {name}" in done.stdout.split("For example:")[1]


def test_version_is_printed() -> None:
    assert planwave("--version").stdout.startswith("planwave ")
