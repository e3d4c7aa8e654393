from typing import Annotated, Any

import httpx2
import pytest
from fastapi import FastAPI, Path, Query

from planwave.api.problems import (
    MEDIA_TYPE,
    Problem,
    problem_details,
    problem_response,
    problems,
    register_handlers,
)
from planwave.errors import (
    GraphInvalid,
    LimitExceeded,
    PlanInvalid,
    PlanwaveError,
    ProviderError,
    QueueFull,
    ShuttingDown,
    Unauthorized,
)
from planwave.graph.diagnostics import Diagnostic

CYCLE = Diagnostic("flow-cycle", "error", "a → b → a", "/edges/1", path=("a", "b", "a"), hint="cut")
WARNING = Diagnostic("odd", "warning", "odd", "/nodes/0", node="a")


def test_invalid_graph_lists_all_diagnostics() -> None:
    problem = problem_details(GraphInvalid([CYCLE, WARNING]))
    assert (problem["status"], problem["code"], problem["title"]) == (
        422, "graph-invalid", "graph invalid",
    )  # fmt: skip
    assert problem["issues"] == [CYCLE.as_json(), WARNING.as_json()]
    assert problem["issues"][0]["pointer"] == "/edges/1"
    assert problem["issues"][0]["hint"] == problem["hint"] == "cut"
    Problem.model_validate(problem)


def test_unrepairable_plan_lists_attempts() -> None:
    attempts = [{"reply": "no", "finish_reason": "stop", "diagnostics": []}]
    problem = problem_details(PlanInvalid([CYCLE], attempts))
    assert (problem["code"], problem["attempts"]) == ("plan-invalid", attempts)
    assert problem["issues"] == [CYCLE.as_json()]


def test_exceeded_limit_has_numbers() -> None:
    problem = problem_details(LimitExceeded("goal_chars", 10, 11, what="the goal"))
    assert (problem["status"], problem["limit"], problem["value"], problem["met"]) == (
        413, "goal_chars", 10, 11,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "status", "header", "value"),
    [
        (QueueFull("full", retry_after_s=4.2), 429, "retry-after", "5"),
        (QueueFull("full", retry_after_s=0.01), 429, "retry-after", "1"),
        (ShuttingDown(), 503, "retry-after", "5"),
        (Unauthorized("no"), 401, "www-authenticate", "Bearer"),
    ],
)
def test_problem_has_retry_or_authenticate_header(
    error: PlanwaveError, status: int, header: str, value: str
) -> None:
    answer = problem_response(error)
    assert (answer.status_code, answer.headers[header]) == (status, value)
    assert answer.headers["content-type"] == MEDIA_TYPE


def test_failed_provider_is_named() -> None:
    problem = problem_details(ProviderError("gone", provider="openai", model="m"), "r1")
    assert (problem["status"], problem["provider"], problem["model"]) == (502, "openai", "m")
    assert problem["request_id"] == "r1"


def test_openapi_problem_has_valid_example() -> None:
    described = problems(404, 409)
    assert list(described) == [404, 409]
    content = described[404]["content"][MEDIA_TYPE]
    assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
    Problem.model_validate(content["example"])


def small_app() -> FastAPI:
    app = FastAPI(redirect_slashes=False)
    register_handlers(app)

    @app.get("/things/{thing_id}")
    async def thing(
        thing_id: Annotated[str, Path(pattern="^[a-z]+$")],
        limit: Annotated[int, Query(ge=1)] = 1,
        after: int = 0,
    ) -> dict[str, Any]:
        raise GraphInvalid([CYCLE])

    @app.delete("/things/{thing_id}")
    async def remove(thing_id: str) -> None:
        pass

    return app


async def send_request(method: str, url: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(small_app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, url)


@pytest.mark.parametrize(
    ("method", "url", "status", "code"),
    [
        ("GET", "/things/a", 422, "graph-invalid"),
        ("GET", "/nowhere", 404, "not-found"),
        ("GET", "/things/a/", 404, "not-found"),
        ("GET", "/things/A1", 404, "not-found"),
        ("PATCH", "/things/a", 405, "method-not-allowed"),
        ("GET", "/things/a?limit=0", 422, "invalid-request"),
    ],
)
async def test_every_error_is_a_problem(method: str, url: str, status: int, code: str) -> None:
    answer = await send_request(method, url)
    assert answer.status_code == status
    assert answer.headers["content-type"] == MEDIA_TYPE
    problem = Problem.model_validate(answer.json())
    assert (problem.status, problem.code) == (status, code)


async def test_allow_header_lists_methods() -> None:
    assert (await send_request("PUT", "/things/a")).headers["allow"] == "DELETE, GET, HEAD"


async def test_all_invalid_parameters_are_listed() -> None:
    problem = (await send_request("GET", "/things/a?limit=0&after=x")).json()
    assert [each["parameter"] for each in problem["issues"]] == ["limit", "after"]
    assert problem["detail"].endswith("(and 1 more)")


async def test_echoed_id_is_escaped() -> None:
    detail = (await send_request("GET", "/things/%1b%5b31m%F0%9F%98%80")).json()["detail"]
    assert detail == "'\\x1b[31m😀' is no thing id"
