"""Packages of node types laid out as an installer does it, and processes that find them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.processes.forked_process import run_forked

PROGRAMS = {"python": [], "planwave": ["-c", "from planwave.main import main; main()"]}
"""What stands for a command line's first word, after the interpreter and ``-W error``."""
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly"]


def install_entry_points(project: Path, site: Path) -> None:
    """Write the metadata of a project's entry points into ``site``, as ``pip install -e`` does."""
    about = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    info = site / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    info.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    (info / "METADATA").write_text(head, "utf-8")
    groups = about["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines), "utf-8")


def run_command(
    command: list[str], directory: Path, *sites: Path
) -> subprocess.CompletedProcess[str]:
    """Run ``python …``, ``pytest …`` or ``planwave …`` in a directory, packages on the path."""
    path = os.pathsep.join(map(str, [ROOT, directory, *sites]))
    environment = {
        "PYTHONPATH": path,
        "PATH": "",
        "HOME": str(directory),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "120",
    }
    program, *arguments = command
    if program == "pytest":  # it rewrites what it imports, and would find its plugins imported
        return subprocess.run(
            [*PYTEST, *arguments],
            cwd=directory, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return run_forked("-W", "error", *PROGRAMS[program], *arguments, cwd=directory, env=environment)
