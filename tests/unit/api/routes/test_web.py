import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from planwave.api.app import create_app
from planwave.api.routes.web import WebUI
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.paths import ROOT
from tests.support.server.in_process_client import PROBLEM_TYPE, asgi_client
from tests.support.service.dependencies import dependencies

PAGE = """<!doctype html>
<html><head><base href="/" /><script type="module" src="./assets/index-abc.js"></script></head></html>
"""
SCRIPT = "console.log('a script');\n" * 100
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(PAGE, "utf-8")
    (tmp_path / "assets" / "index-abc.js").write_text(SCRIPT, "utf-8")
    (tmp_path / "favicon.svg").write_text("<svg/>", "utf-8")
    (tmp_path / ".made-from").write_text("hash", "utf-8")
    return tmp_path


def app_with(directory: Path, **settings: str) -> FastAPI:
    """Return an application whose web UI is built in a directory."""
    app = create_app(Settings(**settings), lambda _: Service(dependencies()))
    assert isinstance(app.router.default, WebUI)
    app.router.default = WebUI(app.router.not_found, settings.get("root_path", ""), directory)
    return app


@pytest.fixture
async def client(built: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with asgi_client(app_with(built, token="tok")) as opened:
        yield opened


@pytest.mark.parametrize("path", ["/", "/runs/1", "/runs/1/steps/a.b", "/plans/1", "/index.html"])
async def test_page_is_served_without_token_at_its_own_addresses(
    client: httpx2.AsyncClient, path: str
) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert '<base href="/" />' in answer.text
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    head = await client.head(path)
    assert (head.status_code, head.content) == (200, b"")


async def test_every_route_of_the_page_is_one_of_its_addresses(client: httpx2.AsyncClient) -> None:
    routes = (ROOT / "web/src/app/routes.tsx").read_text("utf-8")
    segments = set(re.findall(r'path: "/?([a-z]+)', routes))
    assert "settings" in segments
    for segment in segments:
        assert (await client.get(f"/{segment}")).status_code == 200, segment


async def test_page_allows_no_inline_script_other_host_or_frame(client: httpx2.AsyncClient) -> None:
    pages = [await client.get("/") for _ in range(2)]
    nonces = set[str]()
    for page in pages:
        policy = dict(
            part.split(" ", 1) for part in page.headers["content-security-policy"].split("; ")
        )
        assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'self'"
        assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
        assert "script-src" not in policy
        assert "unsafe" not in page.headers["content-security-policy"]
        told = re.search(r'<meta name="style-nonce" content="([^"]+)" />', page.text)
        assert told is not None
        assert policy["style-src"] == f"'self' 'nonce-{told[1]}'"
        nonces.add(told[1])
    assert len(nonces) == 2


async def test_only_browsers_get_page_at_addresses_that_it_does_not_know(
    client: httpx2.AsyncClient,
) -> None:
    assert (await client.get("/nowhere", headers=BROWSER)).status_code == 200
    answer = await client.get("/nowhere")
    assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM_TYPE)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/nothing", 404),
        ("/api", 404),
        ("/ws/x", 401),
        ("/ws", 404),
        ("/docs", 401),
        ("/openapi.json", 401),
        ("/metrics", 401),
        ("/assets/gone-123.js", 404),
        ("/assets/", 404),
        ("/assets/%2e%2e/%2e%2e/pyproject.toml", 404),
        ("/assets/%00.js", 404),
        (f"/assets/{'x' * 5000}", 404),
        ("/robots.txt", 404),
    ],
)
async def test_page_hides_no_other_address(
    client: httpx2.AsyncClient, path: str, status: int
) -> None:
    answer = await client.get(path, headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM_TYPE)


