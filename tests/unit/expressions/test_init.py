from __future__ import annotations

import subprocess
import sys


def test_importing_the_expressions_loads_neither_engine_nor_event_loop() -> None:
    script = (
        "import sys, planwave.expressions\n"
        "heavy = {'asyncio', 'jinja2', 'minijinja', 'pydantic', 'planwave.expressions.renderer'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert shown.stdout == b"[]\n"
