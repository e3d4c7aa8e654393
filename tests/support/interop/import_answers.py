"""Write the answers of ``POST /api/import`` that the tests of the page read.

Usage: ``python -m tests.support.interop.import_answers``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from tests.support.interop.imports import OWN
from tests.support.paths import ROOT
from tests.support.server.in_process_client import in_process_client
from tests.support.service.dependencies import dependencies

PATH: Final = ROOT / "web" / "src" / "screens" / "import" / "importAnswers.json"
SOURCES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "workflow": ("agentflow/legacy_and_subagent.json", {}),
    "programs": ("dify/code_tool_knowledge.yml", {}),
    "module": ("dify/code_tool_knowledge.yml", {"write_code": True}),
    "plan": ("agiraph/plan_with_contracts.json", {}),
    "own": ("hostile/planwave_document.json", {}),
}
"""The file of each answer, and what else is asked for."""


async def answers() -> dict[str, Any]:
    """Return what the service answers for each source."""
    async with in_process_client(dependencies()) as calls:
        return {
            name: await calls.post_json(
                "/api/import", {"text": (OWN / file).read_text("utf-8"), **more}
            )
            for name, (file, more) in SOURCES.items()
        }


if __name__ == "__main__":
    written = json.dumps(asyncio.run(answers()), indent=2, ensure_ascii=False)
    PATH.write_text(f"{written}\n", "utf-8")
