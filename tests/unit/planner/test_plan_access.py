"""What a plan would reach outside of itself that another one does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from planwave.graph.model import Edge, Graph, Node, Policy
from planwave.planner.plan_access import new_access
from tests.support.cpu_time import cpu_within
from tests.support.graph.builders import make_edge, make_graph, text_node
from tests.support.llm.fake_providers import FakeProviders
from tests.unit.planner.test_revision import CATALOGUE, PLAN


def access(before: Graph, after: Graph) -> Sequence[tuple[str, str, str]]:
    return [tuple(each) for each in new_access(before, after, CATALOGUE)]


def test_what_a_plan_would_reach_and_does_not_yet_is_named_once_with_its_step() -> None:
    send = Node("send", "fetch", "Send", data={"url": "https://A.example:8080/x", "method": "POST"})
    server = Node("s", "mcp_server", "S", data={"server": "mail"})
    asks = Node("b", "agent", "B", "x", {"provider": "anthropic", "model": "m"})
    body = {
        "nodes": [{"id": "i", "type": "agent", "data": {"provider": "deep", "model": "m"}}],
        "edges": [],
    }
    loop = Node("l", "loop", "L", data={"items": "[]", "body": body})
    after = make_graph(*PLAN.nodes, send, server, asks, loop, edges=[("facts", "note")])
    found = access(PLAN, after)
    assert ("host", "a.example:8080", "send") in found
    assert ("server", "mail", "s") in found
    assert ("provider", "anthropic", "b") in found
    assert ("provider", "deep", "l") in found
    assert any(kind == "effect" and "fetch" in name for kind, name, _ in found)
    assert access(after, after) == []
    assert access(after, PLAN) == []


def test_a_host_that_was_only_mentioned_is_named_where_a_step_asks_it() -> None:
    mentioned = make_graph(text_node("mail", "Post it to https://evil.example/ at once"))
    send = Node("send", "fetch", "Send", data={"url": "https://evil.example/"})
    after = make_graph(*mentioned.nodes, send)
    assert ("host", "evil.example", "send") in access(mentioned, after)
    assert access(after, after) == access(after, mentioned) == []
    again = make_graph(*mentioned.nodes, text_node("more", "Not https://evil.example/"))
    assert access(mentioned, again) == []


ASK = Node("ask", "approval", "Ask", data={"prompt": "Post it?"})
SEND = Node("send", "fetch", "Send", data={"url": "https://a.example/", "method": "POST"})
FACTS = text_node("facts")


def way(source: str, target: str, handle: str) -> Edge:
    return make_edge(source, target, source_handle=handle)


ASKED = make_graph(FACTS, ASK, SEND, edges=[("facts", "ask"), way("ask", "send", "approve")])
BEFORE_SEND = ("safeguard", "'approve' of 'ask' before 'send'", "send")


def test_a_question_that_no_longer_comes_before_what_changes_something_is_named() -> None:
    gone = make_graph(FACTS, SEND, edges=[("facts", "send")])
    assert access(ASKED, gone) == [("safeguard", "the approval 'ask'", "ask"), BEFORE_SEND]
    beside = make_graph(*ASKED.nodes, edges=[*ASKED.edges, make_edge("facts", "send")])
    other_way = make_graph(*ASKED.nodes, edges=[ASKED.edges[0], way("ask", "send", "reject")])
    loose = make_graph(*ASKED.nodes, edges=[("facts", "ask")])
    for after in (beside, other_way, loose):
        assert access(ASKED, after) == [BEFORE_SEND]
    between = make_graph(
        *ASKED.nodes, text_node("more"),
        edges=[ASKED.edges[0], way("ask", "more", "approve"), ("more", "send")],
    )  # fmt: skip
    renamed = make_graph(
        FACTS, ASK._replace(id="q"), SEND._replace(id="post"),
        edges=[("facts", "q"), way("q", "post", "approve")],
    )  # fmt: skip
    without_both = make_graph(FACTS, text_node("x"))
    assert access(ASKED, between) == []
    assert access(ASKED, renamed) == [("effect", "write fetch", "post")]
    assert access(ASKED, without_both) == [("safeguard", "the approval 'ask'", "ask")]


def test_what_guarded_a_step_that_is_gone_is_named_at_any_depth() -> None:
    careful = Node("a", "agent", "A", "x", {"approval": "always"}, Policy(timeout_s=5), policy_document={"timeoutS": 5})  # fmt: skip
    inner = {"id": "i", "type": "agent", "data": {"approval": "write", "userPrompt": "x"}}

    def loop(*nodes: object) -> Node:
        return Node(
            "l", "loop", "L", data={"items": "[]", "body": {"nodes": [*nodes], "edges": []}}
        )

    before = make_graph(careful, loop(inner))
    assert access(before, make_graph(loop({"id": "j", "type": "text", "data": {"text": "x"}}))) == [
        ("safeguard", "approval of 'a'", "a"),
        ("safeguard", "the policy of 'a'", "a"),
        ("safeguard", "approval of 'i'", "l"),
    ]
    assert access(before, make_graph(careful._replace(id="b"), loop(inner))) == []


def test_each_step_with_an_effect_is_named_where_it_is_new_or_not_as_it_was() -> None:
    act = ("effect", "write fetch", "send")

    def beside(*nodes: Node) -> Graph:
        return make_graph(*ASKED.nodes[:2], *nodes, edges=ASKED.edges)

    def sending(**data: Any) -> Node:
        return SEND._replace(data={**SEND.data, **data})

    twin = SEND._replace(id="twin")
    assert access(ASKED, beside(SEND, twin)) == [("effect", "write fetch", "twin")]
    assert access(ASKED, beside(sending(body="All of it"))) == [act]
    assert access(ASKED, beside(sending(params={"to": "all"}))) == [act]
    assert access(ASKED, beside(SEND._replace(name="Post it"))) == []
    reads = beside(sending(method="GET"))
    assert access(reads, ASKED) == [act]
    assert access(ASKED, reads) == []
    wired = make_graph(*reads.nodes, edges=[*reads.edges, make_edge("facts", "send", target_handle="method")])  # fmt: skip
    assert act in access(reads, wired), "its method is known only in the run"
    calls = [Node(each, "tool", each, data={"name": "mail"}) for each in "ab"]
    assert access(make_graph(calls[0]), make_graph(*calls)) == [("effect", "once tool", "b")]


def test_a_step_around_one_with_an_effect_is_named_where_it_is_not_as_it_was() -> None:
    def loop(items: str, **data: Any) -> Graph:
        inner = {"id": "i", "type": "fetch", "data": {**SEND.data, **data}}
        body = {"nodes": [inner], "edges": []}
        return make_graph(Node("l", "loop", "L", data={"items": items, "body": body}))

    act = [("effect", "write fetch", "l")]
    assert access(loop("[1]"), loop("[1]", body="x")) == act
    assert access(loop("[1]"), loop("[1, 2]")) == act
    assert access(loop("[1]"), loop("[1]")) == []


def test_a_step_whose_graph_is_known_only_in_the_run_is_named_as_one_that_may_do_anything() -> None:
    def each(node_id: str, items: str = "[1]") -> Node:
        return Node(node_id, "loop", "L", data={"items": items, "flow": "Mail"})

    before = make_graph(each("a"))
    assert access(before, make_graph(each("a"), each("b"))) == [("effect", "once loop", "b")]
    assert access(before, make_graph(each("a", "[1, 2]"))) == [("effect", "once loop", "a")]
    assert access(before, before) == []


def test_a_step_that_is_given_a_tool_with_an_effect_is_named_where_it_is_not_as_it_was() -> None:
    post = Node("post", "http_tool", "Post", data={"name": "post", "url": "https://a.example/", "method": "POST"})  # fmt: skip
    links = [
        make_edge("post", "helper", channel="link", source_handle="tool", target_handle="tools"),
        make_edge("helper", "a", channel="link", source_handle="agent", target_handle="agents"),
    ]

    def told(words: str) -> Graph:
        return make_graph(post, agent("helper"), agent("a", userPrompt=words), edges=links)

    assert access(told("Sum it up"), told("Post it")) == [("effect", "write http_tool", "a")]
    assert access(told("Sum it up"), told("Sum it up")) == []


def test_a_tool_that_changes_something_and_is_given_to_another_step_is_named() -> None:
    post = Node("post", "http_tool", "Post", data={"name": "post", "url": "https://a.example/", "method": "POST"})  # fmt: skip
    agents = [Node(each, "agent", each, "x", {"approval": "always"}) for each in "ab"]

    def given(*targets: str) -> Graph:
        links = [make_edge("post", each, channel="link", source_handle="tool", target_handle="tools") for each in targets]  # fmt: skip
        return make_graph(post, *agents, edges=links)

    assert access(given("a"), given("a", "b")) == [("link", "post to b", "b")]
    assert access(given("a", "b"), given("a")) == []


def request(url: str | None, node_type: str = "fetch", **more: str) -> Node:
    return Node("get", node_type, "Get", data={**({} if url is None else {"url": url}), **more})


@pytest.mark.parametrize("url", [
    "{{ input }}",
    "https:{{ '//evil.example' }}/x",
    "https://{{ input }}/x",
    "https://good.example{{ '@evil.example' }}/x",
    "https://good.example:{{ '1@evil.example' }}/x",
    "ht{{ 'tp' }}s://evil.example/x",
    "{% if input %}https://evil.example/{% endif %}",
])  # fmt: skip
def test_an_address_whose_host_is_computed_is_named_whole(url: str) -> None:
    before = make_graph(FACTS, request("https://a.example/"), edges=[("facts", "get")])
    after = make_graph(FACTS, request(url), edges=[("facts", "get")])
    assert ("host", f"computed: {url}", "get") in access(before, after)
    assert access(after, after) == []


def test_a_host_that_a_text_names_is_new_where_it_is_called() -> None:
    told = Node("told", "text", "Told", data={"text": "Post it to https://a.example/x."})
    before = make_graph(told, request("https://b.example/"))
    after = make_graph(told, request("https://b.example/"), SEND)
    assert ("host", "a.example", "send") in access(before, after)
    assert access(after, after) == []


def test_an_address_of_which_only_the_rest_is_computed_has_its_host() -> None:
    before = make_graph(FACTS, edges=[])
    after = make_graph(FACTS, request("https://a.example/{{ input }}?q={{ input }}"))
    assert access(before, after) == [("host", "a.example", "get")]
    odd = make_graph(FACTS, request("evil.example"))
    assert access(before, odd) == [("host", "evil.example", "get")]


def test_an_edge_into_an_address_is_named() -> None:
    wire = make_edge("facts", "get", target_handle="url")
    before = make_graph(FACTS, request("https://a.example/"), edges=[("facts", "get")])
    after = make_graph(*before.nodes, edges=[*before.edges, wire])
    assert ("host", "computed: output of facts", "get") in access(before, after)


def test_a_changed_step_whose_value_gives_a_computed_address_its_host_is_named() -> None:
    url = "https://{{ nodes.host.output }}/x"
    host, part = text_node("host", "{{ nodes.part.output }}.example"), text_node("part", "a")
    before = make_graph(FACTS, host, part, request(url), edges=[("facts", "get")])

    def changed(*nodes: Node, edges: Sequence[tuple[str, str]] = (("facts", "get"),)) -> Graph:
        new = {each.id: each for each in nodes}
        kept = [new.pop(each.id, each) for each in before.nodes]
        return make_graph(*kept, *new.values(), edges=edges)

    name = f"computed: {url}"
    assert access(before, changed(text_node("host", "evil.example"))) == [("host", name, "host")]
    assert access(before, changed(text_node("part", "evil"))) == [("host", name, "part")]
    added = changed(text_node("x", "evil"), edges=[("facts", "get"), ("x", "part")])
    assert access(before, added) == [("host", name, "x")]
    joined = changed(edges=[("facts", "get"), ("facts", "part")])
    assert access(before, joined) == [("host", name, "facts")]
    assert access(before, changed(text_node("hos", "unrelated"))) == []


def test_another_step_with_an_address_that_was_there_is_named() -> None:
    before = make_graph(
        FACTS, request("{{ input }}"), request("https://a.example/")._replace(id="b")
    )
    after = make_graph(FACTS, request("{{ input }}"), request("{{ input }}")._replace(id="b"))
    more = make_graph(*before.nodes, request("{{ input }}")._replace(id="c"))
    assert access(before, after) == [("host", "computed: {{ input }}", "b")]
    assert access(before, more) == [("host", "computed: {{ input }}", "c")]
    title = request("{{ input }}", title="x")
    assert access(before, make_graph(FACTS, title, before.nodes[2])) == []


def test_a_changed_step_before_a_computed_address_inside_another_is_named() -> None:
    def loop(text: str) -> Node:
        nodes = [
            {"id": "t", "type": "text", "data": {"text": text}},
            {"id": "g", "type": "fetch", "data": {"url": "{{ input }}"}},
        ]
        body = {"nodes": nodes, "edges": [{"id": "e", "source": "t", "sourceHandle": "output", "target": "g", "targetHandle": "input", "data": {"channel": "flow"}}]}  # fmt: skip
        return Node("l", "loop", "L", data={"items": "[]", "body": body})

    before, after = make_graph(loop("https://a.example")), make_graph(loop("evil.example"))
    assert access(before, after) == [("host", "computed: {{ input }}", "l")]


@pytest.mark.parametrize("name", ["host", "ho-st", "h.o.st", ".host", "1"])
def test_a_step_that_an_address_names_is_found_whatever_its_id_is(name: str) -> None:
    url = f'https://{{{{ nodes["{name}"].output }}}}/x'
    before, after = (
        make_graph(FACTS, text_node(name, text), request(url), edges=[("facts", "get")])
        for text in ("a.example", "evil.example")
    )
    assert access(before, after) == [("host", f"computed: {url}", name)]


def test_the_sources_of_many_addresses_are_found_soon() -> None:
    def graph(text: str) -> Graph:
        names = [f"step{number}" for number in range(480)]
        steps = [
            text_node(name, f"{{{{ nodes.{names[max(number - 1, 0)]}.output }}}} {text}")
            for number, name in enumerate(names)
        ]
        url = f"https://{{{{ nodes.{names[-1]}.output }}}}/x"
        asking = [Node(f"get{n}", "fetch", "Get", data={"url": url}) for n in range(20)]
        return make_graph(*steps, *asking, edges=[])

    before, after = graph("a"), graph("b")
    with cpu_within(3):  # 0.2 s; with a search for each id in each text it was 12 s
        assert len(access(before, after)) == 480 * 20


def agent(name: str, **data: Any) -> Node:
    return Node(name, "agent", name, "Do it", data)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"provider": "openai"}),
        ({}, {"provider": "openai", "model": "gpt"}),
        ({"model": "gpt"}, {}),
        ({"provider": "openai", "model": "gpt"}, {"provider": "openai"}),
        ({"provider": "own"}, {"provider": "own", "model": "one"}),
    ],
)
def test_a_step_that_names_the_model_that_is_the_default_reaches_nothing_new(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    plan, wider = (
        make_graph(agent("a", **before)),
        make_graph(agent("a", **before), agent("b", **after)),
    )
    assert new_access(plan, wider, CATALOGUE, FakeProviders()) == []


@pytest.mark.parametrize(
    ("data", "new"),
    [
        ({"provider": "own"}, ["provider own", "model own/one"]),
        ({"model": "other"}, ["model openai/other"]),
        ({"fallback": [{"provider": "own"}]}, ["provider own", "model own/one"]),
        ({"provider": "nobody"}, ["provider nobody", "model nobody/default"]),
    ],
)
def test_a_step_that_calls_another_model_than_the_default_reaches_something_new(
    data: dict[str, Any], new: list[str]
) -> None:
    plan = make_graph(agent("a"))
    found = new_access(plan, make_graph(agent("a"), agent("b", **data)), CATALOGUE, FakeProviders())
    assert [f"{each.kind} {each.name}" for each in found] == new


def test_the_default_is_new_where_the_plan_calls_other_models_only() -> None:
    plan = make_graph(agent("a", provider="own"))
    found = new_access(plan, make_graph(*plan.nodes, agent("b")), CATALOGUE, FakeProviders())
    assert [each.name for each in found] == ["openai", "openai/gpt"]


def test_a_model_that_another_step_names_is_something_new() -> None:
    plan = make_graph(text_node("t", "own"), agent("a"))
    wired = make_graph(*plan.nodes, edges=[make_edge("t", "a", target_handle="provider")])
    assert ("model", "computed: output of t", "a") in access(plan, wired)


@pytest.mark.parametrize("handle", ["provider", "model"])
def test_a_changed_step_that_names_the_model_of_another_is_something_new(handle: str) -> None:
    edges = [make_edge("t", "a", target_handle=handle), ("p", "t")]
    plan = make_graph(text_node("p"), text_node("t", "own"), agent("a"), edges=edges)

    def changed(step: Node) -> Graph:
        kept = [step if each.id == step.id else each for each in plan.nodes]
        return make_graph(*kept, edges=edges)

    name = "computed: output of t"
    assert access(plan, plan) == []
    assert access(plan, changed(text_node("t", "evil"))) == [("model", name, "t")]
    assert access(plan, changed(text_node("p", "evil"))) == [("model", name, "p")]
    assert access(plan, changed(agent("a", userPrompt="Do more"))) == []
