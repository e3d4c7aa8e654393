"""Components of Langflow that choose a way, wires that share a field, and what loops read outside of their body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.importer import Imported, import_text
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.imports import SETUP_CODES, assert_accounted_for, findings_of, outcomes
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

_HI = {"message": "Hi"}


def _routed(**fields: Any) -> Imported:
    """Import an If-Else with an output of the flow behind each of its ways."""
    router = component_of("ConditionalRouter-1", **fields)
    ends = [component_of(f"ChatOutput-{i}", input_value="") for i in (2, 3)]
    return import_flow(
        [CHAT_IN, router, *ends], "ChatInput-1.message > ConditionalRouter-1.input_text",
        "ConditionalRouter-1.true_result > ChatOutput-2.input_value", "ConditionalRouter-1.false_result > ChatOutput-3.input_value",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "other", "text", "is_true"),
    [
        ("equals", "Hi", "Hi", True), ("equals", "hi", "Hi", False), ("not equals", "Hi", "Hi", False),
        ("contains", "a{{", "xa{{y", True), ("starts with", "x", "xy", True), ("ends with", "x", "xy", False),
        ("less than", "5", "4.5", True), ("less than or equal", "5", "6", False), ("greater than", "5", "6", True),
        ("greater than or equal", "5", "5", True), ("greater than", "five", "6", False), ("", "Hi", "Hi", True),
    ],
)  # fmt: skip
async def test_a_comparison_chooses_the_way(operator: str, other: str, text: str, is_true: bool) -> None:  # fmt: skip
    told = {"true_case_message": "yes {{", "false_case_message": "no"}
    imported = _routed(operator=operator, match_text=other, **told)
    assert (await run_flow(imported, {"message": text}))[0] == ("yes {{" if is_true else "no")


async def test_a_router_passes_the_message_on_and_may_ignore_case() -> None:
    imported = _routed(match_text="HI", case_sensitive=False)
    assert outcomes(imported)["ConditionalRouter-1"] == "mapped"
    assert node_at(imported, "ConditionalRouter-1")["data"]["outputHandles"] == ["true_result", "false_result"]  # fmt: skip
    assert (await run_flow(imported, _HI))[0] == "Hi"


@pytest.mark.parametrize("operator", ["regex", "odd", "less than"])
def test_a_comparison_without_counterpart_is_a_placeholder(operator: str) -> None:
    imported = _routed(operator=operator, match_text="inf")
    assert outcomes(imported)["ConditionalRouter-1"] == "placeholder"


_ROUTES = [
    {"route_category": "Praise", "route_description": "is glad {x}"},
    {"route_category": "Blame", "route_description": "", "output_value": "Sorry"},
]


def _smart(**fields: Any) -> Imported:
    router = component_of("SmartRouter-1", **{"routes": _ROUTES, "enable_else_output": True, **fields})  # fmt: skip
    ends = [component_of(f"ChatOutput-{i}", input_value="") for i in (2, 3, 4)]
    outs = ["category_1_result", "category_2_result", "default_result"]
    return import_flow(
        [CHAT_IN, router, *ends], "ChatInput-1.message > SmartRouter-1.input_text",
        *(f"SmartRouter-1.{out} > ChatOutput-{i}.input_value" for i, out in enumerate(outs, 2)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "expected"),
    [(' "praise"\n', "Hi"), ("Blame", "Sorry"), ("NONE", "Hi"), ("Praise you", "Hi")],
)
async def test_a_model_chooses_the_route_with_the_prompt_of_there(reply: str, expected: str) -> None:  # fmt: skip
    output, requests = await run_flow(_smart(), _HI, lambda _: reply)
    assert output == expected
    assert 'Text to classify: "Hi"' in requests[0].prompt
    assert '- "Praise": is glad {x}\n- "Blame"\n\nRespond' in requests[0].prompt


async def test_a_route_may_say_something_else() -> None:
    imported = _smart(message="All", custom_prompt="Of {routes}, think {input_text} {{x}}")
    output, requests = await run_flow(imported, _HI, lambda _: "blame")
    assert output == "All"
    assert requests[0].prompt.endswith('Additional Instructions:\nOf "Praise", "Blame", think Hi {x}')  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"routes": []}, {"routes": [{"route_category": ""}]}, {"routes": [*_ROUTES, {"route_category": "praise"}]},
        {"custom_prompt": "{other}"}, {"custom_prompt": "{routes!r}"},
    ],
)  # fmt: skip
def test_routes_that_are_not_certain_make_a_placeholder(fields: Any) -> None:
    assert outcomes(_smart(**fields))["SmartRouter-1"] == "placeholder"


# -- several wires to one field --------------------------------------------------------------------


async def test_the_last_wire_to_a_field_counts() -> None:
    texts = [component_of(f"TextInput-{i}", input_value=str(i)) for i in (1, 2)]
    edges = [f"TextInput-{i}.text > ChatOutput-1.input_value" for i in (1, 2)]
    imported = import_flow([CHAT_IN, *texts, CHAT_OUT], *edges)
    assert imported.report["edges"][0]["outcome"] == "dropped"
    assert "only the last one counts" in notes_of(imported, "ChatOutput-1")
    ends = [e for e in imported.document["edges"] if e["target"] == "ChatOutput-1"]
    assert [e["source"] for e in ends] == ["TextInput-2"]


def test_wires_of_a_choice_do_not_share_a_field() -> None:
    router, edges = component_of("ConditionalRouter-1"), ["ChatInput-1.message > ConditionalRouter-1.input_text"]  # fmt: skip
    edges += [f"ConditionalRouter-1.{way}_result > ChatOutput-1.input_value" for way in ("true", "false")]  # fmt: skip
    imported = import_flow([CHAT_IN, router, CHAT_OUT], *edges)
    assert outcomes(imported)["ChatOutput-1"] == "placeholder"


# -- agents ----------------------------------------------------------------------------------------


async def test_an_agent_without_input_goes_on_with_the_conversation() -> None:
    prompt = component_of("Prompt-1", template="Read {a}", a="")
    flow = [component_of("Agent-1", n_messages=100), prompt, CHAT_IN, CHAT_OUT]
    edges = ["ChatInput-1.message > Prompt-1.a", "Prompt-1.prompt > Agent-1.system_prompt", "Agent-1.response > ChatOutput-1.input_value"]  # fmt: skip
    imported = import_flow(flow, *edges)
    assert "it is told" in notes_of(imported, "Agent-1")
    history = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]
    _, requests = await run_flow(imported, {"message": "Hi", "history": history})
    assert [each.text for each in requests[0].messages] == [
        "before", "yes", "Hi", "Continue the conversation."
    ]  # fmt: skip
    flow[0] = component_of("Agent-1", n_messages=0)
    _, requests = await run_flow(import_flow(flow, *edges), _HI)
    assert (requests[0].system, requests[0].prompt) == ("Read Hi", "Continue the conversation.")


async def test_facts_in_the_instructions_of_an_agent_are_filled_in() -> None:
    text = "{current_date}|{model_name}|{optional_user_context}|{{x}}"
    agent = component_of("Agent-1", system_prompt=text)
    edges = ["ChatInput-1.message > Agent-1.input_value", "Agent-1.response > ChatOutput-1.input_value"]  # fmt: skip
    imported = import_flow([CHAT_IN, agent, CHAT_OUT], *edges)
    assert "{current_date} in its instructions is a fact" in notes_of(imported, "Agent-1")
    _, requests = await run_flow(imported, _HI)
    assert requests[0].system == "(not known)|(not known)||{{x}}"
    named = component_of("Agent-1", system_prompt=text, model=[{"provider": "OpenAI", "name": "gpt-5"}])  # fmt: skip
    imported = import_flow([CHAT_IN, named, CHAT_OUT], *edges)
    assert node_at(imported, "Agent-1")["data"]["systemPrompt"].startswith("(not known)|gpt-5||")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([{"a": 1}], {"a": 1}), ([{"a": 1}, {"a": 2}], {"results": [{"a": 1}, {"a": 2}]})],
)
async def test_an_agent_gives_data_of_a_schema(rows: Any, expected: Any) -> None:
    agent = component_of("Agent-1", output_schema=[{"name": "a", "type": "int", "multiple": "False"}])  # fmt: skip
    edges = ["ChatInput-1.message > Agent-1.input_value", "Agent-1.structured_response > ChatOutput-1.input_value"]  # fmt: skip
    imported = import_flow([CHAT_IN, agent, CHAT_OUT], *edges)
    assert outcomes(imported)["Agent-1"] == "changed"
    output, _ = await run_flow(imported, _HI, lambda _: json.dumps({"objects": rows}))
    assert output == expected
    both = [*edges, "Agent-1.response > ChatOutput-2.input_value"]
    other = component_of("ChatOutput-2", input_value="")
    assert outcomes(import_flow([CHAT_IN, agent, CHAT_OUT, other], *both))["Agent-1"] == "placeholder"  # fmt: skip


@pytest.mark.parametrize("edges", [[], ["CalculatorComponent-1.result > ChatOutput-1.input_value"]])
def test_a_calculator_is_a_tool_and_no_step(edges: list[str]) -> None:
    calculator, agent = component_of("CalculatorComponent-1"), component_of("Agent-1")
    around = ["ChatInput-1.message > Agent-1.input_value", "Agent-1.response > ChatOutput-1.input_value"]  # fmt: skip
    link = [] if edges else ["CalculatorComponent-1.component_as_tool > Agent-1.tools"]
    imported = import_flow([CHAT_IN, calculator, agent, CHAT_OUT], *around, *link, *edges)
    outcome = outcomes(imported)["CalculatorComponent-1"]
    assert outcome == ("placeholder" if edges else "changed")
    named = {(each["what"], each["name"]) for each in imported.report["setup"]}
    assert (("tool", "calculatorcomponent") in named) == (not edges)


async def test_a_parser_of_the_older_name_fills_in_fields() -> None:
    flow = [CHAT_IN, component_of("TypeConverterComponent-1"), component_of("parser-1", pattern="Got {text}", mode="Parser"), CHAT_OUT]  # fmt: skip
    edges = ["ChatInput-1.message > TypeConverterComponent-1.input_data", "TypeConverterComponent-1.data_output > parser-1.input_data", "parser-1.parsed_text > ChatOutput-1.input_value"]  # fmt: skip
    assert (await run_flow(import_flow(flow, *edges), _HI))[0] == "Got Hi"


# -- loops -----------------------------------------------------------------------------------------

_ROWS = [
    "ChatInput-1.message > TypeConverterComponent-1.input_data", "TypeConverterComponent-1.dataframe_output > LoopComponent-1.data",
    "LoopComponent-1.item > ParserComponent-1.input_data", "LoopComponent-1.done > ChatOutput-1.input_value",
]  # fmt: skip
_STEPS = [
    CHAT_IN, component_of("TypeConverterComponent-1"), component_of("LoopComponent-1"), component_of("ParserComponent-1", pattern="{text}"),
    component_of("OpenAIModel-1", model_name="gpt-5"), CHAT_OUT,
]  # fmt: skip


async def test_a_body_reads_a_step_outside_through_an_input_of_its_own() -> None:
    edges = [
        *_ROWS, "ChatInput-1.message > OpenAIModel-1.system_message", "ParserComponent-1.parsed_text > OpenAIModel-1.input_value",
        "OpenAIModel-1.text_output > LoopComponent-1.@item",
    ]  # fmt: skip
    imported = import_flow(_STEPS, *edges)
    assert imported.report["summary"]["placeholder"] == 0
    assert node_at(imported, "LoopComponent-1")["type"] == "inner"
    assert "again for each row" not in notes_of(imported, "LoopComponent-1")
    text = json.dumps(document_of(_STEPS, edges))
    output, requests = await run_flow(import_text(text, provider="fake"), _HI, lambda r: r.prompt * 2)  # fmt: skip
    assert output == [{"text": "HiHi"}]
    assert (requests[0].system, requests[0].prompt) == ("Hi", "Hi")


async def test_a_loop_over_a_message_has_one_row_and_may_read_what_was_asked_before() -> None:
    before = component_of("OpenAIModel-2", model_name="gpt-5")
    edges = [
        "ChatInput-1.message > LoopComponent-1.data", *_ROWS[2:], "ChatInput-1.message > OpenAIModel-2.input_value",
        "OpenAIModel-2.text_output > OpenAIModel-1.system_message", "ParserComponent-1.parsed_text > OpenAIModel-1.input_value",
        "OpenAIModel-1.text_output > LoopComponent-1.@item",
    ]  # fmt: skip
    flow = [CHAT_IN, *_STEPS[2:5], before, CHAT_OUT]
    imported = import_flow(flow, *edges)
    assert "there it runs again for each row: Openaimodel-2" in notes_of(
        imported, "LoopComponent-1"
    )
    told = import_text(json.dumps(document_of(flow, edges)), provider="fake")
    output, requests = await run_flow(told, _HI, lambda r: f"<{r.prompt}{r.system or ''}>")
    assert output == [{"text": "<Hi<Hi>>"}]
    assert len(requests) == 2


def test_a_body_that_uses_a_model_of_outside_cannot_run() -> None:
    shared = component_of("OpenAIModel-2", model_name="gpt-5")
    agents = [component_of(f"Agent-{i}") for i in (1, 2)]
    edges = [
        *_ROWS, "OpenAIModel-2.model_output > Agent-1.model", "OpenAIModel-2.model_output > Agent-2.model",
        "ParserComponent-1.parsed_text > Agent-1.input_value", "Agent-1.response > LoopComponent-1.@item", "ChatInput-1.message > Agent-2.input_value",
    ]  # fmt: skip
    imported = import_flow([*_STEPS[:4], shared, *agents, CHAT_OUT], *edges)
    assert "'OpenAIModel-2', which is outside of it" in notes_of(imported, "LoopComponent-1")


# -- any flow --------------------------------------------------------------------------------------

_OPERATORS = ["equals", "regex", "less than", "contains", "ends with"]


@st.composite
def routed_flows(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a flow in which routers, agents and texts lead to each other."""

    def texts() -> str:
        return draw(st.sampled_from([*ODD_TEXTS, "5", "{current_date}", "{routes}"]))

    nodes = [CHAT_IN, CHAT_OUT]
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["ConditionalRouter", "SmartRouter", "Agent", "TextInput", "LoopComponent", "CalculatorComponent"]))  # fmt: skip
        fields: dict[str, Any] = {name: texts() for name in ("match_text", "true_case_message", "system_prompt", "input_value", "custom_prompt", "message")}  # fmt: skip
        fields |= {"operator": draw(st.sampled_from(_OPERATORS)), "case_sensitive": draw(st.booleans()), "enable_else_output": draw(st.booleans())}  # fmt: skip
        fields["routes"] = [{"route_category": texts(), "output_value": texts()} for _ in range(draw(st.integers(0, 3)))]  # fmt: skip
        fields["output_schema"] = [{"name": "a", "type": "str"}]
        nodes.append(component_of(f"{kind}-{number + 2}", **fields))
    ids = st.sampled_from([node["id"] for node in nodes])
    outs = st.sampled_from(["message", "text", "true_result", "false_result", "category_1_result", "default_result", "response", "structured_response", "item", "done", "component_as_tool"])  # fmt: skip
    into = st.sampled_from(["input_value", "input_text", "match_text", "data", "@item", "system_prompt", "tools", "message"])  # fmt: skip
    edges = [f"{draw(ids)}.{draw(outs)} > {draw(ids)}.{draw(into)}" for _ in range(draw(st.integers(0, 9)))]  # fmt: skip
    return document_of(nodes, edges)


@given(routed_flows())
def test_any_routed_flow_passes_the_check(document: dict[str, Any]) -> None:
    imported = import_text(json.dumps(document))
    assert_accounted_for(imported, **pointers_of(document))
    assert {each.code for each in findings_of(imported)} <= SETUP_CODES


@given(damaged(routed_flows()))
def test_any_damaged_flow_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "langflow")
    assert_accounted_for(imported, **pointers_of(case.document), secrets=case.secrets)
