"""Which URLs, ports and headers a request may have."""

from __future__ import annotations

import httpx2
import pytest

from planwave.errors import OutboundError
from planwave.outbound.urls import (
    AllowedServices,
    check_headers,
    check_service,
    parse_url,
)

REFUSED = {
    "ftp://example.com/": "only http:// and https:// are allowed",
    "file:///etc/passwd": "only http:// and https:// are allowed",
    "data:text/plain,hi": "only http:// and https:// are allowed",
    "javascript:alert(1)": "only http:// and https:// are allowed",
    "gopher://example.com:70/": "only http:// and https:// are allowed",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info": "only http:// and https:// are allowed",
    "//example.com/": "only http:// and https:// are allowed",
    "example.com": "only http:// and https:// are allowed",
    "": "only http:// and https:// are allowed",
    "http:example.com": "it has no host",
    "http:///example.com/": "it has no host",
    "http://": "it has no host",
    "http://user:pw@example.com/": "it holds credentials",
    "http://127.0.0.1%2f@example.com/": "it holds credentials",
    "http://example.com\\@127.0.0.1/": "it has the character '\\\\'",
    "http://example.com/\r\nX-Injected: 1": "it has the character '\\r'",
    "http://example.com/a b": "it has the character ' '",
    "http://example.com/\x00": "it has the character '\\x00'",
    "http://exam%70le.com/": "is not the name of a host",
    "http://a..b/": "is not the name of a host",
    "http://2130706433/": "is not an IP address",
    "http://0x7f000001/": "is not an IP address",
    "http://0177.0.0.1/": "it cannot be read",
    "http://127.1/": "is not an IP address",
    "http://0/": "is not an IP address",
    "http://127.0.0.1./": "is not an IP address",
    "http://1.2.3.0x4/": "is not an IP address",
    "http://[::1/": "it cannot be read",
    "http://[v1.x]/": "",
    "http://[fe80::1%25eth0]/": "",
    "http://①②⑦.⓪.⓪.①/": "it cannot be read",
    "http://example.com:x/": "it cannot be read",
}  # fmt: skip


@pytest.mark.parametrize("url", REFUSED)
def test_a_url_of_a_wrong_form_is_refused(url: str) -> None:
    with pytest.raises(OutboundError) as refused:
        parse_url(url)
    assert (refused.value.code, refused.value.retryable) == ("url-refused", False)
    assert REFUSED[url] in refused.value.message


def test_parameters_are_added_to_the_query() -> None:
    url = parse_url("http://example.com/?a=1", {"b": ["x&y", 2], "c": True})
    assert url.raw_path == b"/?a=1&b=x%26y&b=2&c=true"


@pytest.mark.parametrize("text", ["a" * 70_000, "\ud800"], ids=["long", "half a character"])
def test_a_url_that_cannot_be_encoded_is_refused(text: str) -> None:
    for url, params in ((f"http://example.com/{text}", None), ("http://example.com/", {"a": text})):
        with pytest.raises(OutboundError, match="it cannot be read") as refused:
            parse_url(url, params)
        assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com", "https://example.com:443/a?b=c#d", "HTTPS://EXAMPLE.COM./",
        "http://93.184.216.34/", "http://[2606:4700::1111]/", "https://bücher.example/ä",
        "http://my_host-1.internal/", "http://x-1.2x/",
    ],
)  # fmt: skip
def test_a_url_of_a_right_form_is_parsed(url: str) -> None:
    assert parse_url(url).scheme in ("http", "https")


def test_a_message_shows_no_credentials_and_no_query() -> None:
    for url in ("ftp://u:secret@h/?k=secret", "http://u:secret@h/ ?k=secret", "http://u:secret@h/"):
        with pytest.raises(OutboundError) as refused:
            parse_url(url)
        assert "secret" not in refused.value.message


@pytest.mark.parametrize("port", ["6379", "0", "8080", "22"])
def test_another_port_is_refused_and_the_hint_names_the_service(port: str) -> None:
    with pytest.raises(OutboundError, match=f"port {port} is neither 80 nor 443") as refused:
        check_service(httpx2.URL(f"http://example.com:{port}/"), AllowedServices())
    assert refused.value.hint is not None
    assert f"'example.com:{port}' to the setting allowed_outbound" in refused.value.hint


def test_an_allowed_service_is_a_host_with_its_ports() -> None:
    allowed = AllowedServices(["Wiki.internal", "db.internal:9200", "[::0001]:81", "10.0.0.1:82"])
    there = [
        ("wiki.internal", 80), ("WIKI.internal.", 443), ("db.internal", 9200), ("::1", 81),
        ("10.0.0.1", 82),
    ]  # fmt: skip
    absent = [
        ("wiki.internal", 9200), ("db.internal", 80), ("internal", 80), ("x.wiki.internal", 80),
        ("::1", 80), ("10.0.0.1", 80), ("10.0.0.2", 82),
    ]  # fmt: skip
    assert [each for each in there if each not in allowed] == []
    assert [each for each in absent if each in allowed] == []
    check_service(httpx2.URL("http://db.internal:9200/"), allowed)


def test_only_listed_hosts_and_allowed_services_may_be_requested() -> None:
    allowed = AllowedServices(["wiki.internal:8080"], ["Example.com.", "*.shop.test", "[::0001]"])
    for url in (
        "https://example.com/", "http://EXAMPLE.com./", "https://a.shop.test/", "http://[::1]/",
        "https://b.a.shop.test/", "http://wiki.internal:8080/",
    ):  # fmt: skip
        check_service(httpx2.URL(url), allowed)
    for url, host in (
        ("https://www.example.com/", "www.example.com"), ("https://shop.test/", "shop.test"),
        ("https://evilshop.test/", "evilshop.test"), ("http://wiki.internal/", "wiki.internal"),
        ("https://example.com.evil.test/", "example.com.evil.test"), ("http://10.0.0.1/", "10.0.0.1"),
    ):  # fmt: skip
        with pytest.raises(OutboundError, match=f"the host '{host}' is not among") as refused:
            check_service(httpx2.URL(url), allowed)
        assert refused.value.hint == f"the operator can add '{host}' to the setting outbound_hosts"
    with pytest.raises(OutboundError, match="port 8080 is neither"):
        check_service(httpx2.URL("https://example.com:8080/"), allowed)
    with pytest.raises(OutboundError, match="is not among"):
        check_service(httpx2.URL("https://example.com/"), AllowedServices(hosts=[]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "evil.example"), ("content-length", "1"), ("Transfer-Encoding", "chunked"),
        ("Connection", "close"), ("Accept-Encoding", "br"), ("Proxy-Authorization", "x"),
        ("a b", "x"), ("", "x"), ("a:", "x"), ("ä", "x"), ("x", "a\r\nb: c"), ("x", "a\x00"),
        ("x", "a\nb"), ("x", "中"), ("x", "é"), ("x", " a"), ("x", "a\t"), ("x", "a\n"),
    ],
)  # fmt: skip
def test_a_header_that_would_change_the_request_is_refused(name: str, value: str) -> None:
    with pytest.raises(OutboundError) as refused:
        check_headers({name: value})
    assert refused.value.code == "header-refused"


def test_other_headers_are_allowed() -> None:
    allowed = {"Authorization": "Bearer x", "X-Key": "a=b; c", "Accept": "text/html", "Empty": ""}
    check_headers(allowed)
    for name in allowed:
        with pytest.raises(OutboundError):
            check_headers({**allowed, name: "a\nb"})
