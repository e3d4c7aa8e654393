from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import (
    LINK,
    Edge,
    Graph,
    Node,
    Policy,
    Port,
    Retry,
)
from planwave.nodes.authoring.node_type import NodeType
from planwave.nodes.checking import node_view
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.text import TextData
from planwave.nodes.registry import Registry
from planwave.providers.protocols import ModelProfile
from planwave.settings import Limits
from tests.support.graph.builders import make_edge
from tests.support.llm.fake_providers import ListedProviders

PROVIDERS = ListedProviders(
    {"openai": ["m"], "anthropic": ["c"], "local": ["tiny"]},
    off=["anthropic"],
    profiles={"tiny": ModelProfile(small=True, tools=False)},
)
SEARCHING = Registry(
    LIBRARY,
    providers=ListedProviders(
        {"box": ["big"], "openai": ["m"], "local": ["tiny"]},
        profiles={"big": ModelProfile(web_search=True), "tiny": ModelProfile(tools=False)},
    ),
)
CATALOGUE = Registry(LIBRARY, providers=PROVIDERS, limits=Limits(template_bytes=1_000))


def check(
    node_type: str,
    data: dict[str, Any],
    *,
    description: str = "",
    edges: Sequence[Edge] = (),
    others: Sequence[Node] = (),
    catalogue: Registry = CATALOGUE,
) -> list[Diagnostic]:
    node = Node("a", node_type, "A", description, data)
    return list(catalogue.check(node, Graph((node, *others), tuple(edges))))


def found(*args: Any, **options: Any) -> list[tuple[str, str]]:
    return [(d.code, d.pointer) for d in check(*args, **options)]


LLM = {"provider": "openai", "model": "m", "prompt": "p"}


def test_a_valid_node_has_no_findings() -> None:
    assert check("llm", LLM) == []
    assert check("agent", {}, description="Do it") == []
    assert check("start", {}) == []


@pytest.mark.parametrize(
    ("data", "code", "pointer"),
    [
        ({**LLM, "provider": "gpt9000"}, "unknown-provider", "/data/provider"),
        ({**LLM, "provider": "anthropic"}, "unavailable-provider", "/data/provider"),
        ({**LLM, "model": "zzz"}, "unknown-model", "/data/model"),
        ({**LLM, "model": ""}, "invalid-data", "/data/model"),
        ({**LLM, "retries": 100_000}, "invalid-data", "/data/retries"),
        ({**LLM, "stream": "yes"}, "invalid-data", "/data/stream"),
        ({**LLM, "temperature": float("inf")}, "invalid-data", "/data/temperature"),
        ({**LLM, "maxTokens": 0}, "invalid-data", "/data/maxTokens"),
    ],
)
def test_invalid_llm_data_are_found(data: dict[str, Any], code: str, pointer: str) -> None:
    (diagnostic,) = check("llm", data)
    assert (diagnostic.code, diagnostic.pointer) == (code, pointer)
    assert (diagnostic.severity, diagnostic.node) == ("error", "a")
    assert diagnostic.message.startswith("node 'a': ")


def test_all_errors_of_the_data_are_reported_together() -> None:
    data = {"operator": 1, "conditions": [{"operator": "is", "value": "x"}, {"operator": "equal"}]}
    assert found("if", data) == [
        ("invalid-data", "/data/conditions/0/operator"),
        ("invalid-data", "/data/conditions/1/value"),
        ("invalid-data", "/data/operator"),
    ]


