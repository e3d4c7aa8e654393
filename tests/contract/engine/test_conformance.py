"""Graphs of three other engines give the recorded results of those engines, except for listed differences.

The cases are recordings: a graph, and what the real engine made of it with a stub for a model. Each
is converted to a planwave document and run with the same rule for a model. A result that does not match
is listed in ``DIFFERENCES`` with the reason and with what happens here instead.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from planwave.events.logs.typed_log import execution_log_entries
from planwave.interop.importing.agiraph import task_description
from planwave.planner.planner import Planner
from planwave.providers.protocols import ModelRequest
from planwave.settings import Limits
from planwave.storage.sql.store import Store
from tests.support.conformance.converted_runs import (
    PROVIDERS,
    ConvertedGraph,
    ConvertedRun,
    RuleModels,
    imported_graph,
    run_converted,
)
from tests.support.llm.fake_providers import ListedProviders, library_registry
from tests.support.llm.watched_model import WatchedModel
from tests.support.paths import SHARED
from tests.support.virtual_loop import virtual_time

CASES = SHARED / "conformance"
_EXPECTED = ".expected.json"
_Json = dict[str, Any]


class Difference(NamedTuple):
    """Why a case does not match, and what is so here instead."""

    why: str
    here: _Json


_NOTHING_TO_ASK = {"statuses": ["failed"], "calls": []}
DIFFERENCES: dict[str, Difference] = {
    "agentflow/if_empty_value_never_matches": Difference(
        "The branch is the same, but its agent has nothing to ask, and no model is paid for that.",
        {**_NOTHING_TO_ASK, "checked": {"node_2": 'Condition 1 (equal "") evaluated as false'}},
    ),
    "agentflow/start_without_initialInput": Difference(
        "An agent that has nothing to ask fails and says so, instead of paying for an empty prompt.",
        {**_NOTHING_TO_ASK, "errors": {"node_2": "empty-prompt"}},
    ),
    "agentflow/no_start_fails": Difference(
        "A graph needs no start node; this one fails as its only agent has nothing to ask.",
        {**_NOTHING_TO_ASK, "errors": {"node_2": "empty-prompt"}},
    ),
    "agiraph/cycle": Difference(
        "A cycle is named by the import, and what closes it is refused before anything runs.",
        {"refused": ["placeholder"]},
    ),
    "agiraph/duplicate_ids": Difference(
        "The second task of one id is refused, instead of running both and keeping one result.",
        {"refused": ["placeholder"]},
    ),
    "agiraph/empty_plan": Difference(
        "A plan without a task is refused, instead of counting as done.",
        {"refused": ["empty-graph"]},
    ),
    "agiraph/unknown_dependency": Difference(
        "A task that needs one that is not there is refused before anything runs.",
        {"refused": ["placeholder"]},
    ),
    "agiraph/planner_missing_name": Difference(
        "A task without a name is called by its id; the plan is not lost for that.",
        {"nodes": [("node_0", "node_0", "d")]},
    ),
    "agiraph/planner_model_choice_is_overridden": Difference(
        "The plan's choice of a provider counts: one that is not configured goes back to the model "
        "to be repaired, instead of being replaced without a word.",
        {"refused": ["unavailable-provider"]},
    ),
    "agiraph/planner_no_title_second_call": Difference(
        "A plan without a title is called by its goal; no second call is paid for one.",
        {"title": "demo task", "calls": 1},
    ),
    "agentflow/subagent_cycle_fails": Difference(
        "Agents that call each other are refused before anything runs, not when the first agent does.",
        {"refused": ["placeholder"]},
    ),
    "agentflow/subagent_self_fails": Difference(
        "An agent that calls itself is refused before anything runs.",
        {"refused": ["placeholder"]},
    ),
    "agentflow/subagent_target_in_execution_edge_fails": Difference(
        "A sub-agent that runs after its agent too is refused before anything runs; unless it is "
        "exclusive, it may be a stage too.",
        {"refused": ["placeholder"]},
    ),
    "agentflow/subagent_two_parents_fails": Difference(
        "A sub-agent of two agents is refused before anything runs; unless it is exclusive, it may "
        "be shared.",
        {"refused": ["placeholder"]},
    ),
    "agentflow/subagent_wrong_target_handle_fails": Difference(
        "A link between agents by another handle is refused before anything runs.",
        {"refused": ["placeholder"]},
    ),
    "covalt/agent_with_toolset_and_subagent_links": Difference(
        "An agent that is linked as a tool is no step: it runs when it is called, with the task that it "
        "is given, and not before, with nothing to do.",
        {
            "outputs": {
                "a1": {"output": {"response": "A(hello there) tools=toolset_web,delegate_Sub"}},
                "a2": None,
            },
            "ended": {"entry-1": "completed", "a1": "completed", "a2": None},
        },
    ),
    "covalt/link_cycle_error": Difference(
        "A cycle of links is named by the import, and what closes it is refused before anything runs.",
        {"refused": ["placeholder"], "outputs": {}},
    ),
    "covalt/bad_coercion_raises": Difference(
        "A text that leads to a number is named by the import, and the completion that it leads to is refused "
        "before the first node runs.",
        {"refused": ["placeholder"], "outputs": {}},
    ),
    "covalt/error_on_error_continue": Difference(
        "What follows a handled failure gets the error, instead of an empty message.",
        {"outputs": {"a": {"output": {"response": "After(ValueError: boom)"}}}},
    ),
}


def cases_of(engine: str, pattern: str = f"*{_EXPECTED}") -> list[str]:
    """Return the cases of one engine, as ``engine/name``; none where there are no recordings."""
    files = sorted((CASES / engine).glob(pattern))
    return [f"{engine}/{file.name.removesuffix(_EXPECTED).removesuffix('.json')}" for file in files]


def loaded(case: str, suffix: str) -> _Json:
    return json.loads((CASES / f"{case}{suffix}").read_text("utf-8"))


def compare(case: str, here: _Json, recorded: _Json) -> None:
    """Hold what happened here against the recording, or against the table."""
    difference = DIFFERENCES.get(case)
    if difference is None:
        assert here == recorded
        return
    print(f"\n{case}: {difference.why}")  # noqa: T201
    assert _part(here, difference.here) == difference.here
    assert here != recorded, "it matches now: take it out of the table"


def _part(whole: Any, like: Any) -> Any:
    """Return the fields of an object that another one names; an empty one selects itself."""
    if not (isinstance(whole, dict) and isinstance(like, dict) and like):
        return whole
    return {name: _part(whole.get(name), each) for name, each in like.items()}


def echoing(engine: str, pattern: str = f"*{_EXPECTED}") -> Callable[..., Any]:
    """Run a test for each case of an engine."""
    found = cases_of(engine, pattern)
    return pytest.mark.parametrize("case", found, ids=[case.partition("/")[2] for case in found])


def test_every_recording_is_accounted_for() -> None:
    if not CASES.is_dir():
        pytest.skip("no ../shared/conformance")
    known = {"agentflow": ".workflow.json", "agiraph": ".plan.json", "covalt": ".graph.json"}
    counts: dict[str, _Json] = {}
    for engine, graph in known.items():
        runs, plans = cases_of(engine), cases_of(engine, "planner_*.json")
        files = {f"{case}{suffix}" for case in runs for suffix in (graph, _EXPECTED)}
        files |= {f"{case}.json" for case in plans}
        assert files == {f"{engine}/{file.name}" for file in (CASES / engine).iterdir()}
        differ = {case for case in (*runs, *plans) if case in DIFFERENCES}
        matched = len(runs) + len(plans) - len(differ)
        counts[engine] = {"match": matched, "differ": len(differ)}
    print(f"\n{counts}")  # noqa: T201
    assert sum(each["differ"] for each in counts.values()) == len(DIFFERENCES)
    assert counts == {
        "agentflow": {"match": 12, "differ": 8},
        "agiraph": {"match": 11, "differ": 7},
        "covalt": {"match": 10, "differ": 4},
    }


# -- AgentFlow -------------------------------------------------------------------------------------


@echoing("agentflow")
async def test_agentflow(case: str, store: Store) -> None:
    workflow, expected = loaded(case, ".workflow.json"), loaded(case, _EXPECTED)
    models = RuleModels(_prompt_text if "unchanged" in expected["llm_rule"] else _in_brackets)
    answers = [_agentflow_answer(given) for given in expected["resume_inputs"]]
    seen = await run_converted(imported_graph(workflow, "agentflow", answers), models, store=store)
    compare(case, _agentflow_here(seen, workflow), _agentflow_recorded(expected, workflow))


def _agentflow_answer(given: Any) -> _Json:
    """Return what was sent to resume a run as an answer: only a "reject" in it rejects."""
    answer = given if isinstance(given, dict) else {"decision": given}
    rejects = "reject" in str(answer.get("decision", "")).lower()
    return {"decision": "reject" if rejects else "approve", "note": answer.get("note", "")}


def _prompt_text(request: ModelRequest, _: int) -> str:
    return request.prompt


def _in_brackets(request: ModelRequest, _: int) -> str:
    if request.model == "BOOM":
        raise ValueError("model BOOM not found")
    return f"<{request.prompt}>"


def _agentflow_here(seen: ConvertedRun, workflow: _Json) -> _Json:
    if seen.refusal_codes:
        return {"refused": seen.refusal_codes, "calls": seen.calls}
    entries = [(_plain(e.node_id), e.type, e.content) for e in execution_log_entries(seen.events)]
    nodes, steps = seen.state.nodes, {node["id"] for node in workflow["nodes"]}
    given = {
        _plain(path): node.outputs["output"]["value"]
        for path, node in nodes.items()
        if _plain(path) in steps and "output" in (node.outputs or {})
    }
    return {
        "statuses": seen.statuses,
        "outputs": given,
        "decisions": {n: nodes[n].answer for n in _approvals(workflow) if nodes[n].answer},
        "calls": sorted(
            (
                _plain(path),
                call.model,
                call.system,
                call.prompt,
                call.reasoning_effort,
                call.web_search,
                [tool.name for tool in call.tools],
            )
            for path, call in seen.calls
        ),
        "messages": _by_node(entries, ("start_prompt", "llm_response", "llm_error")),
        "checked": _last_checks(entries),
        "errors": {n: node.error["code"] for n, node in nodes.items() if node.error},
    }


def _agentflow_recorded(expected: _Json, workflow: _Json) -> _Json:
    results, state = expected["results"], expected["results"][-1]["state"]
    entries = [(e["nodeId"], e["type"], e["content"]) for e in results[-1]["logs"]]
    failed = {node: "provider-error" for node, kind, _ in entries if kind == "llm_error"}
    return {
        "statuses": [result["status"] for result in results],
        "outputs": {n["id"]: state[n["id"]] for n in workflow["nodes"] if n["id"] in state},
        "decisions": {
            n: state[f"{n}_approval"] for n in _approvals(workflow) if f"{n}_approval" in state
        },
        "calls": sorted(
            (
                c["parentNodeId"],
                c["model"],
                c["systemPrompt"],
                c["userContent"],
                c["reasoningEffort"],
                c["tools"]["web_search"],
                [f"delegate_{sub['agentName']}" for sub in c.get("subagents", ())],
            )
            for c in expected["llm_calls"]
        ),
        "messages": _by_node(entries, ("start_prompt", "llm_response", "llm_error")),
        "checked": _last_checks(entries),
        "errors": failed,
    }


def _plain(path: str) -> str:
    """Return the node of the workflow that a path stands for, also inside a loop."""
    return path.rpartition("/")[2]


def _approvals(workflow: _Json) -> list[str]:
    return [n["id"] for n in workflow["nodes"] if n["type"] in ("approval", "input")]


def _by_node(
    entries: Iterable[tuple[str, str, str]], kinds: tuple[str, ...]
) -> dict[str, list[tuple[str, str]]]:
    """Return the entries of each node in order; nodes that run at once have no order."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for node, kind, content in entries:
        if kind in kinds:
            found[node].append((kind, content))
    return dict(found)


