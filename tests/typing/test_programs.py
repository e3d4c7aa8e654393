"""The programs of this folder run; ``tools/check_typing.py`` says whether their types are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.forked_process import run_forked

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("p*.py"))


def test_every_program_is_there() -> None:
    numbers = [int(path.stem[1:3]) for path in PROGRAMS]
    assert numbers == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_runs(program: Path, tmp_path: Path) -> None:
    done = run_forked("-W", "error", str(program), cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
