"""A model provider in a process of its own, whose model calls the tool ``add`` once; see README.md.

Prints the base URL of its OpenAI API, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    TextReply,
    ToolCallReply,
    tool_results_of,
)


def reply_to(body: dict[str, Any]) -> TextReply:
    results = tool_results_of(body)
    if not results:
        return ToolCallReply([("add", {"a": 1, "b": 2})])
    return TextReply(f"It is {', '.join(results.values())}.")


async def serve() -> None:
    async with FakeLLMServer(reply_to=reply_to) as llm:
        print(llm.openai_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
