import re

import httpx2
import pytest
from pydantic import SecretStr

from tests.support.paths import ROOT
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


async def test_the_list_of_pages_needs_no_token_and_is_the_one_of_the_package() -> None:
    with running_server(token=SecretStr("secret")) as running:
        answer = httpx2.get(running.base_url + "/llms.txt")
        assert httpx2.get(running.base_url + "/openapi.json").status_code == 401
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == (ROOT / "planwave" / "api" / "llms.txt").read_text("utf-8")


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/llms.txt", "/redoc"])
async def test_docs_and_openapi_can_be_disabled(path: str) -> None:
    with running_server(api_docs=False) as running:
        assert httpx2.get(running.base_url + path).status_code == 404
