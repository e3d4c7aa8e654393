"""The OpenAPI document says of every route of ours what it takes and gives, and its examples are true."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel

from planwave.api.app import create_app
from planwave.api.json_body import body_model
from planwave.api.openapi import dependencies_of
from planwave.api.routes import catalog, execution_commands, executions, flows, forks, legacy, plans
from planwave.api.schemas import common
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.service.dependencies import dependencies

OURS = [
    route
    for module in (
        plans,
        executions,
        execution_commands,
        forks,
        flows,
        legacy,
        catalog,
    )
    for router in vars(module).values()
    if isinstance(router, APIRouter)
    for route in router.routes
    if isinstance(route, APIRoute)
]


@cache
def document() -> dict[str, Any]:
    return create_app(Settings(), lambda _: Service(dependencies())).openapi()


def operation(route: APIRoute) -> dict[str, Any]:
    (method,) = route.methods
    return document()["paths"][route.path_format][method.lower()]


@pytest.mark.parametrize("route", OURS, ids=lambda route: route.operation_id)
def test_a_route_says_what_it_is_for(route: APIRoute) -> None:
    said = operation(route)
    assert said["tags"]
    assert said["operationId"] == route.operation_id
    assert said["summary"][-1] != "."
    assert said["description"].strip()
    for parameter in said.get("parameters", ()):
        assert parameter["description"]
    for response in said["responses"].values():
        assert response["description"] != "Successful Response"


@pytest.mark.parametrize("route", OURS, ids=lambda route: route.operation_id)
def test_an_answer_has_an_example_that_is_one(route: APIRoute) -> None:
    told = operation(route)["responses"]
    good = {status: each for status, each in told.items() if status[0] == "2" and status != "204"}
    assert good or told.keys() >= {"204"}
    for each in good.values():
        for kind, content in each["content"].items():
            assert content["example"]
            if kind == "application/json":
                model = route.response_model
                assert isinstance(model, type)
                assert issubclass(model, BaseModel)
                model.model_validate(content["example"], extra="forbid")
                assert content["schema"]["$ref"].endswith(f"/{model.__name__}")


@pytest.mark.parametrize("route", OURS, ids=lambda route: route.operation_id)
def test_a_body_has_examples_that_are_taken(route: APIRoute) -> None:
    for model, _ in filter(None, map(body_model, dependencies_of(route.dependant))):
        examples = model.model_json_schema().get("examples") or [
            {
                name: field.examples[0]
                for name, field in model.model_fields.items()
                if field.examples
            }
        ]
        for example in examples:
            model.model_validate(example)


def test_the_graph_of_the_examples_is_sound_and_has_their_hash() -> None:
    from planwave.api.schemas.examples import EXECUTION, GRAPH, PLAN

    graph, _ = read_graph(GRAPH)
    assert PLAN["hash"] == EXECUTION["plan_hash"] == graph_hash(graph)
    common.GraphDocument.model_validate(GRAPH, extra="forbid")


def test_no_two_operations_have_the_same_name() -> None:
    names = [route.operation_id for route in OURS]
    assert len(names) == len(set(names))
