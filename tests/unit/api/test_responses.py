from __future__ import annotations

from planwave.api.responses import json_response, json_response_in_thread


def test_an_answer_is_json_and_says_where_what_was_made_is_found() -> None:
    answer = json_response({"a": 1}, 201, location="/api/plans/x")
    assert (answer.status_code, answer.body) == (201, b'{"a":1}')
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["location"] == "/api/plans/x"
    assert "location" not in json_response({}).headers


async def test_a_large_answer_is_the_same_as_a_small_one() -> None:
    assert (await json_response_in_thread({"a": "\ud800"})).body == json_response(
        {"a": "\ud800"}
    ).body
