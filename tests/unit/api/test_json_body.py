import json
from typing import Annotated, Any, Literal

import httpx2
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, RootModel

from planwave.api.auth import Authenticator
from planwave.api.dependencies import AppState
from planwave.api.json_body import json_body
from planwave.api.problems import register_handlers
from planwave.api.routes.mcp import McpGate
from planwave.interop.mcp_server.endpoint import McpEndpoint
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.triggers.host import TriggerHost
from tests.support.service.dependencies import dependencies

JSON = {"content-type": "application/json"}


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: int


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    goal: Annotated[str, Field(min_length=1)]
    how: Literal["fast", "slow"] = "fast"
    parts: list[Part | str] = Field(default_factory=list)
    names: dict[str, Part] = Field(default_factory=dict)


class Anything(RootModel[Any]):
    pass


class Nothing(BaseModel):
    why: str = "because"


def echo() -> FastAPI:
    app = FastAPI()
    register_handlers(app)
    settings = Settings()
    service = Service(dependencies())
    authenticator = Authenticator(settings)
    mcp = McpEndpoint(service, McpGate(authenticator))
    app.state.planwave = AppState(
        settings, service, authenticator, TriggerHost(service, settings), mcp
    )

    @app.post("/echo")
    async def answer(body: Annotated[Body, json_body(Body)]) -> Body:
        return body

    @app.post("/anything")
    async def anything(body: Annotated[Anything, json_body(Anything)]) -> Anything:
        return body

    @app.post("/nothing")
    async def nothing(body: Annotated[Nothing, json_body(Nothing, may_be_empty=True)]) -> Nothing:
        return body

    return app


async def sent(
    content: bytes | str, headers: dict[str, str] | None = None, path: str = "/echo"
) -> httpx2.Response:
    transport = httpx2.ASGITransport(echo())
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.post(
            path, content=content, headers=JSON if headers is None else headers
        )


async def test_valid_body_becomes_its_model() -> None:
    answer = await sent('{"goal": "go", "parts": [{"size": 2}, "x"]}')
    assert answer.json() == {
        "goal": "go", "how": "fast", "parts": [{"size": 2}, "x"], "names": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "status", "code", "pointer"),
    [
        ("", 400, "invalid-json", ""),
        ("{", 400, "invalid-json", ""),
        (b'{"goal": "\xff\xfe"}', 400, "invalid-json", ""),
        ('{"goal": "\\ud800"}', 422, "invalid-text", "/goal"),
        ('{"goal": "a", "goal": "b"}', 422, "duplicate-key", ""),
        ('{"goal": NaN}', 422, "invalid-number", "/goal"),
        (f'{{"goal": {"[" * 33}{"]" * 33}}}', 413, "limit-exceeded", ""),
        ("[" * 50_000, 413, "limit-exceeded", ""),
        ("[]", 422, "invalid-body", ""),
        ("null", 422, "invalid-body", ""),
    ],
)
async def test_ambiguous_json_is_rejected(
    content: bytes | str, status: int, code: str, pointer: str
) -> None:
    answer = await sent(content)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code)
    assert problem["issues"][0]["pointer"] == pointer


async def test_nesting_is_limited() -> None:
    deepest = Settings().limits.json_depth
    answer = await sent(f'{{"goal": {"[" * deepest}{"]" * deepest}}}')
    assert [issue["pointer"] for issue in answer.json()["issues"]] == ["/goal"]
    answer = await sent(f'{{"goal": {"[" * (deepest + 1)}{"]" * (deepest + 1)}}}')
    assert answer.status_code == 413
    assert f"limit json_depth is {deepest}, met more than {deepest}" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("content", "code", "pointer"),
    [
        ("{}", "missing-field", "/goal"),
        ('{"goal": ""}', "invalid-field", "/goal"),
        ('{"goal": "a", "how": "odd"}', "invalid-field", "/how"),
        ('{"goal": "a", "a/b": 1}', "unknown-field", "/a~1b"),
        ('{"goal": "a", "names": {"x/y": {}}}', "missing-field", "/names/x~1y/size"),
        ('{"goal": "a", "names": {"x": {"size": "1"}}}', "invalid-field", "/names/x/size"),
    ],
)
async def test_invalid_field_has_pointer(content: str, code: str, pointer: str) -> None:
    problem = (await sent(content)).json()
    assert (problem["status"], problem["code"]) == (422, "invalid-body")
    assert [(each["code"], each["pointer"]) for each in problem["issues"]] == [(code, pointer)]


async def test_all_invalid_fields_are_listed() -> None:
    content = '{"goal": 1, "parts": [{"size": "x"}], "more": 1}'
    problem = (await sent(content)).json()
    assert problem["code"] == "invalid-body"
    assert {each["pointer"] for each in problem["issues"]} == {
        "/goal", "/parts/0/size", "/parts/0", "/more",
    }  # fmt: skip
    unknown = next(each for each in problem["issues"] if each["code"] == "unknown-field")
    assert unknown["hint"] == "known are: goal, how, parts, names"


@pytest.mark.parametrize(
    ("content", "pointer", "hint"),
    [
        ('{"gaol": 1}', "/gaol", "did you mean 'goal'? known are: goal, how, parts, names"),
        ('{"names": {"x": {"sise": 1}}}', "/names/x/sise", "did you mean 'size'? known are: size"),
        ('{"parts": [{"sise": 1}]}', "/parts/0/sise", "did you mean 'size'? known are: size"),
    ],
)
async def test_an_unknown_field_at_any_depth_has_a_suggestion(
    content: str, pointer: str, hint: str
) -> None:
    issues = (await sent(content)).json()["issues"]
    assert hint in [each.get("hint") for each in issues if each["pointer"] == pointer]


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=a"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/jsonp"},
        {"content-type": ""},
        {},
        {**JSON, "content-encoding": "gzip"},
    ],
)
async def test_other_content_type_is_rejected(headers: dict[str, str]) -> None:
    answer = await sent('{"goal": "go"}', headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")


@pytest.mark.parametrize(
    "kind",
    ["application/json", "Application/JSON ; charset=UTF-8", 'application/json;charset="utf-8"'],
)
async def test_json_content_type_variants_are_accepted(kind: str) -> None:
    assert (await sent('{"goal": "go"}', {"content-type": kind})).status_code == 200


async def test_optional_body_uses_defaults() -> None:
    answer: Any = await sent(b"", {}, "/nothing")
    assert answer.json() == {"why": "because"}


@pytest.mark.parametrize("given", [None, 1, "x", [], {"a": [1]}])
async def test_root_model_takes_any_json_and_no_empty_body(given: Any) -> None:
    answer = await sent(json.dumps(given), path="/anything")
    assert (answer.status_code, answer.json()) == (200, given)
    assert (await sent("", path="/anything")).status_code == 400
    assert (await sent('{"a": 1, "a": 2}', path="/anything")).status_code == 422
