"""Flows of Flowise: Agentflow V2, sequential agents and chains; their shared conversation, and what is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.flowise.rich_text import plain_text
from planwave.interop.importing.importer import Imported, import_text
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.flowise_files import (
    data_at,
    import_chain,
    import_steps,
    llm_step,
    notes_of,
    pointers_of,
    remembering_step,
    run_import,
    said_in,
    start_step,
    step_node,
    types_of,
    wire,
)
from tests.support.interop.imports import (
    OWN,
    REAL,
    assert_accounted_for,
    findings_of,
    outcomes,
)

_DESK, _TOURS = (
    json.loads((OWN / "flowise" / f"{name}.json").read_text("utf-8"))
    for name in ("letter_desk", "tours")
)


# -- the files of this project ---------------------------------------------------------------------


def test_a_desk_is_carried_over_whole() -> None:
    imported = import_text(json.dumps(_DESK))
    assert_accounted_for(imported, **pointers_of(_DESK))
    assert imported.report["summary"]["placeholder"] == 0
    assert outcomes(imported)["Sticky Note"] == "dropped"
    assert types_of(imported)["humanInputAgentflow_0"] == "approval"
    sort = data_at(imported, "llmAgentflow_0")
    assert sort["systemPrompt"] == "You sort letters to a **library**.\n\n- loan\n- other"
    assert sort["userPrompt"] == 'Letter: {{ nodes["startAgentflow_0"].message }}'
    assert sort["outputSchema"]["properties"]["topic"]["enum"] == ["loan", "other"]
    assert {(each["what"], each["name"]) for each in imported.report["setup"]} == {
        ("provider", "openai"), ("provider", "anthropic")
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sorted_as", "answers", "expected"),
    [
        ({"topic": "loan", "urgency": 1}, [{"decision": "proceed", "note": ""}], "Sent: Dear Ada"),
        ({"topic": "loan", "urgency": 1}, [{"decision": "reject", "note": ""}], "Not sent."),
        ({"topic": "other", "urgency": 9}, [], "Call the head of the library: My book?"),
        ({"topic": "other", "urgency": 2}, [], "Filed as other, {not a variable}"),
    ],
)
async def test_a_desk_takes_the_ways_of_the_file(
    sorted_as: Any, answers: Sequence[Any], expected: str
) -> None:
    def reply(request: Any) -> str:
        return json.dumps(sorted_as) if request.prompt.startswith("Letter") else "Dear Ada"

    imported = import_text(json.dumps(_DESK), provider="fake")
    output, requests = await run_import(imported, "My book?", reply, answers)
    assert output == expected
    if answers:
        first, replied, asked = said_in(requests[1])
        assert first == ("user", "Letter: My book?")
        assert (replied[0], json.loads(replied[1])) == ("user", sorted_as)
        assert asked == ("user", "Write the answer.")


def test_a_tour_names_what_it_loses() -> None:
    imported = import_text(json.dumps(_TOURS))
    assert_accounted_for(imported, **pointers_of(_TOURS), secrets=["k7-secret-91xq"])
    left = {name for name, outcome in outcomes(imported).items() if outcome == "placeholder"}
    assert left == {"Count"}
    assert "Weather → Book → Remember → Count → Again → Weather" in notes_of(imported, "Again")
    rooms = data_at(imported, "httpAgentflow_0")
    assert rooms["secretHeaders"] == {"X-Api-Key": "{httpagentflow_0_x_api_key}"}
    assert (rooms["method"], json.loads(rooms["body"])) == ("POST", {"beds": 2})
    body = ("loopAgentflow_0", "loopAgentflow_0")
    assert data_at(imported, *body, "executeFlowAgentflow_0")["flow"] == {"name": "museum-tickets"}
    assert ("flow", "museum-tickets") in {(s["what"], s["name"]) for s in imported.report["setup"]}
    assert data_at(imported, *body, "conditionAgentAgentflow_0-choice")["cases"] == ["0", "1"]
    assert data_at(imported, *body, "customFunctionAgentflow_0")["code"] == "return 1;"


async def test_an_iteration_runs_its_steps_for_each_item_with_values_of_outside() -> None:
    nodes = [
        each for each in _TOURS["nodes"] if each["id"] in ("iterationAgentflow_0", "llmAgentflow_0")
    ]
    start = start_step(
        startInputType="formInput", formInputTypes=[{"name": "city", "type": "string"}]
    )
    last = step_node("directReplyAgentflow_0", {"directReplyMessage": "{{ iterationAgentflow_0 }}"})
    edges = [wire(start["id"], "iterationAgentflow_0"), wire("iterationAgentflow_0", last["id"])]
    imported = import_steps([start, *nodes, last], edges)
    output, requests = await run_import(imported, {"city": "Oslo"}, lambda r: r.prompt.upper())
    assert [each.prompt for each in requests] == [
        "Plan the museum of Oslo.",
        "Plan the harbour of Oslo.",
    ]
    assert output == "PLAN THE MUSEUM OF OSLO.\nPLAN THE HARBOUR OF OSLO."


# -- the conversation that model steps share -------------------------------------------------------


async def test_steps_with_memory_share_one_conversation() -> None:
    imported = import_chain(start_step(), remembering_step(0), remembering_step(1, "And?", llmReturnResponseAs="assistantMessage"), remembering_step(2, "So?"))  # fmt: skip
    assert "is written out" in notes_of(imported, "llmAgentflow_0")
    replies = iter(["one", "two", "three"])
    output, requests = await run_import(imported, "Hello", lambda _: next(replies))
    assert output == "three"
    asked = ("user", "Hello")
    assert [said_in(each) for each in requests] == [
        [asked],
        [asked, ("user", "one"), ("user", "And?")],
        [asked, ("user", "one"), ("assistant", "two"), ("user", "So?")],
    ]


def test_a_conversation_that_ends_with_a_reply_makes_a_placeholder() -> None:
    reply = remembering_step(0, llmReturnResponseAs="assistantMessage")
    imported = import_chain(start_step(), reply, remembering_step(1))
    assert outcomes(imported)["llmAgentflow_1"] == "placeholder"


async def test_the_decision_of_a_person_stands_in_the_conversation() -> None:
    look = step_node("humanInputAgentflow_0", {"humanInputDescription": "Sure?"})
    edges = [
        wire("startAgentflow_0", "llmAgentflow_0"), wire("llmAgentflow_0", look["id"]),
        wire(look["id"], "llmAgentflow_1", 0),
    ]  # fmt: skip
    imported = import_steps([start_step(), remembering_step(0), look, remembering_step(1)], edges)
    _, requests = await run_import(
        imported, "Hi", lambda _: "one", [{"decision": "proceed", "note": ""}]
    )
    assert said_in(requests[1]) == [
        ("user", "Hi"),
        ("user", "one"),
        ("assistant", "Sure?"),
        ("user", "proceed"),
    ]


async def test_a_step_without_memory_is_sent_the_question_where_it_is_the_first() -> None:
    imported = import_chain(
        start_step(),
        llm_step(0, llmMessages=[{"role": "system", "content": "S"}]),
        remembering_step(1),
    )
    _, requests = await run_import(imported, "Hello", lambda _: "one")
    assert requests[0].system == "S"
    assert [said_in(each) for each in requests] == [
        [("user", "Hello")],
        [("user", "Hello"), ("user", "one")],
    ]


def test_a_step_beside_another_one_says_that_it_does_not_hear_it() -> None:
    steps = [start_step(), remembering_step(0), remembering_step(1)]
    imported = import_steps(steps, [wire("startAgentflow_0", f"llmAgentflow_{i}") for i in (0, 1)])
    assert "not in its conversation; there it may be: llmAgentflow_1" in notes_of(
        imported, "llmAgentflow_0"
    )


@pytest.mark.parametrize("kind", ["conversationSummary", "conversationSummaryBuffer"])
def test_a_memory_of_summaries_is_lost(kind: str) -> None:
    imported = import_chain(start_step(), remembering_step(0, llmMemoryType=kind))
    assert outcomes(imported)["llmAgentflow_0"] == "placeholder"


async def test_a_window_of_the_conversation_is_its_last_messages() -> None:
    steps = [remembering_step(i) for i in range(3)]
    last = remembering_step(3, llmMemoryType="windowSize", llmMemoryWindowSize=1)
    _, requests = await run_import(
        import_chain(start_step(), *steps, last), "Hello", lambda r: f"r{len(r.messages)}"
    )
    assert said_in(requests[-1]) == [("user", "r2"), ("user", "r3")]


# -- references ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("$flow.chatId", "this fact of a run"),
        ("loop_count", "which loop has run last"),
        ("$vars.a", "variables of Flowise"),
        ("current_date_time", "do not know the time"),
        ("$form.a", "no form"),
        ("$iteration.a", "outside of an iteration"),
        ("llmAgentflow_9", "no step of the flow"),
        ("llmAgentflow_1", "does not run before it"),
        ("conditionAgentflow_0", "does not run before it"),
    ],
)
def test_what_cannot_be_read_makes_a_placeholder(reference: str, message: str) -> None:
    steps = [
        start_step(),
        llm_step(0, f"{{{{ {reference} }}}}"),
        llm_step(1, "x"),
        step_node("conditionAgentflow_0"),
    ]
    imported = import_chain(*steps)
    assert outcomes(imported)["llmAgentflow_0"] == "placeholder"
    assert message in notes_of(imported, "llmAgentflow_0")


async def test_braces_and_steps_that_did_not_run_stay_as_they_are_written() -> None:
    choice = step_node("conditionAgentflow_0", {"conditions": [
        {"type": "string", "operation": "contains", "value1": "{{ question }}", "value2": "x"}
    ]})  # fmt: skip
    reply = step_node(
        "directReplyAgentflow_0", {"directReplyMessage": "{% a %} {{ llmAgentflow_0 }}"}
    )
    edges = [
        wire("startAgentflow_0", choice["id"]), wire(choice["id"], "llmAgentflow_0", 0),
        wire("llmAgentflow_0", reply["id"]), wire(choice["id"], reply["id"], 1),
    ]  # fmt: skip
    imported = import_steps([start_step(), choice, llm_step(0, "Do."), reply], edges)
    assert (await run_import(imported, "x", lambda _: "done"))[0] == "{% a %} done"
    assert (await run_import(imported, "y", lambda _: "done"))[0] == "{% a %} {{ llmAgentflow_0 }}"


@pytest.mark.parametrize(
    ("kind", "operation", "values", "is_true"),
    [
        ("string", "equal", ("a", "a"), True), ("string", "notEqual", ("a", "a"), False),
        ("string", "contains", ("abc", "b"), True), ("string", "notContains", ("abc", "b"), False),
        ("string", "startsWith", ("abc", "a"), True), ("string", "endsWith", ("abc", "a"), False),
        ("string", "isEmpty", ("", ""), True), ("string", "notEmpty", ("", ""), False),
        ("number", "smaller", ("2", 10), True), ("number", "largerEqual", (3, "3"), True),
        ("number", "smallerEqual", (4, 3), False), ("number", "larger", ("{{ question }}", 3), True),
        ("boolean", "equal", (True, True), True), ("boolean", "notEqual", (True, True), False),
    ],
)  # fmt: skip
async def test_a_condition_chooses_as_there(
    kind: str, operation: str, values: tuple[Any, Any], is_true: bool
) -> None:
    test = {"type": kind, "operation": operation, "value1": values[0], "value2": values[1]}
    choice = step_node("conditionAgentflow_0", {"conditions": [test]})
    replies = [
        step_node(f"directReplyAgentflow_{i}", {"directReplyMessage": str(i)}) for i in (0, 1)
    ]
    edges = [wire("startAgentflow_0", choice["id"]), *(wire(choice["id"], r["id"], i) for i, r in enumerate(replies))]  # fmt: skip
    output, _ = await run_import(
        import_steps([start_step(), choice, *replies], edges), "5", lambda _: ""
    )
    assert output == ("0" if is_true else "1")


@pytest.mark.parametrize("operation", ["regex", "odd", ""])
def test_a_comparison_without_counterpart_is_a_placeholder(operation: str) -> None:
    imported = import_chain(
        start_step(), step_node("conditionAgentflow_0", {"conditions": [{"operation": operation}]})
    )
    assert outcomes(imported)["conditionAgentflow_0"] == "placeholder"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain <b>text</b>", "plain <b>text</b>"),
        ("<p>a</p><p></p><p>b &amp; c</p>", "a\n\nb & c"),
        ("<p>a<br>b</p>", "a\nb"),
        ("<h2>T</h2><ol><li><p>x</p></li><li><p>y</p></li></ol>", "## T\n\n1. x\n2. y"),
        ("<p><em>i</em> <code>c</code></p>", "_i_ `c`"),
        ('<pre><code class="language-x">a  b\n c</code></pre>', "```\na  b\n c\n```"),
        ("<blockquote><p>q</p></blockquote><p>r", "> q\n\nr"),
        (
            '<p><span class="variable" data-id="question">{{ question }}</span> </p>',
            "{{ question }}",
        ),
    ],
)
def test_rich_text_becomes_markdown(html: str, text: str) -> None:
    assert plain_text(html) == text


# -- steps that differ -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("llmStructuredOutput", {"key": "k", "type": "odd"}),
        ("llmUpdateState", {"key": "k", "value": "{{ output.field }}"}),
        ("llmUpdateState", {"key": "k", "value": "{{ $vars.a }}"}),
    ],
)
def test_what_a_model_step_cannot_do_makes_it_a_placeholder(name: str, entry: Any) -> None:
    imported = import_chain(start_step(), llm_step(0, "a", **{name: [entry]}))
    assert outcomes(imported)["llmAgentflow_0"] == "placeholder"


def test_tools_of_an_agent_are_linked_placeholders() -> None:
    given = {"agentModel": "chatOpenAI", "agentTools": [{"agentSelectedTool": "gmail"}], "agentToolsBuiltInOpenAI": '["web_search_preview"]', "agentEnableMemory": True}  # fmt: skip
    imported = import_chain(start_step(), step_node("agentAgentflow_0", given))
    assert outcomes(imported)["agentAgentflow_0"] == "changed"
    assert data_at(imported, "agentAgentflow_0")["tools"] == {"web_search": True}
    assert [each.code for each in findings_of(imported) if each.code == "placeholder"] == [
        "placeholder"
    ]


def test_a_credential_is_a_secret_of_the_operator() -> None:
    request = step_node("httpAgentflow_0", {"url": "https://a.example", "credential": "3f1c"})
    imported = import_chain(start_step(), request)
    assert data_at(imported, "httpAgentflow_0")["secretHeaders"] == {"Authorization": "{httpagentflow_0_authorization}"}  # fmt: skip
    assert "3f1c" not in json.dumps(imported.document)


def test_500_steps_convert() -> None:
    ids = [f"llmAgentflow_{i}" for i in range(499)]
    before = [*["startAgentflow_0"] * 10, *ids]
    steps = [
        llm_step(i, "{{ question }}" if i < 10 else f"{{{{ {before[i]} }}}}") for i in range(499)
    ]
    imported = import_steps(
        [start_step(), *steps], [wire(*ends) for ends in zip(before, ids, strict=False)]
    )
    assert imported.report["summary"]["mapped"] == 500


def test_500_steps_that_share_a_conversation_convert() -> None:
    steps = [start_step(), *(remembering_step(i, "a") for i in range(499))]
    edges = [wire(a["id"], b["id"]) for a, b in pairwise(steps)]
    imported = import_text(json.dumps({"nodes": steps, "edges": edges}))
    assert len(json.dumps(imported.document)) < 4_000_000
    assert imported.report["summary"]["placeholder"] == 398


# -- files of others, where they are present -------------------------------------------------------


@pytest.mark.skipif(not (REAL / "flowise").is_dir(), reason="the files of others are not here")
@pytest.mark.parametrize(
    ("name", "placeholders", "dropped"),
    [
        ("agentflows_branch_out_merge_in", [], 0),
        ("agentflowsv2_human_in_the_loop", ["toolAgentflow_0"], 0),
        ("agentflowsv2_iterations", [], 0),
        ("agentflowsv2_translator", [], 0),
        ("chatflows_llm_chain", [], 1),
    ],
)
def test_files_of_others_convert(name: str, placeholders: list[str], dropped: int) -> None:
    text = (REAL / "flowise" / f"{name}.json").read_text("utf-8")
    document = json.loads(text)
    imported = import_text(text)
    assert imported.report["kind"] == "flowise"
    assert_accounted_for(imported, **pointers_of(document))
    lost = [
        document["nodes"][i]["id"]
        for i, entry in enumerate(imported.report["nodes"])
        if entry["outcome"] == "placeholder"
    ]
    assert lost == placeholders
    assert imported.report["summary"]["dropped"] == dropped


@pytest.mark.skipif(not (REAL / "flowise").is_dir(), reason="the files of others are not here")
async def test_files_of_others_do_what_they_must() -> None:
    def read(name: str) -> Imported:
        return import_text((REAL / "flowise" / f"{name}.json").read_text("utf-8"), provider="fake")

    output, requests = await run_import(
        read("agentflows_branch_out_merge_in"), "Hi", lambda r: r.system[-2]
    )
    assert output == "D"
    assert sorted(said_in(requests[-1])) == sorted(("user", each) for each in ("Hi", "A", "B", "C"))
    asked = read("agentflowsv2_human_in_the_loop")
    body = data_at(asked, "loopAgentflow_0", "loopAgentflow_0")["body"]
    ends = {
        e["sourceHandle"]: e["target"]
        for e in body["edges"]
        if e["source"].startswith("humanInput")
    }
    assert ends == {"proceed": "way-0", "reject": "loopAgentflow_0"}
    notes = [note for entry in asked.report["nodes"] for note in entry["notes"]]
    assert any(note["code"] == "import-cycle" for note in notes)
    assert any("all model steps of a run share" in note["message"] for note in notes)
    _, requests = await run_import(read("agentflowsv2_iterations"), "Hi", lambda _: "ok")
    assert len(requests) == 5
    assert [each.messages[-1].text[-3:] for each in requests[:4]] == ["abc", "abc", "def", "def"]
    output, requests = await run_import(read("agentflowsv2_translator"), "Hi", lambda r: r.prompt)
    assert "Hi" in output
    assert "<" not in output + str(requests[0].system)
    chain = read("chatflows_llm_chain")
    assert [each["type"] for each in chain.document["nodes"]].count("llm") == 1
    output, _ = await run_import(chain, "socks", lambda r: r.prompt)
    assert "makes socks?" in output


# -- older files -----------------------------------------------------------------------------------


def _older(node_id: str, category: str = "", **inputs: Any) -> dict[str, Any]:
    node = step_node(node_id, inputs)
    node["data"] |= {"category": category, "inputAnchors": []}
    return node


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("Name {a}", "", "Name Q"),
        ("Name {a} {{b}}", '{"a": "{{question}}"}', "Name Q {b}"),
        ("Name {a} {b}", {"a": "x"}, "Name x Q"),
        ("Name", "", "Name"),
    ],
)
async def test_a_chain_asks_its_prompt(template: str, values: Any, expected: str) -> None:
    nodes = [
        _older("chatOpenAI_0", "Chat Models", modelName="gpt"), _older("llmChain_0"),
        _older("promptTemplate_0", template=template, promptValues=values),
    ]  # fmt: skip
    edges = [wire(each, "llmChain_0") for each in ("chatOpenAI_0", "promptTemplate_0")]
    imported = import_steps(nodes, edges)
    assert imported.report["summary"]["mapped"] == 3
    del nodes[0]["data"]["inputs"]["modelName"]
    document = {"nodes": nodes, "edges": edges}
    told = import_text(json.dumps(document), "flowise", provider="fake")
    output, _ = await run_import(told, "Q", lambda r: r.prompt)
    assert output == expected


@pytest.mark.parametrize("template", ["{a} {b}", "{a", "a}"])
def test_a_prompt_that_cannot_be_filled_is_a_placeholder(template: str) -> None:
    imported = import_steps([_older("promptTemplate_0", template=template)])
    assert outcomes(imported)["promptTemplate_0"] == "placeholder"


@pytest.mark.parametrize("kind", ["seqCondition", "seqToolNode", "toolAgent", "chatPromptTemplate"])
def test_other_kinds_of_older_files_are_placeholders(kind: str) -> None:
    nodes = [
        _older("seqStart_0"),
        _older(f"{kind}_0"),
        _older("seqAgent_0", systemMessagePrompt="S"),
    ]
    imported = import_steps(
        nodes, [wire("seqStart_0", f"{kind}_0"), wire(f"{kind}_0", "seqAgent_0")]
    )
    assert outcomes(imported) == {"seqStart_0": "mapped", f"{kind}_0": "placeholder", "seqAgent_0": "placeholder"}  # fmt: skip


# -- any graph -------------------------------------------------------------------------------------

_KINDS = (
    "startAgentflow", "llmAgentflow", "agentAgentflow", "conditionAgentflow", "conditionAgentAgentflow",
    "iterationAgentflow", "httpAgentflow", "humanInputAgentflow", "directReplyAgentflow", "executeFlowAgentflow",
    "loopAgentflow", "toolAgentflow", "customFunctionAgentflow", "stickyNoteAgentflow", "seqStart", "seqAgent",
    "seqEnd", "llmChain", "promptTemplate", "chatOpenAI", "odd",
)  # fmt: skip
_IDS = st.sampled_from([f"n{i}" for i in range(6)]) | st.sampled_from(ODD_TEXTS)
_TEXTS = st.sampled_from(
    [
        *ODD_TEXTS, "<p>{{ question }}</p>", "{{ n1 }}", "{{ n1.output.a[0].b }}", "<p>{{ $iteration.a }}", "[1, 2]",
        "{{ $form.a }}", "{{ $flow.state.x }}", "{{ chat_history }}", "{{ runtime_messages_length }}", "{{ output }}", "https://a.example/{{ n2 }}", "string", "number", "equal", "n1-x",
        "formInput", "windowSize", '{"a": "{{question}}"}', "{a}", "json", "xWwwFormUrlencoded", "POST",
    ]
)  # fmt: skip
_LISTS = {
    "Messages": ("role", "content"), "StructuredOutput": ("key", "type", "enumValues"), "UpdateState": ("key", "value"),
    "startState": ("key", "value"), "conditions": ("type", "operation", "value1", "value2"), "conditionAgentScenarios": ("scenario",),
    "formInputTypes": ("name", "type"), "headers": ("key", "value"), "queryParams": ("key", "value"),
    "agentTools": ("agentSelectedTool",),
}  # fmt: skip
_SETTINGS = (
    "Model", "EnableMemory", "MemoryType", "UserMessage", "ReturnResponseAs", "startInputType", "iterationInput",
    "url", "method", "bodyType", "body", "humanInputDescription", "directReplyMessage", "executeFlowSelectedFlow",
    "executeFlowInput", "loopBackToNode", "conditionAgentInput", "template", "promptValues", "systemMessagePrompt",
    "credential", "iterationConcurrency",
)  # fmt: skip


@st.composite
def flows(draw: st.DrawFn) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for node_id in draw(st.lists(_IDS, min_size=1, max_size=8)):
        kind = draw(st.sampled_from(_KINDS))
        prefix = kind.removesuffix("Agentflow")
        inputs: dict[str, Any] = {}
        for name in draw(st.lists(st.sampled_from(_SETTINGS), max_size=6)):
            value = True if name == "EnableMemory" else draw(_TEXTS)
            inputs[f"{prefix}{name}" if name[0].isupper() else name] = value
        for name in draw(st.lists(st.sampled_from(sorted(_LISTS)), max_size=3)):
            items = [
                {key: draw(_TEXTS) for key in _LISTS[name]} for _ in range(draw(st.integers(1, 2)))
            ]
            inputs[f"{prefix}{name}" if name[0].isupper() else name] = items
        node = step_node(node_id, inputs, position={"x": 1, "y": 2}, parentNode=draw(st.sampled_from(["", "n1", "n2"])))  # fmt: skip
        node["data"] |= {"name": kind, "category": "Chat Models" if kind == "chatOpenAI" else ""}
        nodes.append(node)
    ids = st.sampled_from([node["id"] for node in nodes]) | _IDS
    edges = [
        wire(draw(ids), draw(ids), draw(st.sampled_from([None, 0, 1, 2])))
        for _ in range(draw(st.integers(0, 10)))
    ]
    return {"nodes": nodes, "edges": edges}


@given(damaged(flows()))
def test_any_flow_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "flowise")
    assert_accounted_for(imported, **pointers_of(case.document), secrets=case.secrets)


@given(damaged(st.sampled_from([_DESK, _TOURS])))
def test_damaged_files_are_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "flowise")
    assert_accounted_for(imported, **pointers_of(case.document), secrets=case.secrets)
