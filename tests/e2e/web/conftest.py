"""Fixtures of the browser tests: one Chromium, one service and a pool of pages for all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.support.browser.chromium import PagePool, Pages, chromium, missing
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.browser.web_service import WebService, web_service

_session = pytest_asyncio.fixture(scope="session", loop_scope="session")
_function = pytest_asyncio.fixture(loop_scope="session")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let all browser tests run in one process, on one event loop: they share a Chromium.

    pytest-xdist reads the group before hooks of this file may change the list of tests, so it is set
    when a test is collected. The largest group begins first.
    """
    if _is_browser_test(item):
        item.add_marker(pytest.mark.xdist_group("browser"))
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    if reason is not None:
        for item in filter(_is_browser_test, items):
            item.add_marker(pytest.mark.skip(reason=reason))


def _is_browser_test(item: pytest.Item) -> bool:
    return item.path.is_relative_to(Path(__file__).parent)


@_session
async def browser(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> AsyncIterator[Browser]:
    """The Chromium of all tests."""
    if worker_id != "master":
        mark = tmp_path_factory.getbasetemp().parent / "chromium"  # of all workers
        mark.touch(exist_ok=False)
    async with chromium() as started:
        yield started


@_session
async def shared_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WebService]:
    async with web_service(tmp_path_factory.mktemp("web")) as started:
        yield started


@_function
async def service(shared_service: WebService) -> AsyncIterator[WebService]:
    """The service of all tests, with a model that has no script yet."""
    shared_service.model.reset()
    yield shared_service
    shared_service.proxy.restore()


@pytest.fixture
def model(service: WebService) -> ScriptedModel:
    """What the model of the service says in this test."""
    return service.model


@_session
async def page_pool(browser: Browser, shared_service: WebService) -> AsyncIterator[PagePool]:
    pool = PagePool(browser, shared_service.url)
    yield pool
    await pool.close()


@_function
async def pages(page_pool: PagePool, service: WebService) -> AsyncIterator[Pages]:
    """Opens pages of the service; errors on their consoles fail the test."""
    opened = Pages(page_pool)
    yield opened
    service.proxy.restore()
    await opened.close()


@_function
async def page(pages: Pages) -> Page:
    """The first page of the service, in the light theme."""
    return await pages.open()


@_function
async def empty_page(pages: Pages) -> Page:
    """A page that has loaded nothing of the service, for a test that prepares something first."""
    return await pages.open(None)
