import re

import httpx2
import pytest

from tests.support.server.running_server import RunningServer, running_server


async def test_docs_page_lists_every_operation_and_loads_nothing(server: RunningServer) -> None:
    async with server.client() as client:
        page = await client.get("/docs")
        whole = (await client.get("/openapi.json")).json()
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    for path, methods in whole["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in page.text
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page.text)
    assert "<script" not in page.text


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/redoc"])
async def test_docs_and_openapi_can_be_disabled(path: str) -> None:
    with running_server(api_docs=False) as running:
        assert httpx2.get(running.base_url + path).status_code == 404
