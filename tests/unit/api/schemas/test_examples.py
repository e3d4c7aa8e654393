"""The OpenAPI document says of every route of ours what it takes and gives, and its examples are true."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from planwave.api.app import create_app
from planwave.api.json_body import body_model
from planwave.api.openapi import dependencies_of
from planwave.api.routes import (
    catalog,
    execution_commands,
    executions,
    flows,
    forks,
    legacy,
    plans,
    revisions,
)
from planwave.api.routes.triggers import bindings
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.server.documented_shapes import check_shape
from tests.support.service.dependencies import dependencies

OURS = [
    route
    for module in (
        plans,
        revisions,
        executions,
        execution_commands,
        forks,
        flows,
        bindings,
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
def test_response_example_has_the_documented_shape(route: APIRoute) -> None:
    received = operation(route)["responses"]
    good = {
        status: each for status, each in received.items() if status[0] == "2" and status != "204"
    }
    assert good or received.keys() >= {"204"}
    for each in good.values():
        for kind, content in each["content"].items():
            assert content["example"]
            if kind == "application/json":
                check_shape(content["example"], content["schema"]["$ref"].rpartition("/")[2])


@pytest.mark.parametrize("route", OURS, ids=lambda route: route.operation_id)
def test_body_examples_match_their_model(route: APIRoute) -> None:
    for model, _ in filter(None, map(body_model, dependencies_of(route.dependant))):
        examples = model.model_json_schema().get("examples") or [
            {
                name: field.examples[0]
                for name, field in model.model_fields.items()
                if field.examples
            }
        ]
        for example in examples:
            read = model.model_validate(example)
            assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == example


def test_example_graph_is_valid_and_has_the_example_hash() -> None:
    from planwave.api.schemas.examples import EDITED_PLAN, EXECUTION, GRAPH, PLAN

    graph, _ = read_graph(GRAPH)
    assert PLAN["hash"] == EXECUTION["plan_hash"] == graph_hash(graph)
    edited, _ = read_graph({"nodes": EDITED_PLAN["nodes"], "edges": EDITED_PLAN["edges"]})
    assert EDITED_PLAN["hash"] == graph_hash(edited)
    check_shape(GRAPH, "GraphDocument")
