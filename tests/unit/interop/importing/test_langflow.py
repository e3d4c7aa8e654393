"""Flows of Langflow: components as steps, tools over links, loops as bodies, and programs that are never read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.importer import Imported, import_text
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.imports import (
    OWN,
    REAL,
    assert_accounted_for,
    findings_of,
    outcomes,
)
from tests.support.interop.langflow_files import (
    CHAT_IN,
    CHAT_OUT,
    component_of,
    document_of,
    import_flow,
    node_at,
    notes_of,
    pointers_of,
    run_flow,
)

_DESK, _TRIP = (
    (OWN / "langflow" / f"{name}.json").read_text("utf-8") for name in ("garden_desk", "trip_lines")
)
# -- the files of this project ---------------------------------------------------------------------


def test_a_flow_with_tools_has_them_linked_to_its_agent() -> None:
    imported = import_text(_DESK)
    assert_accounted_for(imported, **pointers_of(json.loads(_DESK)), secrets=["garden-4Qx81ZpLm22"])
    assert outcomes(imported) == {
        "ChatInput-a1": "mapped", "TextInput-b2": "mapped", "Prompt-c3": "mapped", "Agent-d4": "changed",
        "URLComponent-e5": "changed", "UnifiedWebSearch-f6": "changed", "SowingTable-g7": "placeholder",
        "ChatOutput-h8": "mapped", "note-i9": "dropped",
    }  # fmt: skip
    agent = node_at(imported, "Agent-d4")
    assert agent["data"] == {
        "provider": "openai", "model": "gpt-5-mini", "temperature": 0.3, "maxSteps": 8, "tools": {"web_search": True}
    }  # fmt: skip
    assert (agent["type"], agent["name"], agent["ui"]) == (
        "agent",
        "Gardener",
        {"x": 520, "y": 200},
    )
    links = [e for e in imported.document["edges"] if e["data"]["channel"] == "link"]
    assert {(e["source"], e["targetHandle"]) for e in links} == {
        ("URLComponent-e5", "tools"), ("SowingTable-g7", "tools")
    }  # fmt: skip
    assert node_at(imported, "URLComponent-e5")["data"] == {"name": "read_leaflet"}
    setup = {(each["what"], each["name"]) for each in imported.report["setup"]}
    assert setup == {("provider", "openai"), ("tool", "read_leaflet")}


def test_only_a_program_that_somebody_changed_is_kept_and_as_text() -> None:
    imported = import_text(_DESK)
    assert "never run" not in json.dumps(imported.document)
    data = node_at(imported, "SowingTable-g7")["data"]
    assert data["code"] == "class SowingTable(Component):\n    month = 4\n"
    assert data["parameters"] == {"zone": "7b"}


async def test_a_flow_with_a_loop_runs_as_it_is_drawn() -> None:
    imported = import_text(_TRIP)
    assert_accounted_for(imported, **pointers_of(json.loads(_TRIP)))
    assert "placeholder" not in outcomes(imported).values()
    stops = [
        {"town": "Ulm", "days": 2, "sights": ["minster"]},
        {"town": "Köln", "days": 1, "sights": []},
    ]

    def reply(request: Any) -> str:
        return json.dumps({"objects": stops}) if request.schema else f"<{request.prompt}>"

    output, requests = await run_flow(imported, {"message": "A trip"}, reply)
    asked = ['2 days in Ulm: {see} ["minster"]', "1 days in Köln: {see} []"]
    assert [each.prompt for each in requests] == ["A trip", *asked]
    assert requests[0].system.startswith("Name the stops of the trip {in order}.")
    assert {each.system for each in requests[1:]} == {"Write like a guide."}
    assert output == f"- <{asked[0]}> / - <{asked[1]}>"
    schema = requests[0].schema["properties"]["objects"]["items"]
    assert schema["properties"]["sights"] == {
        "type": "array", "items": {"type": "string"}, "description": "What to see"
    }  # fmt: skip


# -- components ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "double", "rendered"),
    [
        ("Say {a} to {b}.", False, "Say x{y} to Hi."),
        ("{a}{{b}}{{{b}}}", False, "x{y}{b}{Hi}"),
        ('{"k": {a}} {% if %} {# {', False, '{"k": x{y}} {% if %} {# {'),
        ("{{a}} {b} {%", True, "x{y} {b} {%"),
    ],
)
async def test_a_prompt_fills_in_its_variables_and_keeps_other_braces(
    template: str, double: bool, rendered: str
) -> None:
    prompt = component_of("Prompt-1", template=template, a="x{y}", b="", use_double_brackets=double)
    edges = ["Prompt-1.prompt > OpenAIModel-1.input_value"]
    if "Hi" in rendered:
        edges.append("ChatInput-1.message > Prompt-1.b")
    imported = import_flow(
        [CHAT_IN, prompt, component_of("OpenAIModel-1", model_name="gpt-5")], *edges
    )
    _, requests = await run_flow(imported, None)
    assert [each.prompt for each in requests] == [rendered]


@pytest.mark.parametrize("template", ["{a.b}", "{a[0]}", "{a!r}", "{a:>9}", "{gone}"])
def test_a_prompt_that_formats_more_than_names_cannot_run(template: str) -> None:
    imported = import_flow([component_of("Prompt-1", template=template, a="x")])
    assert outcomes(imported) == {"Prompt-1": "placeholder"}
    assert imported.report["lost"]


async def test_an_agent_reads_the_earlier_turns_of_the_chat() -> None:
    imported = import_flow(
        [CHAT_IN, component_of("Agent-1", system_prompt="Be {kind}.", n_messages=5), CHAT_OUT],
        "ChatInput-1.message > Agent-1.input_value",
        "Agent-1.response > ChatOutput-1.input_value",
    )
    history = [{"role": "user", "content": "I am Ada"}, {"role": "assistant", "content": "Hello"}]
    given = {"message": "Who am I?", "history": history}
    output, (request,) = await run_flow(imported, given)
    assert output == "ok"
    assert request.system == "Be {kind}."
    said = [turn.text for turn in request.messages]
    assert said[:2] == ["I am Ada", "Hello"]
    assert "Who am I?" in (*said, request.prompt)


def test_an_agent_without_memory_reads_the_message_alone() -> None:
    imported = import_flow(
        [CHAT_IN, component_of("Agent-1", n_messages=0)],
        "ChatInput-1.message > Agent-1.input_value",
    )
    (edge,) = imported.document["edges"]
    assert (edge["sourceHandle"], edge["targetHandle"]) == ("message", "input")


def test_one_model_serves_several_components_over_links() -> None:
    imported = import_flow(
        [
            CHAT_IN,
            component_of("AnthropicModel-1", model_name="claude-sonnet-5"),
            component_of("Agent-1"),
        ],
        "ChatInput-1.message > Agent-1.input_value",
        "AnthropicModel-1.model_output > Agent-1.agent_llm",
    )
    assert node_at(imported, "AnthropicModel-1")["type"] == "model"
    link = imported.document["edges"][0]
    assert {e["data"]["channel"] for e in imported.document["edges"]} == {"flow", "link"}, link
    assert "placeholder" not in outcomes(imported).values()


def test_what_a_global_variable_holds_is_not_known() -> None:
    model = component_of("OpenAIModel-1", model_name="gpt-5", input_value="GREETING")
    model["data"]["node"]["template"]["input_value"]["load_from_db"] = True
    imported = import_flow([model])
    assert outcomes(imported) == {"OpenAIModel-1": "placeholder"}
    assert "global variable" in notes_of(imported, "OpenAIModel-1")


async def test_a_text_begins_a_flow_without_a_chat_and_is_fixed_in_one_with_it() -> None:
    text, model = (
        component_of("TextInput-1", input_value="{{ x }}"),
        component_of("GroqModel-1", model="m"),
    )
    edges = ["TextInput-1.text > GroqModel-1.input_value"]
    alone = import_flow([text, model], *edges)
    assert node_at(alone, "TextInput-1")["data"] == {"initialInput": "{{ x }}"}
    beside = import_flow([CHAT_IN, text, model], *edges)
    assert node_at(beside, "TextInput-1")["type"] == "text"
    for imported in (alone, beside):
        _, (request,) = await run_flow(imported, None)
        assert request.prompt == "{{ x }}"


@pytest.mark.parametrize(
    ("out", "into", "expected"),
    [
        ("text", "data_output", {"text": "Hi"}),
        ("text", "dataframe_output", [{"text": "Hi"}]),
        ("text", "message_output", "Hi"),
    ],
)
async def test_a_converter_makes_another_type_of_a_value(
    out: str, into: str, expected: Any
) -> None:
    imported = import_flow(
        [
            component_of("TextInput-1", input_value="Hi"),
            component_of("TypeConverterComponent-1"),
            CHAT_OUT,
        ],
        f"TextInput-1.{out} > TypeConverterComponent-1.input_data",
        f"TypeConverterComponent-1.{into} > ChatOutput-1.input_value",
    )
    output, _ = await run_flow(imported, None)
    assert output == expected


@pytest.mark.parametrize(
    "edges",
    [
        ["ChatInput-1.message > Agent-1.tools", "ChatInput-1.message > Agent-1.input_value"],
        ["Agent-1.structured_response > ChatOutput-1.input_value", "ChatInput-1.message > Agent-1.input_value"],
        ["ChatInput-1.message > Agent-1.input_value", "ChatInput-1.message > Agent-1.max_iterations"],
        ["Gone-1.message > Agent-1.input_value"],
    ],
)  # fmt: skip
def test_an_agent_whose_wires_say_something_else_cannot_run(edges: list[str]) -> None:
    imported = import_flow([CHAT_IN, component_of("Agent-1"), CHAT_OUT], *edges)
    assert outcomes(imported)["Agent-1"] == "placeholder"


def test_searches_and_pages_are_tools_and_no_steps() -> None:
    imported = import_flow(
        [
            CHAT_IN,
            component_of("UnifiedWebSearch-1"),
            component_of("URLComponent-1"),
            component_of("Other-1"),
        ],
        "ChatInput-1.message > UnifiedWebSearch-1.query",
        "UnifiedWebSearch-1.results > Other-1.x",
        "ChatInput-1.message > URLComponent-1.urls",
    )
    assert [*outcomes(imported).values()] == ["mapped", *["placeholder"] * 3]


async def test_a_batch_run_asks_for_each_row_and_adds_the_reply() -> None:
    rows = [{"q": "one", "n": 1}, {"q": "two", "n": 2}]
    parts = [{"name": "q", "type": "str"}, {"name": "n", "type": "int"}]
    imported = import_flow(
        [
            CHAT_IN, component_of("StructuredOutput-1", output_schema=parts, model="m"), CHAT_OUT,
            component_of("BatchRunComponent-1", column_name="q", model="m", system_message="Be {brief}."),
        ],
        "ChatInput-1.message > StructuredOutput-1.input_value",
        "StructuredOutput-1.dataframe_output > BatchRunComponent-1.df",
        "BatchRunComponent-1.batch_results > ChatOutput-1.input_value",
    )  # fmt: skip

    def reply(request: Any) -> str:
        return json.dumps({"objects": rows}) if request.schema else f"{request.prompt}!"

    output, requests = await run_flow(imported, None, reply)
    assert output == [
        row | {"model_response": f"{row['q']}!", "batch_index": i} for i, row in enumerate(rows)
    ]
    assert {each.system for each in requests[1:]} == {"Be {brief}."}


@pytest.mark.parametrize(
    ("fields", "edges"),
    [
        ({}, ["Table-1.dataframe_output > BatchRunComponent-1.df"]),
        ({"column_name": "q"}, []),
        (
            {"column_name": "q"},
            [
                "Table-1.dataframe_output > BatchRunComponent-1.df",
                "ChatInput-1.message > BatchRunComponent-1.system_message",
            ],
        ),
    ],
)
def test_a_batch_run_that_asks_something_else_cannot_run(
    fields: dict[str, str], edges: list[str]
) -> None:
    imported = import_flow(
        [CHAT_IN, component_of("Table-1"), component_of("BatchRunComponent-1", **fields)], *edges
    )
    assert outcomes(imported)["BatchRunComponent-1"] == "placeholder"


@pytest.mark.parametrize(
    "edges",
    [
        ["UnifiedWebSearch-1.message > Agent-1.input_value"],
        [
            "UnifiedWebSearch-1.component_as_tool > Agent-1.tools",
            "ChatInput-1.message > UnifiedWebSearch-1.query",
        ],
    ],
)
def test_a_search_that_is_no_tool_of_an_agent_is_a_placeholder(edges: list[str]) -> None:
    parts = [CHAT_IN, component_of("UnifiedWebSearch-1"), component_of("Agent-1", input_value="Go")]
    found = outcomes(import_flow(parts, *edges))
    assert found["UnifiedWebSearch-1"] == "placeholder"
    assert found["Agent-1"] == "changed"


# -- loops -----------------------------------------------------------------------------------------

_LOOP = [
    component_of("Table-1"), component_of("LoopComponent-1"),
    component_of("ParserComponent-1", mode="Parser", pattern="{a}", sep="\n"), CHAT_OUT,
]  # fmt: skip
_AROUND = [
    "Table-1.dataframe_output > LoopComponent-1.data",
    "LoopComponent-1.item > ParserComponent-1.input_data",
    "LoopComponent-1.done > ChatOutput-1.input_value",
]
_BACK = "ParserComponent-1.parsed_text > LoopComponent-1.@item"


def test_the_steps_that_lead_back_to_a_loop_are_its_body() -> None:
    imported = import_flow(_LOOP, *_AROUND, _BACK)
    assert outcomes(imported) == {
        "Table-1": "placeholder", "LoopComponent-1": "changed", "ParserComponent-1": "changed", "ChatOutput-1": "changed"
    }  # fmt: skip
    assert node_at(imported, "LoopComponent-1", "ParserComponent-1")["type"] == "parser"


@pytest.mark.parametrize(
    "edges",
    [
        _AROUND,
        [*_AROUND, _BACK, "LoopComponent-1.item > LoopComponent-1.@item"],
        [*_AROUND, _BACK, "LoopComponent-1.done > ParserComponent-1.input_data"],
        [*_AROUND[1:], _BACK],
        [_AROUND[0], _AROUND[2], _BACK],
    ],
)
def test_a_loop_that_is_drawn_otherwise_cannot_run(edges: list[str]) -> None:
    assert outcomes(import_flow(_LOOP, *edges))["LoopComponent-1"] == "placeholder"


def test_a_loop_in_a_loop_is_a_body_in_a_body() -> None:
    inner = [component_of("LoopComponent-2"), component_of("TypeConverterComponent-1")]
    edges = [
        "Table-1.dataframe_output > LoopComponent-1.data",
        "LoopComponent-1.item > TypeConverterComponent-1.input_data",
        "TypeConverterComponent-1.dataframe_output > LoopComponent-2.data",
        "LoopComponent-2.item > ParserComponent-1.input_data",
        "ParserComponent-1.parsed_text > LoopComponent-2.@item",
        "LoopComponent-2.done > LoopComponent-1.@item",
    ]
    imported = import_flow([*_LOOP[:3], *inner], *edges)
    assert node_at(imported, "LoopComponent-1", "LoopComponent-2", "ParserComponent-1")


def test_five_hundred_components_are_converted() -> None:
    chain = [component_of(f"OpenAIModel-{i}", model_name="m") for i in range(499)]
    sources = [
        f"OpenAIModel-{i - 9}.text_output" if i > 8 else "ChatInput-1.message" for i in range(499)
    ]
    edges = [f"{source} > OpenAIModel-{i}.input_value" for i, source in enumerate(sources)]
    assert len(import_flow([CHAT_IN, *chain], *edges).document["nodes"]) == 500


# -- files of others -------------------------------------------------------------------------------

_FILES = sorted((REAL / "langflow").glob("*.json")) if REAL.is_dir() else []


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_a_real_file_comes_over_with_the_placeholders_that_are_known(file: Path) -> None:
    document = json.loads(file.read_text("utf-8"))
    expected = json.loads((REAL.parent / "expected.json").read_text("utf-8"))
    counts = expected[f"real/langflow/{file.name}"]
    imported, pointers = import_text(file.read_bytes()), pointers_of(document)
    assert_accounted_for(imported, **pointers)
    found = list(outcomes(imported).values())
    assert (len(pointers["nodes"]), len(pointers["edges"])) == (
        counts["nodes"] + counts["notes"],
        counts["edges"],
    )
    assert found.count("dropped") == counts["notes"]
    assert found.count("placeholder") == len(counts["placeholders"])
    programs = {
        n["data"]["node"]["template"].get("code", {}).get("value")
        for n in document["data"]["nodes"]
    }
    written = json.dumps([imported.document, imported.report])
    assert not any(json.dumps(each) in written for each in programs - {None})


def _real(name: str) -> Imported:
    file = REAL / "langflow" / name
    if not file.is_file():
        pytest.skip("no ../shared/import/real")
    return import_text(file.read_bytes())


def _types(imported: Imported) -> dict[str, str]:
    return {each["id"].partition("-")[0]: each["type"] for each in imported.document["nodes"]}


async def test_a_real_flow_asks_a_model_with_its_prompt() -> None:
    imported = _real("basic_prompting.json")
    assert _types(imported) == {
        "ChatInput": "chat_start", "Prompt": "parser", "ChatOutput": "end", "LanguageModelComponent": "llm"
    }  # fmt: skip
    output, (request,) = await run_flow(imported, None)
    assert output == "ok"
    assert (request.prompt, request.system[:15]) == ("Hello", "Answer the user")


def test_a_real_flow_has_structured_output_with_a_schema_of_its_own() -> None:
    imported = _real("market_research.json")
    (node,) = [n for n in imported.document["nodes"] if "outputSchema" in n.get("data", {})]
    properties = node["data"]["outputSchema"]["properties"]["objects"]["items"]["properties"]
    assert len(properties) == 10
    assert properties["hasAPI"]["type"] == "boolean"
    assert properties["pricingTiers"]["items"] == {"type": "string"}


def test_a_real_flow_has_a_loop_whose_body_leads_back() -> None:
    imported = _real("research_translation_loop.json")
    (loop,) = [n for n in imported.document["nodes"] if n["type"] == "loop"]
    assert {"parser", "llm"} <= {n["type"] for n in loop["data"]["body"]["nodes"]}
    assert [d.code for d in findings_of(imported)] == ["placeholder"]


def test_a_real_agent_has_its_tools_linked_and_its_search_switched_on() -> None:
    imported = _real("simple_agent.json")
    (agent,) = [n for n in imported.document["nodes"] if n["type"] == "agent"]
    assert agent["data"]["tools"] == {"web_search": True}
    (link,) = [e for e in imported.document["edges"] if e["data"]["channel"] == "link"]
    assert link["target"] == agent["id"]
    found = {each["source_kind"]: each["outcome"] for each in imported.report["nodes"]}
    assert (found["URLComponent"], found["UnifiedWebSearch"]) == ("changed", "changed")


# -- any flow --------------------------------------------------------------------------------------

_KINDS = (
    "ChatInput", "TextInput", "ChatOutput", "Prompt", "ParserComponent", "TypeConverterComponent", "Agent", "StructuredOutput",
    "URLComponent", "UnifiedWebSearch", "LanguageModelComponent", "OpenAIModel", "LoopComponent", "BatchRunComponent", "note", "Other",
)  # fmt: skip
_OUTS = st.sampled_from(
    ["message", "text", "prompt", "response", "text_output", "item", "done", "dataframe_output", "structured_output",
     "component_as_tool", "model_output", "parsed_text", "data_output", "batch_results", "a b"]
)  # fmt: skip
_FIELDS = (
    "input_value", "input_data", "system_message", "system_prompt", "tools", "model", "data", "template", "a", "pattern",
    "mode", "df", "column_name", "max_iterations", "temperature", "n_messages", "output_schema", "tools_metadata", "files", "sep",
)  # fmt: skip
_PARTS = st.sampled_from(["{a}", "{text}", "{{", "}}", "{", "}", "{a.b}", *ODD_TEXTS])
_ROWS = [{"name": "a", "type": "str", "multiple": "True"}, {"name": "b", "type": "list"}]


@st.composite
def flows(draw: st.DrawFn) -> dict[str, Any]:
    components = []
    ids = [
        f"{kind}-{i}" for i, kind in enumerate(draw(st.lists(st.sampled_from(_KINDS), max_size=7)))
    ]
    for node_id in ids:
        names = draw(st.sets(st.sampled_from(_FIELDS), max_size=6))
        fields: dict[str, Any] = {
            name: "".join(draw(st.lists(_PARTS, max_size=4))) for name in names
        }
        more = {
            "output_schema": _ROWS,
            "temperature": 0.5,
            "max_iterations": 3,
            "n_messages": 2,
            "tools_metadata": _ROWS,
        }
        fields |= {
            name: value for name, value in more.items() if name in names and draw(st.booleans())
        }
        component = component_of(node_id, **fields)
        component["data"]["node"] |= {"edited": draw(st.sampled_from([False] * 5 + [True]))}
        components.append(component)
    edges = []
    for _ in range(draw(st.integers(0, 9)) if ids else 0):
        source, target = draw(st.sampled_from(ids)), draw(st.sampled_from([*ids, "gone"]))
        field = draw(st.sampled_from([*_FIELDS[:10], "df", "@item", "@item"]))
        edges.append(f"{source}.{draw(_OUTS)} > {target}.{field}")
    return document_of(components, edges)


@given(damaged(flows()))
def test_any_flow_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "langflow")
    assert_accounted_for(imported, **pointers_of(case.document), secrets=case.secrets)
