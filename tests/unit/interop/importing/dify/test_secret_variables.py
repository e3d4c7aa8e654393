"""Variables of the environment that are used as secrets: never copied, whatever type they have in the file."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing.importer import import_text
from tests.support.interop.dify_apps import app, chain, data_of, start, step


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        ({"headers": "Authorization:{{#env.session#}}"}, "changed"),
        ({"headers": "Authorization: Bearer {{#env.session#}}"}, "changed"),
        ({"headers": [{"key": "X-Api-Key", "value": "{{#env.session#}}"}]}, "changed"),
        ({"params": "api_key:{{#env.session#}}"}, "placeholder"),
        ({"url": "https://a.example/?token={{#env.session#}}"}, "placeholder"),
        (
            {"method": "post", "body": {"type": "json", "data": '{"pass": "{{#env.session#}}"}'}},
            "placeholder",
        ),
        ({"headers": "X-Name:{{#env.session#}}"}, "plain"),
        ({"params": "q:{{#env.session#}}"}, "plain"),
    ],
    ids=str,
)
def test_a_variable_that_is_used_as_a_secret_is_one(data: Any, outcome: str) -> None:
    variables = [{"name": "session", "value_type": "string", "value": "plain words"}]
    call = step("h", "http-request", **{"method": "get", "url": "https://a.example/x", **data})
    made = import_text(app([start("v"), call], chain("s", "h"), environment_variables=variables))
    entry = made.report["nodes"][1]
    if outcome == "plain":
        assert "plain words" in str(made.document)
        return
    assert entry["outcome"] == outcome
    assert "plain words" not in str([made.document, made.report])
    assert [each["name"] for each in made.report["setup"]] == ["session"]
    assert "is used as a secret" in made.report["notes"][0]["message"]
    if outcome == "changed":
        headers = data_of(made, "h")["secretHeaders"]
        assert next(iter(headers.values())).endswith("{session}")
