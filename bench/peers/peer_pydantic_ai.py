"""The floor of agents: pydantic-ai's ``Agent`` as it is, its replies streamed; see W8."""

from __future__ import annotations

from importlib.metadata import version as version_of

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

NAME = "pydantic_ai"
MODE = "bare agent"


def version():
    return "pydantic-ai " + version_of("pydantic-ai-slim")


def agent_open(base_url, model, prompt, tool):
    provider = OpenAIProvider(base_url=base_url, api_key="none")
    return Agent(OpenAIChatModel(model, provider=provider), tools=[tool]), prompt


async def _consume(context, events):
    async for _ in events:
        pass


async def agent_turn(opened):
    agent, prompt = opened
    result = await agent.run(prompt, event_stream_handler=_consume)
    return result.output


async def agent_close(opened):
    pass
