from __future__ import annotations

from planwave.api.responses import json_response, json_response_in_thread


def test_json_response_has_status_and_location() -> None:
    answer = json_response({"a": 1}, 201, location="/api/plans/x")
    assert (answer.status_code, answer.body) == (201, b'{"a":1}')
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["location"] == "/api/plans/x"
    assert "location" not in json_response({}).headers


async def test_threaded_response_equals_direct_response() -> None:
    assert (await json_response_in_thread({"a": "\ud800"})).body == json_response(
        {"a": "\ud800"}
    ).body
