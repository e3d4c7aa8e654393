"""The start of a process of the command, and Ctrl-C before the command has begun."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

EARLY = """
import os, signal, sys
class Early:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[2]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Early())
from planwave.main import main
main()
"""


@pytest.mark.parametrize(
    "imported",
    ["planwave.bootstrap", "planwave.settings", "planwave.cli.app", "typer", "typer.rich_utils"],
)
def test_ctrl_c_before_the_command_has_begun_leaves_no_trace(imported: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EARLY, "--help", imported],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_command_is_a_module_of_its_interpreter() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "planwave", "--version"], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (f"planwave {version('planwave')}\n", "")


_WARNS = """
import sys, warnings
from typing import Annotated
from pydantic import Field, TypeAdapter
import planwave.bootstrap, planwave.cli.app
planwave.bootstrap.cli_factories = lambda: None
planwave.cli.app.app = lambda **_: TypeAdapter(Annotated[int, Field(alias="path")] | None)
from planwave.main import main
if sys.argv[1] == "main":
    main()
else:
    planwave.cli.app.app()
"""


@pytest.mark.parametrize(("through", "warns"), [("main", False), ("app", True)])
def test_what_fastapi_hides_of_its_fields_is_hidden_in_all_threads(
    through: str, warns: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WARNS, through], capture_output=True, text=True, check=True
    )
    assert ("UnsupportedFieldAttributeWarning" in done.stderr) is warns
