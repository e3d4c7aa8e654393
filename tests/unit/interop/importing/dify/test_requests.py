"""http-request steps: what a ``fetch`` sends, where secrets go, and how a failure leads on."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import run_sync
from tests.support.interop.dify_apps import app, chain, data_of, edge, graph_of, start, step
from tests.support.interop.imports import findings_of

URL = "https://a.example/x"
SECRET = "tok_0123456789abcdefgh"


def request(*more: dict[str, Any], edges: Any = (), workflow: Any = None, **data: Any) -> Imported:
    steps = [
        start("v", "w"),
        step("h", "http-request", **{"method": "get", "url": URL, **data}),
        *more,
    ]
    return import_text(app(steps, [*chain("s", "h"), *edges], **(workflow or {})))


JSON_W = '{{ nodes["s"].output.w | fromjson(nodes["s"].output.w) }}'
V, W = '{{ nodes["s"].output.v }}', '{{ nodes["s"].output.w }}'


def test_headers_and_params_are_lines() -> None:
    made = request(
        headers="Accept: a/b\n\nX-V:{{#s.v#}}", params="q:{{#s.v#}}\nt:1\nt:2\nu:http://x"
    )
    assert data_of(made, "h") == {
        "url": URL,
        "headers": {"Accept": "a/b", "X-V": V},
        "params": {"q": V, "t": ["1", "2"], "u": "http://x"},
    }


@pytest.mark.parametrize(
    ("body", "expected", "content_type"),
    [
        ({"type": "none", "data": ""}, {}, None),
        ({"type": "raw-text", "data": "a {{#s.v#}}"}, {"body": f"a {V}"}, "text/plain"),
        (
            {"type": "json", "data": '{"a": "x {{#s.v#}}", "b": [{{#s.w#}}, 1], "c": "{{ lit }}"}'},
            {"json": {"a": f"x {V}", "b": [JSON_W, 1], "c": "{{ '{' }}{ lit }}"}},
            None,
        ),
        (
            {"type": "json", "data": [{"type": "text", "value": '{"a": {{#s.v#}}{{#s.w#}}}'}]},
            {"body": f"{{{{ '{{' }}}}\"a\": {V}{W}}}".replace("{{ '{' }}\"", '{"')},
            "application/json",
        ),
        (
            {"type": "x-www-form-urlencoded", "data": [{"key": "a b", "type": "text", "value": "1&{{#s.v#}}"}]},
            {"body": 'a%20b=1%26{{ nodes["s"].output.v | string | urlencode }}'},
            "application/x-www-form-urlencoded",
        ),
        (
            {"type": "x-www-form-urlencoded", "data": "a:1\nb:2"},
            {"body": "a=1&b=2"},
            "application/x-www-form-urlencoded",
        ),
    ],
)  # fmt: skip
def test_a_body_is_sent_in_its_form(body: Any, expected: Any, content_type: str | None) -> None:
    data = data_of(request(method="post", body=body), "h")
    headers = data.pop("headers", {})
    assert data == {"url": URL, "method": "POST", **expected}
    assert headers.get("Content-Type") == content_type


def test_a_form_with_texts_is_written_in_parts() -> None:
    fields = [{"key": "a", "type": "text", "value": "{{#s.v#}}"}]
    data = data_of(request(method="post", body={"type": "form-data", "data": fields}), "h")
    boundary = data["headers"]["Content-Type"].partition("boundary=")[2]
    assert data["body"] == (
        f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n{V}\r\n--{boundary}--\r\n'
    )


@pytest.mark.parametrize(
    ("data", "headers", "secret"),
    [
        (
            {"authorization": {"type": "api-key", "config": {"type": "bearer", "api_key": SECRET}}},
            {"Authorization": "Bearer {step_h_authorization}"},
            "step_h_authorization",
        ),
        (
            {"authorization": {"type": "api-key", "config": {"type": "custom", "header": "X-Key", "api_key": "{{#env.KEY#}}"}}},
            {"X-Key": "{KEY}"},
            "KEY",
        ),
        ({"headers": f"Authorization: Bearer {SECRET}"}, {"Authorization": "Bearer {step_h_authorization}"}, "step_h_authorization"),
        ({"headers": "X-Key: Token {{#env.KEY#}}"}, {"X-Key": "Token {KEY}"}, "KEY"),
    ],
)  # fmt: skip
def test_secrets_are_names_of_secrets_of_the_operator(data: Any, headers: Any, secret: str) -> None:
    environment = [{"name": "KEY", "value": SECRET, "value_type": "secret"}]
    made = request(**data, workflow={"environment_variables": environment})
    assert data_of(made, "h")["secretHeaders"] == headers
    setup = {(each["what"], each["name"]): each["used_by"] for each in made.report["setup"]}
    assert setup["secret", secret] == ["h"]
    assert SECRET not in str(made)
    assert findings_of(made) == []


def test_two_steps_of_one_title_have_secrets_of_their_own() -> None:
    authorization = {"type": "api-key", "config": {"type": "bearer", "api_key": SECRET}}
    steps = [
        step(each, "http-request", method="get", url=URL, authorization=authorization)
        for each in ("1", "2")
    ]
    for each in steps:
        each["data"]["title"] = "A call"
    made = import_text(app([start("v"), *steps], chain("s", "1", "2")))
    names = [each["name"] for each in made.report["setup"]]
    assert names == ["a_call_authorization", "a_call_authorization_2"]


@pytest.mark.parametrize(
    "data",
    [
        {"method": "options"},
        {"url": "ftp://x"},
        {"url": ""},
        {"url": f"{URL}?api_key={SECRET}"},
        {"params": f"api_key:{SECRET}"},
        {"headers": "a b: c"},
        {"headers": "X-Name: 名"},
        {"headers": "{{#s.v#}}: c"},
        {"body": {"type": "binary", "data": []}},
        {"body": {"type": "form-data", "data": [{"key": "f", "type": "file"}]}},
        {"authorization": {"type": "api-key", "config": {"type": "odd", "api_key": "x"}}},
        {"authorization": {"type": "api-key", "config": {"type": "bearer", "api_key": "{{#s.v#}}"}}},
        {"url": f"{URL}/{{{{#gone.text#}}}}"},
        {"error_strategy": "odd"},
        {"error_strategy": "default-value", "default_value": [{"key": "headers", "value": {}}]},
    ],
)  # fmt: skip
def test_what_cannot_be_sent_makes_the_step_a_placeholder(data: Any) -> None:
    made = request(**data)
    assert made.document["nodes"][1]["type"] == "placeholder"
    assert SECRET not in str(made)


def test_retries_and_limits_are_a_policy() -> None:
    retry = {"retry_enabled": True, "max_retries": 3, "retry_interval": 500}
    made = request(retry_config=retry, timeout={"connect": 5, "read": 10, "write": None})
    assert made.document["nodes"][1].get("policy") == {
        "retry": {"attempts": 4, "backoffS": 0.5},
        "timeoutS": 15,
    }


def failing() -> Any:
    raise ValueError("no answer")


def test_a_failure_branch_is_taken_and_may_read_the_error() -> None:
    ends = [
        step("good", "end", outputs=[{"variable": "body", "value_selector": ["h", "body"]}]),
        step("bad", "end", outputs=[{"variable": "why", "value_selector": ["h", "error_message"]}]),
    ]
    made = request(
        *ends, edges=[edge("h", "good"), edge("h", "bad", "fail-branch")], error_strategy="fail-branch"
    )  # fmt: skip
    assert made.report["summary"]["placeholder"] == 0
    failed = run_sync(graph_of(made), {"v": "", "w": ""}, replace={"h": failing})
    assert "no answer" in failed.output["why"]
    well = run_sync(graph_of(made), {"v": "", "w": ""}, replace={"h": {"a": 1}})
    assert well.output == {"body": '{"a":1}'}


def test_a_default_value_leaves_after_a_failure() -> None:
    last = step("e", "end", outputs=[{"variable": "body", "value_selector": ["h", "body"]}])
    made = request(
        last, edges=chain("h", "e"), error_strategy="default-value",
        default_value=[{"key": "body", "type": "string", "value": "nothing"}],
    )  # fmt: skip
    result = run_sync(graph_of(made), {"v": "", "w": ""}, replace={"h": failing})
    assert result.output == {"body": "nothing"}


def test_certificates_that_are_not_checked_are_said() -> None:
    notes = request(ssl_verify=False).report["nodes"][1]["notes"]
    assert any(note["pointer"].endswith("/data/ssl_verify") for note in notes)


def test_values_in_json_are_texts_between_quotes_and_values_without() -> None:
    variables = [
        {"variable": name, "type": kind, "required": True}
        for name, kind in (("t", "paragraph"), ("n", "number"))
    ]
    body = {
        "type": "json",
        "data": '{"a": "{{#s.n#}}", "b": {{#s.n#}}, "c": "{{#s.t#}}", "d": {{#s.t#}}}',
    }
    call = step("h", "http-request", method="post", url=URL, body=body)
    made = import_text(app([step("s", "start", variables=variables), call], chain("s", "h")))
    fields = {"fields": data_of(made, "h")["json"]}
    shown = import_text(app([step("s", "start", variables=variables)], []))
    graph = graph_of(shown)
    graph["nodes"].append({"id": "t", "type": "transform", "data": fields})
    graph["edges"].append(
        {"id": "e", "source": "s", "sourceHandle": "output", "target": "t", "targetHandle": "input",
         "data": {"channel": "flow"}}
    )  # fmt: skip
    for text, value in (("7", 7), ("[1]", [1]), ("word", "word"), ("{", "{"), ('"q"', "q")):
        result = run_sync(graph, {"t": text, "n": 5}).output
        assert result == {"a": "5", "b": 5, "c": text, "d": value}


def printing_notes(made: Imported) -> list[str]:
    notes = [note["message"] for entry in made.report["nodes"] for note in entry["notes"]]
    return [each for each in notes if "written as JSON" in each]


@pytest.mark.parametrize(
    ("data", "is_said"),
    [
        ({"headers": "A:{{#s.n#}}\nB:{{#s.n#}}"}, True),
        ({"url": f"{URL}/{{{{#s.n#}}}}", "params": "q:{{#s.n#}}"}, True),
        (
            {"method": "post", "body": {"type": "x-www-form-urlencoded", "data": "a:{{#s.n#}}"}},
            True,
        ),
        ({"method": "post", "body": {"type": "form-data", "data": "a:{{#s.n#}}"}}, True),
        ({"method": "post", "body": {"type": "json", "data": '{"a": "{{#s.n#}}"}'}}, True),
        ({"method": "post", "body": {"type": "json", "data": '{"a": {{#s.n#}}}'}}, False),
        ({"headers": "A:{{#s.t#}}", "params": "q:{{#s.t#}}"}, False),
    ],
    ids=str,
)
def test_how_values_are_written_is_said_once_where_they_may_be_no_text(
    data: Any, is_said: bool
) -> None:
    variables = [
        {"variable": name, "type": kind, "required": True}
        for name, kind in (("t", "paragraph"), ("n", "number"))
    ]
    call = step("h", "http-request", **{"method": "get", "url": URL, **data})
    made = import_text(app([step("s", "start", variables=variables), call], chain("s", "h")))
    assert len(printing_notes(made)) == int(is_said)