@pytest.mark.parametrize(
    ("node_type", "name", "hint"),
    [
        ("agent", "max_tokens", "did you mean 'maxTokens'?"),
        ("agent", "userPromt", "did you mean 'userPrompt'?"),
        ("text", "zzzzzz", "fields of 'text': text"),
        ("end", "x", "type 'end' has no data fields: take it out"),
        ("agent", "a/b~c", "fields of 'agent': systemPrompt, userPrompt, messages, provider, "
         "model, temperature, reasoningEffort, maxTokens, fallback, tools, images, outputSchema, "
         "maxSteps, parallelTools, approval, delegate, caller, agentName"),
    ],
)  # fmt: skip
def test_an_unknown_field_gets_a_suggestion(node_type: str, name: str, hint: str) -> None:
    first = check(node_type, {name: 1, **({"text": "t"} if node_type == "text" else {})})[0]
    assert first.code == "invalid-data"
    assert first.pointer == "/data/" + name.replace("~", "~0").replace("/", "~1")
    assert first.hint == hint


def test_misspelt_ids_of_a_large_graph_get_a_bounded_number_of_suggestions() -> None:
    nodes = [
        Node(f"n{i}", "text", "N", data={"text": f"{{{{ nodes.n{i}x.output }}}}"})
        for i in range(100)
    ]
    graph = Graph(tuple(nodes), ())
    hints = [d.hint for node in nodes for d in CATALOGUE.check(node, graph)]
    assert len(hints) == 100
    assert sum("did you mean" in (hint or "") for hint in hints) == 20


@pytest.mark.parametrize("channel", ["flow", "link"])
def test_a_required_field_may_be_set_by_a_wire(channel: Any) -> None:
    assert found("text", {}) == [("missing-required-input", "/data/text")]
    wire = make_edge("s", "a", target_handle="text", channel=channel)
    assert check("text", {}, edges=[wire]) == []
    assert found("text", {}, edges=[make_edge("s", "a")]) == [
        ("missing-required-input", "/data/text")
    ]


@pytest.mark.parametrize(
    ("node_type", "prompt", "other"),
    [("agent", "userPrompt", "systemPrompt"), ("llm", "prompt", "system")],
)
def test_a_model_call_needs_a_prompt_or_an_input(node_type: str, prompt: str, other: str) -> None:
    def codes(data: dict[str, Any], handle: str | None = None) -> list[str]:
        edges = [] if handle is None else [make_edge("s", "a", target_handle=handle)]
        return [code for code, _ in found(node_type, data, edges=edges)]

    assert codes({}) == ["missing-required-input"]
    assert codes({prompt: " \n"}) == ["missing-required-input"]
    assert codes({}, other) == ["missing-required-input"]
    assert codes({}, "input") == codes({prompt: ""}, "input") == codes({}, prompt) == []


@pytest.mark.parametrize("node_type", ["agent", "llm"])
def test_more_tokens_than_the_limit_of_a_call_are_found(node_type: str) -> None:
    few = Registry(LIBRARY, limits=Limits(call_tokens=500))
    prompt = {"prompt": "p"} if node_type == "llm" else {"userPrompt": "p"}
    assert check(node_type, {**prompt, "maxTokens": 500}, catalogue=few) == []
    (diagnostic,) = check(node_type, {**prompt, "maxTokens": 501}, catalogue=few)
    assert (diagnostic.code, diagnostic.pointer) == ("limit-exceeded", "/data/maxTokens")
    assert "limit call_tokens is 500, met 501" in diagnostic.message
    assert diagnostic.hint == "make it smaller or raise the limit call_tokens"
    huge = {**prompt, "maxTokens": 10**12}
    assert check(node_type, huge, catalogue=Registry(LIBRARY)) == []
    assert [d.code for d in check(node_type, huge)] == ["limit-exceeded"]


@pytest.mark.parametrize("node_type", ["text", "end", "unheard-of"])
def test_a_policy_over_the_limits_is_found_for_any_type(node_type: str) -> None:
    policy = Policy(timeout_s=86_401, retry=Retry(11, 601))
    node = Node("a", node_type, "A", data={"text": "t"} if node_type == "text" else {})
    node = node._replace(policy=policy)
    graph = Graph((node,), ())
    for catalogue in (CATALOGUE, Registry(LIBRARY)):  # the second one has no limits of a service
        assert [(d.code, d.pointer) for d in catalogue.check(node, graph)] == [
            ("limit-exceeded", "/policy/timeoutS"),
            ("limit-exceeded", "/policy/retry/attempts"),
            ("limit-exceeded", "/policy/retry/backoffS"),
        ]
    at_most = node._replace(policy=Policy(timeout_s=86_400, retry=Retry(10, 600)))
    assert list(CATALOGUE.check(at_most, Graph((at_most,), ()))) == []


