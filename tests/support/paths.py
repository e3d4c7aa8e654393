"""Where the repository is, and the folder of shared test data that may stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SHARED: Final = ROOT.parent / "shared"
"""Absent in most checkouts; tests that read it skip where it is."""
