from __future__ import annotations

import subprocess
import sys

import pytest

import planwave.expressions


def test_importing_the_room_loads_no_engine_and_no_event_loop() -> None:
    script = (
        "import sys, planwave.expressions\n"
        "heavy = {'asyncio', 'jinja2', 'minijinja', 'pydantic', 'planwave.expressions.renderer'}\n"
        "print(sorted(heavy & set(sys.modules)), planwave.expressions.Renderer.__name__)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert shown.stdout == b"[] Renderer\n"


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="'nope'"):
        _ = planwave.expressions.nope