def test_a_registry_with_other_providers_has_the_given_limits() -> None:
    other = Registry(LIBRARY).with_providers(PROVIDERS, limits=Limits(call_tokens=1))
    assert [d.code for d in check("llm", {**LLM, "maxTokens": 2}, catalogue=other)] == [
        "limit-exceeded"
    ]


def test_a_wired_provider_is_not_looked_up() -> None:
    wire = make_edge("s", "a", target_handle="provider")
    assert check("llm", {**LLM, "provider": "gpt9000"}, edges=[wire]) == []


def test_the_default_provider_is_checked_for_nodes_that_name_none() -> None:
    for default, codes in [("openai", []), ("anthropic", ["unavailable-provider"])]:
        catalogue = Registry(LIBRARY).with_providers(PROVIDERS, default_provider=default)
        diagnostics = check("agent", {}, description="d", catalogue=catalogue)
        assert [d.code for d in diagnostics] == codes


@pytest.mark.parametrize("node_type", ["agent", "llm", "model", "client"])
@pytest.mark.parametrize(
    ("choice", "code", "pointer"),
    [
        ({"provider": "gpt9000"}, "unknown-provider", "/provider"),
        ({"provider": "anthropic"}, "unavailable-provider", "/provider"),
        ({"provider": "openai", "model": "z"}, "unknown-model", "/model"),
        ({"provider": "openai"}, "duplicate-fallback", ""),
        ({"provider": "local"}, "duplicate-fallback", ""),
        ({}, "invalid-data", ""),
        ({"provider": "local", "url": "x"}, "invalid-data", "/url"),
    ],
)
def test_each_fallback_is_checked_as_the_model_of_the_node(
    node_type: str, choice: dict[str, str], code: str, pointer: str
) -> None:
    data = {"model": "m", "fallback": [{"model": "tiny", "provider": "local"}, choice]}
    prompts = {"agent": {"userPrompt": "p"}, "llm": {"prompt": "p"}}
    (finding,) = check(node_type, {**data, **prompts.get(node_type, {})})
    assert (finding.code, finding.pointer) == (code, f"/data/fallback/1{pointer}")
    assert finding.severity == ("warning" if code == "duplicate-fallback" else "error")
    assert finding.suggestion is None


def test_a_wired_fallback_is_not_looked_up() -> None:
    wire = make_edge("s", "a", target_handle="fallback")
    assert check("llm", {**LLM, "fallback": [{"provider": "gpt9000"}]}, edges=[wire]) == []


def test_without_providers_no_model_is_looked_up() -> None:
    data = {**LLM, "provider": "gpt9000", "fallback": [{"provider": "gpt9001"}]}
    assert check("llm", data, catalogue=Registry(LIBRARY)) == []


def test_tools_that_the_model_cannot_use_are_an_error() -> None:
    link = make_edge("t", "a", target_handle="tools", channel="link")
    (diagnostic,) = check("agent", {"provider": "local"}, description="d", edges=[link])
    assert (diagnostic.code, diagnostic.pointer) == ("tools-unavailable", "/data/model")
    assert check("agent", {"provider": "openai"}, description="d", edges=[link]) == []


