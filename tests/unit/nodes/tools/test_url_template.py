"""Addresses with placeholders: what may be one, and that no argument changes their structure."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import ToolError
from planwave.nodes.tools.url_template import (
    UrlTemplateError,
    parse_url_template,
)
from planwave.outbound.urls import parse_url

TEMPLATE = parse_url_template("https://api.test/v1/orders/{id}/lines?state={state}&fixed=1")

HOSTILE = [
    "../admin", "..", ".", "", "a/../b", "/etc/passwd", "//evil.test/", "a//b", "..\\admin", "%2e%2e",
    "%2e%2e%2fadmin", "%252e%252e%252f", "?admin=1", "#x", "@evil.test", "evil.test:80",
    "a\r\nHost: evil.test", "\r\n\r\n", "\0", "ä/ö", "x;y=1", "a&b=c", "a=b", " ", "+", "\uff05\uff12\uff45", "\u202e",
    "\ud800", "http://evil.test/", "..;/", "\u2024\u2024/", "{state}", "%00", "%0d%0a", "\uff11", "\t", "\u0085",
]  # fmt: skip


def structure(url: str) -> tuple[Any, ...]:
    """Return what no argument may change: origin, number of segments, names in the query."""
    parts = urlsplit(url)
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return parts.scheme, parts.netloc, parts.path.count("/"), names, parts.fragment


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", ["id", "state"])
def test_hostile_arguments_are_encoded_or_refused(name: str, value: str) -> None:
    arguments = {"id": "7", "state": "open", name: value}
    try:
        url = TEMPLATE.fill(arguments)
    except ToolError as error:
        refused = error.code, repr(name) in error.message
        assert refused == ("invalid-arguments", True)
        return
    assert structure(url) == structure(TEMPLATE.fill({"id": "7", "state": "open"}))
    sent = parse_url(url)
    assert sent.raw_path.decode() == url.removeprefix("https://api.test")
    segments = sent.raw_path.decode().partition("?")[0].split("/")
    assert unquote(segments[3] if name == "id" else segments[4]) in (value, "lines")
    assert dict(parse_qsl(sent.query.decode(), keep_blank_values=True)) == {
        "state": arguments["state"], "fixed": "1",
    }  # fmt: skip


@given(st.text(), st.text())
def test_no_text_changes_the_structure(first: str, second: str) -> None:
    try:
        url = TEMPLATE.fill({"id": first, "state": second}, {"more": second})
    except ToolError:
        return
    plain = TEMPLATE.fill({"id": "7", "state": "open"}, {"more": "x"})
    assert structure(str(parse_url(url))) == structure(plain)
    assert url.isascii()


@pytest.mark.parametrize(
    "value", ["..", "a/../b", "%2e%2e%2fadmin", "", "/x", "x/", "a\r\nb", "\0"]
)
def test_what_a_server_may_read_as_another_path_is_refused(value: str) -> None:
    with pytest.raises(ToolError):
        TEMPLATE.fill({"id": value})


def test_placeholders_side_by_side_cannot_make_a_dot_segment() -> None:
    template = parse_url_template("https://api.test/{a}{b}/x")
    assert template.fill({"a": "1", "b": "2"}) == "https://api.test/12/x"
    with pytest.raises(ToolError, match="'a', 'b' may not be"):
        template.fill({"a": ".", "b": "."})


@pytest.mark.parametrize(
    ("text", "arguments", "url"),
    [
        ("https://a.test", {}, "https://a.test"),
        ("https://a.test?q={q}", {"q": "x"}, "https://a.test?q=x"),
        ("https://a.test/x?q={q}&s=1", {}, "https://a.test/x?s=1"),
        ("https://a.test/x?q={q}", {"q": None}, "https://a.test/x"),
        ("https://a.test/x?q={q}", {"q": ["a b", 2, True]}, "https://a.test/x?q=a%20b&q=2&q=true"),
        ("https://a.test/x?q={q}", {"q": {"k": 1}}, "https://a.test/x?q=%7B%22k%22%3A1%7D"),
        ("https://a.test/x?q=by:{a}-{b}", {"a": "&", "b": 1.5}, "https://a.test/x?q=by:%26-1.5"),
        ("https://a.test/x?q=by:{a}-{b}", {"a": "&"}, "https://a.test/x"),
        ("https://a.test/x?flag&q={q}", {"q": 1}, "https://a.test/x?flag&q=1"),
        ("HTTPS://A.test:8443/{n}.json", {"n": "a/b"}, "HTTPS://A.test:8443/a%2Fb.json"),
        (" http://[::1]:80/{n}\n", {"n": False}, "http://[::1]:80/false"),
    ],
)
def test_arguments_fill_path_and_query(text: str, arguments: dict[str, Any], url: str) -> None:
    assert parse_url_template(text).fill(arguments) == url


def test_more_parameters_follow_those_of_the_template() -> None:
    template = parse_url_template("https://a.test/x?s=1")
    more = {"a b": "c&d", "list": [1, 2], "none": None}
    assert template.fill({}, more) == "https://a.test/x?s=1&a%20b=c%26d&list=1&list=2"


@pytest.mark.parametrize("value", [None, ["a"], {"a": 1}])
def test_only_text_and_numbers_fill_the_path(value: Any) -> None:
    with pytest.raises(ToolError, match="the argument 'id' is"):
        TEMPLATE.fill({"id": value})


@pytest.mark.parametrize(
    "text",
    [
        "", "orders/{id}", "ftp://a.test/{x}", "https://{host}/x", "https://a.test:{port}/x",
        "https://{user}@a.test/", "{scheme}://a.test/", "https://a.test/x#{part}",
        "https://a.test/x#part", "https://a.test/{ id }", "https://a.test/{{ input }}",
        "https://a.test/{id", "https://a.test/x}", "https://a.test/?{name}=1", "https://a.test/?{name}",
        "https://u:p@a.test/", "https://a.test/a b", "https://a.test\\{x}", "https:///{x}",
        "https://a.test{x}/",
    ],
)  # fmt: skip
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(UrlTemplateError):
        parse_url_template(text)


def test_a_template_knows_its_names() -> None:
    template = parse_url_template("https://a.test/{b}/{a}?x={c}&%79={a}")
    assert (template.path_names, template.query_names) == (["b", "a"], ["c", "a"])
    assert (template.names, template.query_keys) == ({"a", "b", "c"}, {"x", "y"})
