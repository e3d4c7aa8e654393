import json

import pytest

from planwave.cli.console import CommandConsole
from planwave.cli.errors import ExitCode, exit_code_of, hint_of, show_error
from planwave.errors import (
    GraphInvalid,
    InputError,
    InvalidTransition,
    LimitExceeded,
    NotFound,
    PlanInvalid,
    PlanwaveError,
    ProviderError,
    StoreError,
    UnavailableProvider,
    UnknownModel,
    UnknownProvider,
)
from planwave.graph.diagnostics import Diagnostic
from tests.support.cli.fake_console import console_output, plain_console

TWO = (
    Diagnostic("flow-cycle", "error", "a waits for itself", "/edges/1", hint="remove an edge"),
    Diagnostic("dangling-edge", "error", "goes nowhere", "/edges/2/target"),
    Diagnostic("odd", "warning", "strange", "/nodes/0"),
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), ExitCode.USAGE),
        (NotFound("x"), ExitCode.USAGE),
        (LimitExceeded("goal_chars", 1, 2), ExitCode.USAGE),
        (GraphInvalid(TWO), ExitCode.INVALID_PLAN),
        (PlanInvalid(TWO, [{}]), ExitCode.INVALID_PLAN),
        (UnknownProvider("x"), ExitCode.NO_PROVIDER),
        (UnavailableProvider("x"), ExitCode.NO_PROVIDER),
        (UnknownModel("x"), ExitCode.NO_PROVIDER),
        (ProviderError("down", provider="openai"), ExitCode.NO_PROVIDER),
        (StoreError("x"), ExitCode.FAILED),
        (InvalidTransition("x"), ExitCode.FAILED),
    ],
)
def test_every_error_has_its_exit_code(error: PlanwaveError, code: int) -> None:
    assert exit_code_of(error) == code


def test_error_has_message_and_hint() -> None:
    console = plain_console()
    show_error(console, UnavailableProvider("anthropic\nhas no key", hint="set ANTHROPIC_API_KEY"))
    assert console_output(console) == "✗ anthropic has no key\n  → set ANTHROPIC_API_KEY\n"


def test_invalid_plan_lists_all_diagnostics() -> None:
    console = plain_console(width=40)
    show_error(console, GraphInvalid(TWO))
    assert console_output(console).splitlines() == [
        "✗ 2 errors",
        "  error   /edges/1  a waits for itself  [flow-cycle]",
        "      remove an edge",
        "  error   /edges/2/target  goes nowhere  [dangling-edge]",
        "  warning /nodes/0  strange  [odd]",
    ]


def test_unrepairable_plan_keeps_its_hint() -> None:
    console = plain_console()
    show_error(console, PlanInvalid(TWO[:1], [{}, {}, {}]))
    assert "after 3 attempts" in console_output(console)
    assert console_output(console).splitlines()[-1] == (
        "  → rephrase the goal, or choose a stronger model (--provider, --model)"
    )


def test_plan_error_that_says_everything_has_no_list() -> None:
    console = plain_console()
    refusal = Diagnostic("refusal", "error", "the model refused", hint="rephrase the goal")
    show_error(console, PlanInvalid([refusal], [{}]))
    assert console_output(console) == (
        "✗ no valid plan after 1 attempt; the last one: the model refused\n"
        "  → rephrase the goal, or choose a stronger model (--provider, --model)\n"
    )


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("model-cannot-plan", "the hint (--provider, --model)"),
        ("unknown-node-type", "the hint (--import MODULE)"),
        ("store-unusable", "the hint (--storage or PLANWAVE_STORAGE_DIR)"),
        ("database-unusable", "the hint"),
        ("call-timeout", "the hint (limits are set by PLANWAVE_LIMIT_… or in planwave.toml)"),
        ("other", "the hint"),
    ],
)
def test_hint_names_its_command_or_option(code: str, shown: str) -> None:
    assert hint_of(PlanwaveError("x", code=code, hint="the hint")) == shown
    assert hint_of(PlanwaveError("x", code=code)) is None


def test_hint_of_a_single_diagnostic_names_its_option() -> None:
    console = plain_console()
    unknown = Diagnostic("unknown-node-type", "error", "no such type", hint="load it")
    show_error(console, GraphInvalid([unknown]))
    assert console_output(console) == "✗ no such type\n  → load it (--import MODULE)\n"


def test_hint_of_a_limit_names_its_variable() -> None:
    assert hint_of(LimitExceeded("goal_chars", 1, 2)) == (
        "shorten the input or raise the limit goal_chars (PLANWAVE_LIMIT_GOAL_CHARS)"
    )


def test_json_error_has_the_hint_of_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    error = LimitExceeded("goal_chars", 1, 2)
    show_error(CommandConsole(json=True), error)
    assert json.loads(capsys.readouterr().out)["error"]["hint"] == hint_of(error)


def test_json_error_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(CommandConsole(json=True), GraphInvalid(TWO))
    out, err = capsys.readouterr()
    shown = json.loads(out)
    assert shown["error"]["code"] == "graph-invalid"
    assert [each["pointer"] for each in shown["diagnostics"]] == [d.pointer for d in TWO]
    assert "flow-cycle" in err