def test_a_fallback_that_lacks_what_the_agent_needs_is_an_error() -> None:
    link = make_edge("t", "a", target_handle="tools", channel="link")
    data = {"provider": "box", "fallback": [{"provider": "openai"}, {"provider": "local"}]}
    assert found("agent", data, description="d", edges=[link], catalogue=SEARCHING) == [
        ("tools-unavailable", "/data/fallback/1")
    ]
    searching = {**data, "tools": {"web_search": True}}
    assert found("agent", searching, description="d", catalogue=SEARCHING) == [
        ("web-search-unavailable", "/data/fallback/0"),
        ("web-search-unavailable", "/data/fallback/1"),
    ]


@pytest.mark.parametrize("kind", ["model", "client"])
def test_a_linked_model_that_lacks_what_the_agent_needs_is_an_error(kind: str) -> None:
    fallback = [{"provider": "openai"}]
    for given, code, what in (
        ({"provider": "local"}, "tools-unavailable", "the chosen model of 'm'"),
        ({"provider": "local"}, "web-search-unavailable", "the chosen model of 'm'"),
        ({"provider": "box", "fallback": fallback}, "web-search-unavailable", "the fallback 1"),
    ):
        model = Node("m", kind, "M", data=given)
        edges = [make_edge("m", "a", target_handle="model", channel="link")]
        data: dict[str, Any] = {"tools": {"web_search": code != "tools-unavailable"}}
        if code == "tools-unavailable":
            edges.append(make_edge("t", "a", target_handle="tools", channel="link"))
        (finding,) = check(
            "agent", data, description="d", edges=edges, others=[model], catalogue=SEARCHING
        )
        assert finding.code == code
        assert what in finding.message
        overridden = [*edges, make_edge("s", "a", target_handle="provider")]
        options: dict[str, Any] = {"others": [model], "catalogue": SEARCHING}
        assert found("agent", data, description="d", edges=overridden, **options) == []


def test_web_search_that_the_provider_does_not_have_is_an_error() -> None:
    data = {"provider": "local", "tools": {"web_search": True}}
    (diagnostic,) = check("agent", data, description="d")
    assert (diagnostic.code, diagnostic.pointer) == (
        "web-search-unavailable", "/data/tools/web_search"
    )  # fmt: skip
    assert check("agent", {**data, "tools": {"web_search": False}}, description="d") == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{{ input", "template-syntax"),
        ("{% include 'x' %}", "template-forbidden"),
        ("x" * 1_001, "template-too-large"),
        ("{{ secrets.KEY }}", "template-undefined"),
        ("{{ secrets.KEY | default('') }}", "template-undefined"),
        ("{{ topic }}", "template-undefined"),
    ],
)
def test_invalid_templates_are_found_with_their_pointer(text: str, code: str) -> None:
    assert found("parser", {"template": text})[0][0] == code
    nested = found("parser", {"template": {"k": ["fine", text]}})
    assert nested[0][0] == code
    assert nested[0][1].startswith("/data/template")


def test_an_undefined_name_is_reported_with_the_available_names() -> None:
    edges = [make_edge("s", "a", target_handle="theme"), make_edge("s", "a")]
    (diagnostic,) = check("parser", {"template": "{{ topic }}"}, edges=edges)
    assert diagnostic.pointer == "/data/template"
    assert diagnostic.hint == (
        "a template may use: input, inputs, nodes, trigger, goal, PREVIOUS_OUTPUT, theme"
    )


@pytest.mark.parametrize(
    ("name", "near"), [("inptu", "input"), ("gaol", "goal"), ("them", "theme")]
)
def test_a_misspelt_name_comes_with_the_closest_one(name: str, near: str) -> None:
    edges = [make_edge("s", "a", target_handle="theme"), make_edge("s", "a")]
    (diagnostic,) = check("parser", {"template": f"{{{{ {name} }}}}"}, edges=edges)
    assert str(diagnostic.hint).startswith(f"did you mean {near!r}? a template may use: input, ")


