"""The data of ``sse`` nodes: headers that name secrets."""

from __future__ import annotations

import pytest

from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from tests.support.nodes.node_checks import check_node


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Authorization": "Bearer {crm}"}, []),
        ({"Authorization": "Bearer {crn}"}, ["unknown-secret"]),
        ({"Authorization": "Bearer hush"}, ["invalid-data"]),
    ],
)
def test_secret_headers_name_known_secrets(headers: dict[str, str], expected: list[str]) -> None:
    registry = Registry(LIBRARY).with_providers(None, secrets={"crm"})
    data = {"url": "https://a.test/", "secretHeaders": headers}
    found = check_node("sse", data, registry=registry)
    assert [each.code for each in found] == expected
