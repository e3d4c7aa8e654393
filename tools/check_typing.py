"""Compare what pyright says of ``tests/typing`` with the errors that are written there.

``# error: TEXT`` at the end of a line is an error that pyright has to report on it: TEXT is a part of its
message, or its rule; what else it reports there follows from it. An error on any other line fails the
check, and so does an error that is not reported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "tests" / "typing"
MARK = "  # error: "


def main() -> int:
    """Run pyright; print every difference, and return 1 if there is one."""
    run = subprocess.run(
        [Path(sys.executable).with_name("pyright"), "-p", SUITE, "--outputjson"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        report: Any = json.loads(run.stdout)
    except ValueError:
        print(run.stdout, run.stderr)
        return 1
    differences = sorted(_differences(report["generalDiagnostics"]))
    for line in differences:
        print(line)
    if not differences:
        print(
            f"pyright says of {report['summary']['filesAnalyzed']} files what tests/typing expects"
        )
    return 1 if differences else 0


def _differences(diagnostics: list[dict[str, Any]]) -> Iterator[str]:
    reported: dict[tuple[Path, int], list[str]] = {}
    for each in diagnostics:
        place = Path(each["file"]), each["range"]["start"]["line"] + 1
        reported.setdefault(place, []).append(f"{each['message']} ({each.get('rule', '')})")
    expected: dict[tuple[Path, int], list[str]] = {}
    for file in SUITE.rglob("*.py"):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if MARK in line:
                expected[file, number] = [part.strip() for part in line.split(MARK)[1:]]
    for place in reported.keys() | expected.keys():
        shown = f"{place[0].relative_to(ROOT)}:{place[1]}"
        messages, texts = reported.get(place, []), expected.get(place, [])
        for text in texts:
            if not any(text in message for message in messages):
                yield f"{shown}: pyright does not report: {text}"
        if not texts:
            yield from (f"{shown}: {message}" for message in messages)


if __name__ == "__main__":
    raise SystemExit(main())