async def test_dot_files_are_not_served(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/.made-from")).status_code == 404
    assert "hash" not in (await client.get("/.made-from", headers=BROWSER)).text


async def test_health_and_methods_of_routes_stay(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/healthz", headers=BROWSER)).json() == {"status": "ok"}
    answer = await client.delete("/api/plans", headers={"Authorization": "Bearer tok"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("method", ["OPTIONS", "CONNECT", "TRACE", "POST", "PUT", "DELETE", "FOO"])
async def test_pages_and_files_have_get_and_head_only(
    client: httpx2.AsyncClient, method: str
) -> None:
    for path in ("/", "/runs/1", "/index.html", "/favicon.svg", "/assets/index-abc.js"):
        answer = await client.request(method, path, headers=BROWSER)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD"), path
        assert answer.headers["content-type"] == PROBLEM_TYPE
    for path in ("/nowhere", "/api/nothing", "/assets/..%2findex.html", "/v1/nothing"):
        answer = await client.request(method, path, headers=BROWSER)
        assert answer.status_code == (405 if method in ("OPTIONS", "CONNECT", "TRACE") else 404)
        assert ("allow" in answer.headers) is (answer.status_code == 405)


async def test_assets_are_kept_for_ever_and_compressed(client: httpx2.AsyncClient) -> None:
    url = "/assets/index-abc.js"
    plain = await client.get(url, headers={"Accept-Encoding": "identity"})
    assert plain.text == SCRIPT
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["content-type"].startswith("text/javascript")
    assert plain.headers["x-content-type-options"] == "nosniff"
    async with client.stream("GET", url, headers={"Accept-Encoding": "gzip"}) as packed:
        raw = b"".join([piece async for piece in packed.aiter_raw()])
    assert packed.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["vary"]
    assert len(raw) < len(SCRIPT) / 10
    assert gzip.decompress(raw).decode() == SCRIPT
    head = await client.head(url)
    assert (head.status_code, head.content) == (200, b"")


async def test_other_files_are_revalidated(client: httpx2.AsyncClient) -> None:
    first = await client.get("/favicon.svg")
    assert (first.headers["content-type"], first.headers["cache-control"]) == (
        "image/svg+xml",
        "no-cache",
    )
    again = await client.get("/favicon.svg", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304


async def test_the_frame_for_diagrams_may_style_itself_and_load_its_scripts_only(
    client: httpx2.AsyncClient, built: Path
) -> None:
    (built / "diagram.html").write_text("<!doctype html>", "utf-8")
    answer = await client.get("/diagram.html")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
    assert answer.headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"
    )


async def test_page_behind_prefix_names_it(built: Path) -> None:
    async with asgi_client(app_with(built, root_path="/tools/x")) as client:
        for path in ("/", "/tools/x", "/tools/x/", "/tools/x/runs/1", "/runs/1"):
            assert '<base href="/tools/x/" />' in (await client.get(path)).text
        for prefix in ("", "/tools/x"):
            assert (await client.get(f"{prefix}/assets/index-abc.js")).text == SCRIPT


async def test_without_built_files_page_tells_how_to_build_and_api_works(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    async with asgi_client(app_with(missing)) as client:
        for path in ("/", "/runs/1"):
            answer = await client.get(path)
            assert answer.status_code == 503
            assert "<code>make web</code>" in answer.text
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert (await client.get("/assets/x.js")).status_code == 404
        assert (await client.get("/favicon.svg")).status_code == 404
        assert (await client.get("/api/plans")).status_code == 200
        (missing / "assets").mkdir(parents=True)
        (missing / "index.html").write_text(PAGE, "utf-8")
        assert (await client.get("/")).status_code == 200


async def test_requests_for_page_are_counted_by_kind_and_not_by_path(
    client: httpx2.AsyncClient,
) -> None:
    await client.get("/runs/1")
    await client.get("/assets/index-abc.js")
    bearer = {"Authorization": "Bearer tok"}
    metrics = (await client.get("/metrics", headers=bearer)).text
    assert 'route="/{page}"' in metrics
    assert 'route="/{file}"' in metrics
    assert "runs/1" not in metrics