def test_input_handles_are_variables() -> None:
    wire = make_edge("s", "a", target_handle="topic")
    assert check("parser", {"template": "{{ topic }} {{ input }}"}, edges=[wire]) == []
    link = make_edge("s", "a", target_handle="topic", channel=LINK)
    assert found("parser", {"template": "{{ topic }}"}, edges=[link]) == [
        ("template-undefined", "/data/template")
    ]


def test_a_computed_node_id_is_not_checked() -> None:
    edges = [make_edge("s", "a")]
    assert check("parser", {"template": "{{ nodes[input].output }}"}, edges=edges) == []


@pytest.mark.parametrize(
    "text",
    [
        "{{ topic | default('x') }}",
        "{{ topic | d('x') }}",
        "{{ input | default('x') }}",
        "{{ inputs.topic | default('x') }}",
        "{% if topic is defined %}{{ topic }}{% endif %}",
        "{{ PREVIOUS_OUTPUT }}",
        "{{ inputs }}",
    ],
)
def test_a_guarded_name_is_no_error(text: str) -> None:
    assert check("parser", {"template": text}) == []


@pytest.mark.parametrize(
    "text", ["the default is {{ topic }}", "{{ input | default('x') }} {{ topic }}"]
)
def test_a_guard_elsewhere_does_not_hide_an_undefined_name(text: str) -> None:
    assert found("parser", {"template": text}) == [("template-undefined", "/data/template")]


def test_an_input_without_an_edge_is_found() -> None:
    assert found("text", {"text": "{{ input }}"}) == [("template-undefined", "/data/text")]
    link = make_edge("s", "a", channel=LINK)
    assert found("text", {"text": "{{ input }}"}, edges=[link])[0][0] == "template-undefined"
    at_topic = [make_edge("s", "a", target_handle="topic")]
    assert check("parser", {"template": "{{ inputs.topic }} {{ input }}"}, edges=at_topic) == []
    assert found("parser", {"template": "{{ inputs.theme }}"}, edges=at_topic) == [
        ("template-undefined", "/data/template")
    ]


@pytest.mark.parametrize("text", ["{{ range }}", "{{ [range] }}", "{{ '%s' | format(range) }}"])
def test_a_function_that_is_not_called_is_found(text: str) -> None:
    (finding,) = check("text", {"text": text})
    assert (finding.code, finding.message) == (
        "template-undefined",
        "node 'a': 'range' is a function, not a value",
    )
    assert finding.hint == "call it: range(…)"
    assert check("text", {"text": "{{ range(3) }}"}) == []
    edges = [make_edge("s", "a", target_handle="range")]
    assert check("parser", {"template": "{{ [range] }}"}, edges=edges) == []


def test_an_entry_node_may_name_its_input() -> None:
    class Door(NodeType):
        node_type = "door"
        Data = TextData
        entry = True

        async def run(self, data: Any, inputs: Any, context: Any) -> Any:
            return data.text

    assert check("door", {"text": "{{ input }}"}, catalogue=Registry([Door])) == []


def test_braces_in_fields_without_templates_are_text() -> None:
    assert check("agent", {"agentName": "{{ secrets"}, description="d") == []


@pytest.mark.parametrize(("kind", "field"), [("agent", "systemPrompt"), ("llm", "system")])
def test_a_system_prompt_is_checked_as_every_template(kind: str, field: str) -> None:
    prompt = {"agent": "userPrompt", "llm": "prompt"}[kind]
    for text, code in (
        ("{{ secrets.key }}", "template-undefined"),
        ("{{ nodes.gone.output }}", "not-an-ancestor"),
        ("{{ open", "template-syntax"),
    ):
        (found,) = check(kind, {prompt: "Hi", field: text})
        assert (found.code, found.pointer) == (code, f"/data/{field}")


def _chain(*ids: str) -> dict[str, Any]:
    return {
        "edges": [make_edge(s, t) for s, t in itertools.pairwise(ids)],
        "others": [Node(i, "text", i) for i in ids if i != "a"],
    }


