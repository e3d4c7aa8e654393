"""Write the lock files: the versions of ``constraints.txt`` with the hashes of their files.

Usage: ``make lock`` (it needs uv: ``pip install uv``), after a change of ``pyproject.toml`` or ``constraints.txt``.
``requirements.lock`` has all that planwave, its extras and its tests need on Python 3.11 (3.11.5 or newer), on Linux;
the others are the parts of it for container images. No address of a package index is written into them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS: dict[str, tuple[str, ...]] = {
    "requirements.lock": ("dev", "docs", "local", "mcp", "otel", "postgres", "temporal"),
    "requirements-image.lock": ("build",),
    "requirements-local.lock": ("build", "local"),
    "requirements-scale.lock": ("build", "postgres", "temporal"),
}
"""The extras in each file."""
CONSTRAINTS = ROOT / "constraints.txt"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)


def pins(path: Path) -> dict[str, str]:
    """Return the versions in a file of requirements, by normalized name (PEP 503)."""
    found = _PIN.findall(path.read_text("utf-8"))
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def write(name: str, extras: tuple[str, ...]) -> None:
    """Write one lock file.

    Raises:
        CalledProcessError: uv failed; it has said why.
    """
    (ROOT / name).unlink(missing_ok=True)  # uv would prefer the versions in it
    chosen = [part for extra in extras for part in ("--extra", extra)]
    command = [
        "uv", "pip", "compile", "pyproject.toml", *chosen, "--constraints", CONSTRAINTS.name,
        "--generate-hashes", "--no-strip-extras", "--python-version", "3.11.5", "--no-header", "--no-annotate",
        # The pip of the environment installs them.
        "--no-emit-package", "pip",
        "--no-emit-index-url", "--no-emit-find-links", "--quiet", "--output-file", name,
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True)


def main() -> int:
    """Write all lock files; return the exit code."""
    for name, extras in LOCKS.items():
        write(name, extras)
    return 0


if __name__ == "__main__":
    sys.exit(main())
