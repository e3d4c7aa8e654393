"""The SDK of MCP is imported by the first client that comes, not by the application."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import planwave.api.server
from planwave.interop.mcp_server.endpoint import is_installed
print(is_installed(), "mcp" in sys.modules)
"""


@pytest.mark.slow
def test_the_server_loads_no_mcp_sdk() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr
