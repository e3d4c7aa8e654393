"""Build hook: every wheel and source distribution carries the built web UI.

A wheel needs no Node where it is installed. A source distribution holds the built files and the
sources; a wheel made from it runs no npm, because the stamp says that the files are current. An
editable installation goes on without the UI: the service says how to build it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebUIBuildHook(BuildHookInterface[Any]):
    """Builds the web UI before the files of a distribution are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the UI unless it is current.

        Args:
            version: ``editable`` or ``standard``.
            build_data: Not used: the built files are listed as artifacts.
        """
        sys.path.insert(0, str(Path(self.root, "tools")))
        from web import BuildError, WebProject

        try:
            WebProject(Path(self.root), is_quiet=True).build()
        except BuildError as error:
            if version != "editable":
                raise SystemExit(f"{error}.") from error
            self.app.display_warning(f"The web UI is not built: {error}.")
