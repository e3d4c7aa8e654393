from __future__ import annotations

from planwave.api.rendering import rendered, rendered_aside


def test_an_answer_is_json_and_says_where_what_was_made_is_found() -> None:
    answer = rendered({"a": 1}, 201, location="/api/plans/x")
    assert (answer.status_code, answer.body) == (201, b'{"a":1}')
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["location"] == "/api/plans/x"
    assert "location" not in rendered({}).headers


async def test_a_large_answer_is_the_same_as_a_small_one() -> None:
    assert (await rendered_aside({"a": "\ud800"})).body == rendered({"a": "\ud800"}).body
