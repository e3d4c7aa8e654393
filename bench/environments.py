"""Where each peer lives: planwave and the floor in the project's environment, others in their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = ("planwave", "planwave_waves", "raw")
REQUIREMENTS = {
    "langgraph": [
        "langgraph==1.2.22",
        "langgraph-checkpoint-sqlite==3.1.2",
        "langchain-openai==1.7.4",
        "pydantic-ai-slim[openai]==2.68.0",  # the floor of W8
    ],
    "hamilton": ["apache-hamilton==1.90.0"],
    "agno": ["agno[sql]==3.1.10", "sqlalchemy", "aiosqlite"],
}
PEERS = (*OWN, *REQUIREMENTS)


def own_python() -> Path:
    """The project's interpreter; the one that runs this where there is none."""
    found = ROOT / ".venv" / "bin" / "python"
    return found if found.exists() else Path(sys.executable)


def python_of(peer: str, venvs: Path) -> Path | None:
    """The interpreter a peer is measured with, or None if its environment was not made."""
    if peer in OWN:
        return own_python()
    found = venvs / peer / "bin" / "python"
    return found if found.exists() else None


def make(peer: str, venvs: Path) -> None:
    """Make a peer's environment; nothing happens where there is one."""
    if python_of(peer, venvs) is not None:
        return
    print(f"making {venvs / peer} …", flush=True)
    subprocess.run([own_python(), "-m", "venv", venvs / peer], check=True)
    pip = [venvs / peer / "bin" / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", *REQUIREMENTS[peer]], check=True)
