"""Random graphs in which something of everything happens, for executions that are cut off.

Model calls, retries, failures handled and not, ``join: any``, approvals with and without an end of
their patience, nodes that act but once, nodes that run out of time. Some nodes run a graph inside
them, one for each item of a list, so many at a time, or keep a value; such graphs hold questions,
failures, and graphs again.
"""

from __future__ import annotations

from random import Random
from typing import Any

from planwave.executor.options import RunOptions

ACTIONS = ("approve", "reject")


def random_document(random: Random) -> dict[str, Any]:
    """Make a graph document of 2 to 8 nodes."""
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for number in range(2 + random.randrange(7)):
        node = _MAKERS[random.randrange(len(_MAKERS))](f"n{number}", random)
        earlier = random.sample(nodes, min(len(nodes), random.randrange(3)))
        if len(earlier) > 1 and random.random() < 0.4:
            node.setdefault("policy", {})["join"] = "any"
        nodes.append(node)
        edges += [_edge(source, node, _handle(source, random)) for source in earlier]
    for node in list(nodes):
        if node.get("policy", {}).get("onError") == "continue":
            nodes.append(_text(f"after_{node['id']}", random))
            edges.append(_edge(node, nodes[-1], "error"))
    return {"nodes": nodes, "edges": edges}


def changed_document(document: dict[str, Any], node_id: str, random: Random) -> dict[str, Any]:
    """Make a graph of another one: with a new node after one of its nodes, perhaps before another, perhaps without one.

    What has begun may be among what changes: an execution refuses that.
    """
    nodes, edges = list(document["nodes"]), list(document["edges"])
    node = _MAKERS[random.randrange(len(_MAKERS))](node_id, random)
    source = random.choice(nodes)
    edges.append(_edge(source, node, _handle(source, random)))
    if random.random() < 0.3:
        edges.append(_edge(node, random.choice(nodes), _handle(node, random)))
    if random.random() < 0.3:
        gone = random.choice(nodes)["id"]
        nodes = [each for each in nodes if each["id"] != gone]
        edges = [each for each in edges if gone not in (each["source"], each["target"])]
    return {"nodes": [*nodes, node], "edges": edges}


def random_options(random: Random) -> RunOptions:
    """Choose how to run one."""
    return RunOptions(
        scheduling=random.choice(["eager", "waves"]),
        on_failure=random.choice(["continue", "continue", "stop"]),
        max_parallel=random.choice([None, None, 2]),
    )


def _handle(source: dict[str, Any], choose: Random) -> str:
    if source["type"] == "approval":
        return choose.choice(ACTIONS)
    if source.get("policy", {}).get("onError") == "continue" and choose.random() < 0.5:
        return "error"
    return "output"


def _edge(source: dict[str, Any], target: dict[str, Any], handle: str) -> dict[str, Any]:
    return {
        "id": f"{source['id']}-{target['id']}",
        "source": source["id"],
        "sourceHandle": handle,
        "target": target["id"],
        "targetHandle": "input",
        "data": {"channel": "flow"},
    }


def _node(node_id: str, kind: str, data: dict[str, Any], **policy: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"id": node_id, "type": kind, "name": node_id, "data": data}
    return {**made, "policy": policy} if policy else made


def _text(node_id: str, choose: Random) -> dict[str, Any]:
    return _node(node_id, "text", {"text": node_id})


def _llm(node_id: str, choose: Random) -> dict[str, Any]:
    retry = {"attempts": 4, "backoffS": 0.005}
    return _node(node_id, "llm", {"prompt": f"say {node_id}"}, retry=retry)


def _work(node_id: str, choose: Random) -> dict[str, Any]:
    return _node(node_id, "job", {"ms": choose.randrange(12), "calls": choose.randrange(3)})


def _flaky(node_id: str, choose: Random) -> dict[str, Any]:
    fails = 1 + choose.randrange(2)
    return _node(
        node_id,
        "job",
        {"ms": 2, "fails": fails, "calls": choose.randrange(2)},
        retry={"attempts": fails + choose.randrange(2), "backoffS": 0.01},
    )


def _broken(node_id: str, choose: Random) -> dict[str, Any]:
    on_error = choose.choice(["fail", "continue", "default"])
    policy: dict[str, Any] = {"onError": on_error}
    if on_error == "default":
        policy["default"] = {"handle": "output", "value": "instead"}
    return _node(node_id, "job", {"breaks": True, "calls": 1}, **policy)


def _timing_out(node_id: str, choose: Random) -> dict[str, Any]:
    return _node(node_id, "job", {"ms": 60_000}, timeoutS=0.03, onError=choose.choice(_ON_ERROR))


def _approval(node_id: str, choose: Random) -> dict[str, Any]:
    data: dict[str, Any] = {"prompt": f"Shall {node_id} go on?", "actions": list(ACTIONS)}
    if choose.random() < 0.3:
        data |= {"timeoutS": 0.03, "timeoutAction": "reject"}
    return _node(node_id, "approval", data)


def _effect_once(node_id: str, choose: Random) -> dict[str, Any]:
    return _node(node_id, "job", {"ms": 15}, effect="once")


def _nested(node_id: str, choose: Random) -> dict[str, Any]:
    data = {"body": "question", "ms": 3, "calls": choose.randrange(2)}
    return _node(node_id, "job", data)


def _loop(node_id: str, choose: Random) -> dict[str, Any]:
    data = {
        "body": choose.choice(["work", "work", "question", "shaky", "loop"]),
        "items": 1 + choose.randrange(4),
        "parallel": 1 + choose.randrange(3),
        "skips": choose.random() < 0.5,
        "calls": choose.randrange(2),
    }
    return _node(
        node_id, "job", data, retry={"attempts": 1 + choose.randrange(3), "backoffS": 0.01}
    )


def _nested_failure(node_id: str, choose: Random) -> dict[str, Any]:
    return _node(node_id, "job", {"body": "doomed", "items": 2, "keeps": 1})


def _once_values(node_id: str, choose: Random) -> dict[str, Any]:
    return _node(node_id, "job", {"keeps": 1 + choose.randrange(2), "ms": choose.randrange(12)})


def nested_documents() -> dict[str, dict[str, Any]]:
    """Make the documents of the graphs that run inside nodes, by name."""
    asks = _node("ask", "approval", {"prompt": "Shall it?", "actions": list(ACTIONS)})
    first, last = _node("in", "job", {"ms": 2, "calls": 1}), _node("out", "job", {"ms": 2})
    question = [first, asks, last, _node("other", "llm", {"prompt": "other"})]
    shaky = _node(
        "shaky", "job", {"ms": 1, "fails": 3, "calls": 1}, retry={"attempts": 2, "backoffS": 0.005}
    )
    broken = _node("broken", "job", {"breaks": True})
    inner = _node("inner", "job", {"body": "question", "items": 2, "parallel": 2, "keeps": 1})
    return {
        "work": {"nodes": [first], "edges": []},
        "question": {
            "nodes": question,
            "edges": [_edge(first, asks, "output"), _edge(asks, last, "approve")],
        },
        "doomed": {"nodes": [first, broken], "edges": [_edge(first, broken, "output")]},
        "shaky": {"nodes": [first, shaky], "edges": [_edge(first, shaky, "output")]},
        "loop": {"nodes": [inner, last], "edges": [_edge(inner, last, "output")]},
    }


_ON_ERROR = ("fail", "continue")
_MAKERS = (
    _text, _llm, _llm, _work, _work, _flaky, _broken, _timing_out, _approval, _approval, _effect_once, _nested, _loop,
    _loop, _once_values, _nested_failure, _nested_failure,
)  # fmt: skip