def _last_checks(entries: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return what each branch checked when it last ran, joined."""
    found: dict[str, list[str]] = {}
    for node, kind, content in entries:
        if kind == "step_start":
            found[node] = []
        elif kind == "logic_check" and "is not known: its calls count as $0" not in content:
            found[node].append(content)  # no warning of a price, which the sources do not have
    return {node: "; ".join(checks) for node, checks in found.items() if checks}


# -- agiraph ---------------------------------------------------------------------------------------


@echoing("agiraph")
@virtual_time
async def test_agiraph(case: str, store: Store) -> None:
    plan, expected = loaded(case, ".plan.json"), loaded(case, _EXPECTED)
    models = RuleModels(_numbered, delay_s=1)
    seen = await run_converted(
        imported_graph(plan, "agiraph"), models, off=["anthropic"], renders=False, store=store
    )
    names = {node["name"]: node["id"] for node in plan["nodes"]}
    compare(case, _agiraph_here(seen), _agiraph_recorded(expected, names))


def _numbered(request: ModelRequest, count: int) -> str:
    if "FAIL" in request.prompt:
        raise ValueError("provider down")
    return f"result#{count}"


def _agiraph_here(seen: ConvertedRun) -> _Json:
    if seen.refusal_codes:
        return {"refused": seen.refusal_codes, "calls": len(seen.calls)}
    nodes, outputs = seen.state.nodes, seen.outputs
    return {
        "status": seen.state.status,
        "states": {
            path: "pending" if node.status == "blocked" else node.status
            for path, node in nodes.items()
        },
        "results": {path: outputs.get(path, {}).get("output", "") for path in nodes},
        "errors": {path: node.error["message"] for path, node in nodes.items() if node.error},
        "log": _log(seen.log_lines),
        "read": {path: _material(call.prompt) for path, call in seen.calls},
        "models": {(path, call.model) for path, call in seen.calls},
    }


def _agiraph_recorded(expected: _Json, names: Mapping[str, str]) -> _Json:
    result, calls = expected["result"], expected["calls"]
    if "uses unavailable provider" in result.get("exception", ""):
        return {"refused": ["unavailable-provider"], "calls": len(calls)}
    callers = [(names[_name_in(call["system_prompt"])], call) for call in calls]
    return {
        "status": result["status"],
        "states": expected["node_states"],
        "results": result["node_results"],
        "errors": expected["node_errors"],
        "log": _log(result["execution_logs"]),
        "read": {node: _material(call["prompt"]) for node, call in callers},
        "models": {(node, call["model"]) for node, call in callers},
    }


def _name_in(system: str) -> str:
    return system.partition("\n")[0].partition(": ")[2]


def _material(prompt: str) -> list[str]:
    """Return the results of earlier tasks that a prompt holds, with where each came from."""
    return re.findall(r"^From .* \(.*\):\n.*$", prompt, re.MULTILINE)


def _log(lines: Iterable[str]) -> list[str]:
    """Return the lines that both logs share, sorted, because the tasks of a wave run at once.

    Times and, of a completed task, its name are left out.
    """
    kept = ("Executing", "Starting node", "Completed node", "Failed node", "Cannot", "Execution")
    entries = (
        re.sub(r"^(Completed node [^ :]+).*", r"\1", x.removeprefix("ERROR: ")) for x in lines
    )
    return sorted(line for line in entries if line.startswith(kept))


@echoing("agiraph", "planner_*.json")
async def test_agiraph_plans(case: str) -> None:
    recorded = loaded(case, ".json")
    models = WatchedModel([_as_our_reply(recorded["model_reply"])] * 3)
    providers: Any = ListedProviders(PROVIDERS, off=["anthropic"])
    planner = Planner(models, providers, library_registry(providers), Limits())
    try:
        plan = await planner.create_plan("demo task", "openai", "gpt-4o-mini")
    except ValueError as error:
        here = {"refused": [d.code for d in getattr(error, "diagnostics", ())]}
    else:
        nodes, edges = plan.graph.nodes, plan.graph.edges
        here = {
            "title": plan.title,
            "nodes": [(node.id, node.name, node.description) for node in nodes],
            "models": [(node.data["provider"], node.data["model"]) for node in nodes],
            "edges": [(edge.source, edge.target) for edge in edges],
            "calls": len(models.requests),
        }
    compare(case, here, _plan_recorded(recorded))


def _as_our_reply(text: str) -> str:
    """Return a raw planner reply in our reply shape; what stands around its JSON stays.

    JSON that cannot be read stays as it is, and so does what is missing in it.
    """
    start, end = text.find("{"), text.rfind("}") + 1
    try:
        plan = json.loads(text[start:end])
    except ValueError:
        return text
    imported = imported_graph(plan, "agiraph").document
    nodes = [
        {name: node[name] for name in ("id", "name", "description")} | node.get("data", {})
        for node in imported["nodes"]
    ]
    edges = [
        {"source": edge["source"], "target": edge["target"], "channel": "flow"}
        for edge in imported["edges"]
    ]
    reply = {k: plan[k] for k in ("title",) if k in plan} | {"nodes": nodes, "edges": edges}
    return f"{text[:start]}{json.dumps(reply)}{text[end:]}"


def _plan_recorded(recorded: _Json) -> _Json:
    plan = recorded.get("plan")
    if plan is None:
        is_no_json = "as JSON" in recorded["exception"]
        return {"refused": ["invalid-json" if is_no_json else recorded["exception"]]}
    return {
        "title": plan["title"],
        "nodes": [(node["id"], node["name"], task_description(node)) for node in plan["nodes"]],
        "models": [(node["provider"], node["model"]) for node in plan["nodes"]],
        "edges": [(edge["from"], edge["to"]) for edge in plan["edges"]],
        "calls": len(recorded["calls"]),
    }


# -- Covalt ----------------------------------------------------------------------------------------

_IDS = ("chatId", "threadId")
_REFUSALS = {"Cycle detected in flow graph": "placeholder", "No implicit coercion": "type-mismatch"}


@echoing("covalt")
async def test_covalt(case: str, store: Store) -> None:
    graph, expected = loaded(case, ".graph.json"), loaded(case, _EXPECTED)
    rebuilt = _covalt_run(graph, expected["options"], expected["user_message"])
    seen = await run_converted(rebuilt, RuleModels(_named), store=store)
    types = {node["id"]: node["type"].replace("_", "-") for node in graph["nodes"]}
    compare(case, _covalt_here(seen, types, rebuilt.inputs), _covalt_recorded(expected, types))


def _covalt_run(graph: _Json, options: _Json, message: str) -> ConvertedGraph:
    """Import a graph, with what an operator fills in: the tools of a toolset, and a type of his own.

    The name of an agent, which the stubs of the cases give back, is its instructions here.
    """
    nodes = [
        {**node, "data": {**node["data"], "instructions": node["data"].get("name", "Agent")}}
        if node["type"] == "agent"
        else node
        for node in graph["nodes"]
    ]
    rebuilt = imported_graph({**graph, "nodes": nodes}, "covalt")
    for node in rebuilt.document["nodes"]:
        match node["type"], node.get("data", {}).get("kind"):
            case "chat_start", _:
                node.setdefault("data", {})["message"] = message
            case "placeholder", "toolset":
                name = f"toolset:{node['data']['parameters']['toolset']}"
                node |= {"type": "named_tool", "data": {"tool": name}}
            case "placeholder", "boom":
                node |= {"type": "boom", "data": {}}
    scope, cached = options.get("scope") or {}, options.get("cached_outputs") or {}
    way = {"execute": "run_to", "runFrom": "run_from"}.get(scope.get("mode", ""))
    given = (
        rebuilt.options
        if way is None
        else replace(rebuilt.options, **{way: tuple(scope["target_node_ids"])})
    )
    inputs = {
        node: {h: v["value"]["response"] for h, v in out.items()} for node, out in cached.items()
    }
    return rebuilt._replace(options=given, inputs=inputs, trigger=options.get("trigger"))


def _named(request: ModelRequest, _: int) -> str:
    """Answer as the stubs of the cases: an agent has a name (its system prompt), a completion none."""
    tools = ",".join(tool.name for tool in request.tools)
    if request.system is not None:
        return f"{request.system}({request.prompt})" + (f" tools={tools}" if tools else "")
    return f"[{request.provider}:{request.model} t={request.temperature}] {request.prompt}"


def _covalt_here(seen: ConvertedRun, types: Mapping[str, str], given: Mapping[str, Any]) -> _Json:
    """Return what nodes of the graph gave by running, as that engine wraps it."""
    ran = {node: out for node, out in seen.outputs.items() if node in types and node not in given}
    ended = {
        node: state.status
        for node, state in seen.state.nodes.items()
        if node in types and node not in given and state.status in ("completed", "failed")
    }
    return {
        "refused": seen.refusal_codes,
        "outputs": {
            node: {
                _handle(handle): _wrapped(types[node], _as_recorded(value))
                for handle, value in out.items()
                if types[node] != "chat-start" or handle == "output"
            }
            for node, out in ran.items()
            if "error" not in out
        },
        "ended": ended,
    }


def _covalt_recorded(expected: _Json, types: Mapping[str, str]) -> _Json:
    message = expected["exception"] or ""
    ends = {"completed": "completed", "error": "failed"}
    # A chosen model is no step here: it is materialized for the node that uses it.
    steps = {node for node, kind in types.items() if kind != "model-selector"}
    return {
        "refused": [code for words, code in _REFUSALS.items() if words in message],
        "outputs": {
            node: {handle: each["value"] for handle, each in out.items()}
            for node, out in expected["outputs"].items()
            if node in steps
        },
        "ended": {
            node: ends[kind]
            for node, kind, _ in expected["events"]
            if kind in ends and node in steps
        },
    }


def _as_recorded(value: Any) -> Any:
    """Return a message of a chat without what is new here: its ids, and itself as the last message."""
    if not isinstance(value, dict):
        return value
    kept = {name: _as_recorded(v) for name, v in value.items() if name not in _IDS}
    if "runtime_messages" in kept:
        *kept["runtime_messages"], own = kept["runtime_messages"]
        assert own == {"role": "user", "content": kept["message"]}
    return kept


def _handle(handle: str) -> str:
    return {"condition-0": "true"}.get(handle, handle)


def _wrapped(kind: str, value: Any) -> Any:
    match kind:
        case "agent":
            return {"response": value}
        case "llm-completion":
            return {"text": value}
        case _:
            return value