def test_a_template_may_read_ancestors() -> None:
    for name in ("x", "y", "z"):
        data = {"text": f'{{{{ nodes["{name}"].output }}}}'}
        assert check("text", data, **_chain("x", "y", "z", "a")) == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("after", "connect 'after' (directly or through others) to 'a'"),
        ("a", "connect 'a' (directly or through others) to 'a'"),
        ("befor", "did you mean 'before'?"),
        ("qqq", "name a node that leads here"),
    ],
)
def test_a_template_that_reads_another_node_is_an_error(name: str, hint: str) -> None:
    data = {"text": f"{{{{ nodes.{name}.output }}}}"}
    (diagnostic,) = check("text", data, **_chain("before", "a", "after"))
    assert (diagnostic.code, diagnostic.hint) == ("not-an-ancestor", hint)
    assert diagnostic.pointer == "/data/text"


BRANCH = {"conditions": [{"operator": "equal", "value": "x"}]}


class Sorter(NodeType):
    node_type = "sorter"
    outputs = (Port("{name}"),)

    async def run(self, data: Any, inputs: Any, context: Any) -> Any: ...


class Bare:
    """Declares no outputs at all, so it has ``output``."""

    node_type = "bare"
    outputs = ()

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any: ...


def _reads(text: str, source: Node) -> list[Diagnostic]:
    """Check a text that reads an earlier node."""
    catalogue = Registry([*LIBRARY, Sorter, Bare()])
    edges = [make_edge("x", "a")]
    return check("text", {"text": text}, edges=edges, others=[source], catalogue=catalogue)


@pytest.mark.parametrize(
    ("source", "text", "there_are", "hint"),
    [
        (Node("x", "if", "X", data=BRANCH), "{{ nodes.x.output }}", "condition-{i}, false",
         'name one of them, as in nodes["x"]["condition-0"]'),
        (Node("x", "if", "X", data=BRANCH), "{{ nodes.x.flase ~ '' }}", "condition-{i}, false",
         "did you mean 'false'?"),
        (Node("x", "if", "X", data=BRANCH), "{{ nodes.x['condition-x'] }}", "condition-{i}, false",
         'name one of them, as in nodes["x"]["condition-0"]'),
        (Node("x", "text", "X"), "{{ nodes.x.text | upper }}", "output",
         'name one of them, as in nodes["x"]["output"]'),
        (Node("x", "bare", "X"), "{{ nodes.x.result }}", "output",
         'name one of them, as in nodes["x"]["output"]'),
        (Node("x", "text", "X"), "{{ nodes.x.error }}", "output",
         "give 'x' the policy \"onError\": \"continue\""),
        (Node("x", "sorter", "X"), "{{ nodes.x.error }}", "{name}",
         "give 'x' the policy \"onError\": \"continue\""),
    ],
)  # fmt: skip
def test_a_template_that_reads_an_undeclared_output_is_an_error(
    source: Node, text: str, there_are: str, hint: str
) -> None:
    (diagnostic,) = _reads(text, source)
    assert (diagnostic.code, diagnostic.severity) == ("unknown-handle", "error")
    assert (diagnostic.pointer, diagnostic.hint) == ("/data/text", hint)
    assert "node 'x'" in diagnostic.message
    assert f"its outputs are: {there_are}" in diagnostic.message


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (Node("x", "if", "X", data=BRANCH), "{{ nodes.x['condition-0'] }}{{ nodes.x.false }}"),
        (Node("x", "if", "X", data=BRANCH), "{{ nodes.x.output | default('none') }}"),
        (Node("x", "if", "X", data=BRANCH), "{% if nodes.x.output is defined %}y{% endif %}"),
        (Node("x", "if", "X", data=BRANCH), "{{ nodes.x }}{{ nodes.x | length }}"),
        (Node("x", "if", "X", data=BRANCH), "{{ nodes.x[input] ~ nodes.x.get('output', '') }}"),
        (Node("x", "sorter", "X"), "{{ nodes.x.anything }}"),
        (Node("x", "bare", "X"), "{{ nodes.x.output.deep[0] }}"),
        (Node("x", "text", "X", policy=Policy(on_error="continue")), "{{ nodes.x.error.code }}"),
        (Node("x", "unheard-of", "X"), "{{ nodes.x.anything }}"),
    ],
)
def test_a_template_that_reads_a_possible_output_is_no_error(source: Node, text: str) -> None:
    assert _reads(text, source) == []


