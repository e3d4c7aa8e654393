from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.routing import RouteContext
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from planwave.api.app import create_app
from planwave.api.auth import require_principal
from planwave.api.dependencies import PreassignedIdDep
from planwave.api.json_body import json_body
from planwave.api.openapi import build_openapi, dependencies_of, http_routes
from planwave.api.problems import MEDIA_TYPE, Problem
from planwave.api.routes.executions import ExecuteOptionsModel
from planwave.api.routes.imports import FILE_TYPES
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.server.documented_shapes import check_shape
from tests.support.service.dependencies import dependencies

HOOKS = "/hooks/{hook_id}"
"""It takes and answers whatever the flow behind it does."""
LINK = "/links/{key}"
"""It shows pages, and takes what their forms send."""
OPEN = {"/healthz", "/readyz", "/api/session", HOOKS, LINK}


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(Settings(), lambda _: Service(dependencies()))


@pytest.fixture(scope="module")
def whole(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def operations(whole: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, methods in whole["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_operation_is_described(whole: dict[str, Any]) -> None:
    for method, path, operation in operations(whole):
        assert operation["summary"][-1] != ".", (method, path)
        assert operation["description"].strip(), (method, path)
        assert operation["tags"], (method, path)
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (method, path)
        for response in operation["responses"].values():
            assert response["description"] not in ("", "Successful Response"), (method, path)
            for content in response.get("content", {}).values():
                assert content["schema"], (method, path)


def test_every_error_response_is_a_problem_with_example(whole: dict[str, Any]) -> None:
    for method, path, operation in operations(whole):
        for status, response in operation["responses"].items():
            if "400" <= status < "600" and path.startswith("/v1/"):
                assert list(response["content"]) == ["application/json"], (method, path, status)
                example = response["content"]["application/json"]["example"]
                check_shape(example, "OpenAIError")
            elif path == LINK and "text/html" in response.get("content", {}):
                continue  # a page
            elif "400" <= status < "600":
                assert list(response["content"]) == [MEDIA_TYPE], (method, path, status)
                Problem.model_validate(response["content"][MEDIA_TYPE]["example"])
        assert {"403", "408", "431", "500", "503"} <= set(operation["responses"])


def test_security_is_documented_for_every_operation_but_health(
    app: FastAPI, whole: dict[str, Any]
) -> None:
    for method, path, operation in operations(whole):
        if path not in OPEN or method == "delete":
            assert operation["security"] == [{"token": []}, {"session": []}], (method, path)
            assert {"401", "429"} <= set(operation["responses"]), (method, path)
    for route in http_routes(app):
        is_open = route.path in {*OPEN, "/llms.txt"} and route.methods != {"DELETE"}
        assert (require_principal in list(dependencies_of(route.dependant))) is not is_open, (
            route.path
        )


def test_every_body_has_schema_and_error_responses(whole: dict[str, Any]) -> None:
    for method, path, operation in operations(whole):
        if (body := operation.get("requestBody")) is not None and path not in (HOOKS, LINK):
            media_type, *others = body["content"]
            assert media_type == "application/json"
            assert tuple(others) == (FILE_TYPES if path == "/api/import" else ()), (method, path)
            name = body["content"][media_type]["schema"]["$ref"].rpartition("/")[2]
            assert name in whole["components"]["schemas"], (method, path)
            assert {"400", "413", "415", "422"} <= set(operation["responses"]), (method, path)


def test_idempotency_key_is_documented_where_it_applies(whole: dict[str, Any]) -> None:
    for method, path, operation in operations(whole):
        names = [each["name"] for each in operation.get("parameters", ())]
        takes_one = method == "post" and path not in ("/api/session", HOOKS, LINK)
        assert ("Idempotency-Key" in names) is takes_one, (method, path)
        if takes_one:
            assert {"409", "422"} <= set(operation["responses"]), (method, path)


def test_body_limit_is_documented_for_every_operation(whole: dict[str, Any]) -> None:
    assert all("413" in operation["responses"] for _, _, operation in operations(whole))


def test_every_reference_resolves(whole: dict[str, Any]) -> None:
    known = set(whole["components"]["schemas"])

    def refs(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = (
                {value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set()
            )
            return own.union(*map(refs, value.values()))
        return set().union(*map(refs, value)) if isinstance(value, list) else set()

    assert refs(whole) <= known
    assert not known & {"HTTPValidationError", "ValidationError"}


def test_every_json_response_has_a_shape_with_a_name(whole: dict[str, Any]) -> None:
    for method, path, operation in operations(whole):
        for status, response in operation["responses"].items():
            schema = response.get("content", {}).get("application/json", {}).get("schema")
            if status.startswith("2") and schema is not None and path != HOOKS:
                assert all("$ref" in each for each in schema.get("anyOf", [schema])), (method, path)


def test_no_two_types_share_a_name(whole: dict[str, Any]) -> None:
    # Pydantic tells such types apart by the modules that they are in.
    assert not [name for name in whole["components"]["schemas"] if "__" in name]


def test_docstrings_of_fields_are_their_descriptions(whole: dict[str, Any]) -> None:
    flow = whole["components"]["schemas"]["FlowResponse"]["properties"]
    assert flow["hash"]["description"].startswith("Of the graph: the `ETag`")
    assert (
        flow["name"]["description"] == "Unique without regard to case."
    )  # of the shape it extends
    principal = whole["components"]["schemas"]["PrincipalDocument"]["properties"]
    assert (
        principal["by"]["description"] == "Who set up the trigger or the chat, or created the link."
    )


def test_optional_options_have_defaults(whole: dict[str, Any]) -> None:
    for body in ("ExecuteRequest", "RunRequest"):
        options = whole["components"]["schemas"][body]["properties"]["options"]
        assert options["default"] == ExecuteOptionsModel().model_dump(mode="json")


def test_operation_ids_are_unique(whole: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(whole)]
    assert len(names) == len(set(names))


def test_custom_route_is_completed() -> None:
    app = FastAPI()

    class Part(BaseModel):
        size: int

    class Body(BaseModel):
        parts: list[Part]

    @app.post("/api/made", dependencies=[Depends(require_principal)])
    async def make(
        subject: PreassignedIdDep,
        body: Annotated[Body, json_body(Body, may_be_empty=True)],
        limit: int = 1,
    ) -> int:
        return 1

    whole = build_openapi(app, app.openapi)
    operation = whole["paths"]["/api/made"]["post"]
    assert operation["requestBody"]["required"] is False
    assert [each["name"] for each in operation["parameters"]] == ["limit", "Idempotency-Key"]
    assert set(operation["responses"]) == {
        "200", "400", "401", "403", "408", "409", "413", "415", "422", "429", "431", "500", "503",
    }  # fmt: skip
    _, models = models_json_schema(
        [(Body, "validation")], ref_template="#/components/schemas/{model}"
    )
    for name in ("Body", "Part"):
        assert whole["components"]["schemas"][name] == models["$defs"][name]
    (route,) = [each for each in http_routes(app) if each.path == "/api/made"]
    assert isinstance(route, RouteContext)
