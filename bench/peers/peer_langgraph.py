"""LangGraph's StateGraph: one channel a node; each node reads only its dependencies' channels.

Pregel's supersteps are waves.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, TypedDict
from uuid import uuid4

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph

NAME = "langgraph"
MODE = "waves (supersteps)"


def version():
    return "langgraph " + version_of("langgraph")


def state_graph(dag, body):
    graph = StateGraph(TypedDict("State", dict.fromkeys(dag.nodes, Any), total=False))

    def node_of(n, deps):
        async def node(state):
            return {n: await body(n, [state[d] for d in deps])}

        return node

    for n in dag.nodes:
        deps = dag.deps[n]
        reads = TypedDict("Reads_" + n, dict.fromkeys(deps, Any), total=False) if deps else None
        graph.add_node("_" + n, node_of(n, deps), input_schema=reads)
        if len(deps) > 1:
            graph.add_edge(["_" + d for d in deps], "_" + n)
        else:
            graph.add_edge("_" + deps[0] if deps else START, "_" + n)
    for n in dag.sinks:
        graph.add_edge("_" + n, END)
    return graph


def build(dag, body):
    return state_graph(dag, body).compile(), dag.depth + 10


async def run(built):
    graph, limit = built
    await graph.ainvoke({}, {"recursion_limit": limit})


async def durable_open(folder):
    """The saver's default pragmas and the library's default durability, "async"."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    opening = AsyncSqliteSaver.from_conn_string(str(Path(folder, "checkpoints.sqlite")))
    saver = await opening.__aenter__()
    await saver.setup()
    return opening, saver


async def durable_run(store, dag, body, uid):
    graph = state_graph(dag, body).compile(checkpointer=store[1])
    config = {"configurable": {"thread_id": uid}, "recursion_limit": dag.depth + 10}
    await graph.ainvoke({}, config, durability="async")


async def durable_close(store):
    await store[0].__aexit__(None, None, None)


async def stream(n):
    async def node(state):
        write = get_stream_writer()
        for _ in range(n):
            await asyncio.sleep(0)
            write("tok")
        return {"x": 1}

    graph = StateGraph(TypedDict("State", {"x": Any}, total=False))
    graph.add_node("a", node)
    graph.add_edge(START, "a")
    graph.add_edge("a", END)
    async for token in graph.compile().astream({}, stream_mode="custom"):
        yield token


async def agent_open(base_url, model, prompt, tool, saving=None):
    """The prebuilt agent, with a model that streams."""
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    chat = ChatOpenAI(model=model, base_url=base_url, api_key="none", streaming=True)
    saver = None if saving is None else saving[1]
    agent = create_react_agent(chat, [tool], checkpointer=saver)
    return agent, {"messages": [("user", prompt)]}, saving


async def agent_open_durable(folder, *given):
    """The saver of W4, with each turn a thread of its own."""
    return await agent_open(*given, saving=await durable_open(folder))


async def agent_turn(opened):
    agent, given, saving = opened
    options = {}
    if saving is not None:
        options = {"config": {"configurable": {"thread_id": uuid4().hex}}, "durability": "async"}
    async for mode, item in agent.astream(given, stream_mode=["messages", "values"], **options):
        if mode == "values":
            last = item["messages"][-1]
    return last.content


async def agent_close(opened):
    if opened[2] is not None:
        await durable_close(opened[2])