def test_the_search_for_ancestors_ends_in_a_cycle() -> None:
    data = {"text": "{{ nodes.after.output }}"}
    assert found("text", data, **_chain("x", "y", "x", "a", "after")) == [
        ("not-an-ancestor", "/data/text")
    ]


def test_a_link_does_not_make_an_ancestor() -> None:
    edges = [make_edge("x", "a", channel=LINK)]
    data = {"text": '{{ nodes["x"].output }}'}
    assert found("text", data, edges=edges, others=[Node("x", "text", "X")]) == [
        ("not-an-ancestor", "/data/text")
    ]


def test_the_flow_sources_of_a_linked_node_are_ancestors_of_its_consumers() -> None:
    edges = [make_edge("x", "tool"), make_edge("tool", "a", channel=LINK)]
    others = [Node(i, "text", i) for i in ("x", "tool", "y")]
    for name, codes in [("x", []), ("tool", ["not-an-ancestor"])]:
        data = {"text": f"{{{{ nodes.{name}.output }}}}"}
        assert [c for c, _ in found("text", data, edges=edges, others=others)] == codes
    edges.append(make_edge("tool", "y"))
    data = {"text": "{{ nodes.x.output }}"}
    assert found("text", data, edges=edges, others=others) == [("not-an-ancestor", "/data/text")]


def test_the_search_for_ancestors_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_view, "_MAX_WALK_STEPS", 2)
    data = {"text": '{{ nodes["far"].output }}'}
    others = _chain("x", "y", "z", "a")
    others["others"].append(Node("far", "text", "Far"))
    assert check("text", data, **others) == []


def test_data_are_checked_again_after_their_type_was_replaced() -> None:
    class OwnData(BaseModel):
        built: int = 0

    class Before(Bare):
        Data = OwnData

    catalogue = Registry([Before()])
    data = {"built": "x"}
    assert found("bare", data, catalogue=catalogue) == [("invalid-data", "/data/built")]
    catalogue.register(Bare(), replace=True)
    assert check("bare", data, catalogue=catalogue) == []


def test_the_cache_of_checks_is_bounded() -> None:
    catalogue = Registry(LIBRARY)
    for i in range(5_000):
        assert check("text", {"text": str(i)}, catalogue=catalogue) == []
    assert len(catalogue._checks._cache) <= 4_096
    assert check("text", {"text": "x" * 5_000}, catalogue=catalogue) == []
    assert all(len(key[1]) <= 4_096 for key in catalogue._checks._cache)


@pytest.mark.parametrize(
    ("node_type", "field", "wrong"),
    [("number", "value", "5"), ("boolean", "value", "yes"), ("switch", "cases", "a")],
)
def test_a_field_of_another_type_than_text_may_hold_a_template(
    node_type: str, field: str, wrong: str
) -> None:
    assert found(node_type, {field: "{{ goal }}"}) == []
    assert found(node_type, {field: "{% if goal %}1{% endif %}"}) == []
    assert found(node_type, {field: wrong}) == [("invalid-data", f"/data/{field}")]
    assert found(node_type, {field: "{{ nobody }}"}) == [("template-undefined", f"/data/{field}")]
    assert found(node_type, {}) == [("missing-required-input", f"/data/{field}")]


def test_a_field_without_templates_rejects_a_template() -> None:
    assert found("llm", {**LLM, "temperature": "{{ goal }}"}) == [
        ("invalid-data", "/data/temperature")
    ]
