"""Steps that ask a model: the request is the one that Dify would send, or the report says how it differs."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing.importer import Imported, import_text
from planwave.providers.protocols import ModelRequest
from planwave.testing import FakeModel, run_sync
from tests.support.interop.dify_apps import app, chain, data_of, graph_of, start, step

MODEL = {
    "provider": "langgenius/openai/openai",
    "name": "gpt-4o-mini",
    "completion_params": {"temperature": 0.2, "max_tokens": 50, "top_p": 0.5},
}


def llm(*messages: tuple[str, str], mode: str = "workflow", **data: Any) -> Imported:
    prompt = [{"role": role, "text": text} for role, text in messages]
    fields = {"prompt_template": prompt, "model": MODEL, **data}
    last = step("a", "answer", answer="{{#m.text#}}")
    steps = [start("v", w="W"), step("m", "llm", **fields), last]
    return import_text(app(steps, chain("s", "m", "a"), mode=mode))


def request_of(made: Imported, message: Any = None, **options: Any) -> ModelRequest:
    assert made.report["summary"]["placeholder"] == 0, made.report
    model = FakeModel("reply")
    result = run_sync(graph_of(made), message, model=model, **options)
    assert result.text == "reply"
    return model.requests[0]


def test_a_prompt_is_sent_with_its_values_and_settings() -> None:
    made = llm(("system", "Be {{#s.w#}}. {{ literal }} {% no %}"), ("user", "Say {{#s.v#}}{"))
    request = request_of(made, {"v": "x"})
    assert request.system == "Be W. {{ literal }} {% no %}"
    assert request.prompt == "Say x{"
    assert data_of(made, "m")["maxTokens"] == 50
    assert data_of(made, "m")["temperature"] == 0.2
    (note,) = made.report["nodes"][1]["notes"]
    assert "top_p" in note["message"]
    assert note["pointer"] == "/workflow/graph/nodes/1/data/model/completion_params"


def test_braces_around_a_reference_stay() -> None:
    request = request_of(llm(("user", '{"a": {{{#s.v#}}}} {{{#s.w#}} #}')), {"v": "x"})
    assert request.prompt == '{"a": {x}} {W #}'


def test_messages_before_the_last_one_are_sent_as_a_conversation() -> None:
    messages = ("system", "S"), ("user", "one {{#s.v#}}"), ("assistant", "two"), ("user", "three")
    request = request_of(llm(*messages), {"v": "x"})
    assert request.system == "S"
    assert [(m.role, m.text) for m in request.messages] == [
        ("user", "one x"), ("assistant", "two"),
    ]  # fmt: skip
    assert request.prompt == "three"


def test_a_system_message_alone_is_the_prompt() -> None:
    made = llm(("system", "Only this"))
    assert request_of(made, {"v": "x"}).prompt == "Only this"
    assert made.report["nodes"][1]["outcome"] == "changed"


def test_a_jinja_prompt_keeps_its_template() -> None:
    prompt = [
        {
            "role": "user",
            "edition_type": "jinja2",
            "text": "",
            "jinja2_text": "{{ x | upper }} {{ y }}",
        }
    ]
    variables = [{"variable": "x", "value_selector": ["s", "v"]}]
    made = llm(prompt_template=prompt, prompt_config={"jinja2_variables": variables})
    assert request_of(made, {"v": "x"}).prompt == "X "


def test_a_model_that_completes_text_gets_one_prompt() -> None:
    made = llm(prompt_template={"text": "Go on: {{#s.v#}}", "edition_type": "basic"})
    assert request_of(made, {"v": "x"}).prompt == "Go on: x"


def test_the_context_is_the_value_of_its_selector() -> None:
    context = {"enabled": True, "variable_selector": ["s", "w"]}
    assert request_of(llm(("user", "{{#context#}}!"), context=context), {"v": ""}).prompt == "W!"
    off = {"enabled": False, "variable_selector": []}
    assert request_of(llm(("user", "[{{#context#}}]"), context=off), {"v": ""}).prompt == "[]"


def test_a_reply_with_a_schema_is_read_by_its_fields() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    fields = {"prompt_template": [{"role": "user", "text": "x"}], "model": MODEL,
              "structured_output_enabled": True, "structured_output": {"schema": schema}}  # fmt: skip
    outputs = [
        {"variable": "a", "value_selector": ["m", "structured_output", "a"]},
        {"variable": "text", "value_selector": ["m", "text"]},
    ]
    steps = [start("v"), step("m", "llm", **fields), step("e", "end", outputs=outputs)]
    made = import_text(app(steps, chain("s", "m", "e")))
    result = run_sync(graph_of(made), {"v": ""}, model=FakeModel('{"a": "b"}'))
    assert result.output == {"a": "b", "text": '{"a":"b"}'}


def test_memory_is_a_chat_with_the_query_as_its_message() -> None:
    memory = {"window": {"enabled": True, "size": 3}, "query_prompt_template": "Q: {{#sys.query#}}"}
    made = llm(("system", "S"), ("user", "before"), memory=memory, mode="advanced-chat")
    chat = data_of(made, "m-chat")
    assert chat == {
        "system": "S",
        "message": 'Q: {{ nodes["s"].message }}',
        "memory": {"key": '{{ nodes["s"].chatId }}/m', "maxTurns": 3},
    }
    edges = {(e["source"], e["target"], e["targetHandle"]) for e in made.document["edges"]}
    assert {
        ("s", "m-messages", "input"),
        ("m-messages", "m-chat", "customMessages"),
        ("m-chat", "m", "messages"),
    } <= edges
    assert not data_of(made, "m").keys() & {"system", "prompt"}
    assert "import-changed" in {n["code"] for n in made.report["nodes"][1]["notes"]}


def test_memory_in_a_workflow_means_nothing_and_is_named() -> None:
    made = llm(("user", "x"), memory={"window": {"enabled": False}})
    assert request_of(made, {"v": ""}).prompt == "x"
    assert "import-ignored" in {n["code"] for n in made.report["nodes"][1]["notes"]}


def test_images_of_a_chat_go_with_the_message() -> None:
    vision = {"enabled": True, "configs": {"variable_selector": ["sys", "files"], "detail": "high"}}
    made = llm(("system", "S"), ("user", "{{#sys.query#}}"), vision=vision, mode="advanced-chat")
    pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    request = request_of(made, None, inputs={"s": {"message": "look", "images": [pixel]}})
    assert "look" in str(request)
    assert "base64" in str(request)


PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwADAgH/p9F1IgAA"
    "AABJRU5ErkJggg=="
)


@pytest.mark.parametrize(
    ("messages", "images", "turns"),
    [
        ([("system", "S {{#sys.query#}}")], [PIXEL], [("user", "S look", 1)]),
        ([("system", "S")], [], [("user", "S", 0)]),
    ],
)
def test_a_system_message_alone_is_the_message_that_images_go_with(
    messages: Any, images: list[str], turns: list[tuple[str, str, int]]
) -> None:
    vision = {"enabled": True, "configs": {"variable_selector": ["sys", "files"]}}
    made = llm(*messages, vision=vision, mode="advanced-chat")
    request = request_of(made, None, inputs={"s": {"message": "look", "images": images}})
    assert [(each.role, each.text, len(each.images)) for each in request.messages] == turns
    assert request.prompt == ""


@pytest.mark.parametrize("more", [{}, {"vision": {"enabled": True}, "mode": "advanced-chat"}])
def test_a_prompt_that_ends_with_the_assistant_makes_the_step_a_placeholder(more: Any) -> None:
    made = llm(("system", "S"), ("user", "U"), ("assistant", "{"), **more)
    assert made.report["nodes"][1]["outcome"] == "placeholder"
    assert any("does not end with" in each["message"] for each in made.report["lost"])


@pytest.mark.parametrize("given", [PIXEL, [PIXEL], None, []])
def test_images_of_an_input_may_be_one_file_or_several(given: Any) -> None:
    variables = [{"variable": "f", "type": "file", "required": False}]
    vision = {"enabled": True, "configs": {"variable_selector": ["s", "f"]}}
    prompt = [{"role": "user", "text": "look"}]
    steps = [
        step("s", "start", variables=variables),
        step("m", "llm", prompt_template=prompt, model=MODEL, vision=vision),
        step("a", "answer", answer="{{#m.text#}}"),
    ]
    made = import_text(app(steps, chain("s", "m", "a"), mode="advanced-chat"))
    request = request_of(made, None, inputs={"s": {"message": "x", "variables": {"f": given}}})
    assert len(request.messages[0].images if request.messages else ()) == (1 if given else 0)


@pytest.mark.parametrize(
    "text",
    ["{{#gone.text#}}", "{{#m.text#}}", "{{#histories#}}", "{{#a.b.c#}}", "{{#sys.user_id#}}"],
)
def test_a_reference_that_cannot_be_read_makes_the_step_a_placeholder(text: str) -> None:
    made = llm(("user", f"Say {text}"))
    assert made.document["nodes"][1]["type"] == "placeholder"
    assert made.report["lost"][0]["text"] == text
    assert made.report["lost"][0]["pointer"].endswith("/prompt_template/0/text")


def test_an_agent_has_a_placeholder_for_each_tool_that_is_on() -> None:
    parameters = {
        "instruction": {"type": "constant", "value": "Be {{#s.w#}}"},
        "query": {"type": "variable", "value": ["s", "v"]},
        "model": {"type": "constant", "value": {"provider": "x/y/openai", "model": "gpt-4o-mini"}},
        "maximum_iterations": {"type": "constant", "value": 7},
        "tools": {"value": [
            {"tool_name": "find", "provider_name": "web", "settings": {"n": 5, "api_key": "tok_0123456789abcdefgh"}},
            {"tool_name": "off", "enabled": False},
        ]},
    }  # fmt: skip
    steps = [start("v", w="W"), step("m", "agent", agent_parameters=parameters)]
    made = import_text(app(steps, chain("s", "m")))
    data = data_of(made, "m")
    assert data["maxSteps"] == 7
    assert data["systemPrompt"] == 'Be {{ nodes["s"].output.w | default("W") }}'
    tools = [n for n in made.document["nodes"] if n["type"] == "placeholder"]
    assert [n["data"]["name"] for n in tools] == ["find"]  # type: ignore[typeddict-item]
    assert [each["what"] for each in made.report["setup"]] == ["provider", "tool"]
    assert "tok_" not in str(made)
