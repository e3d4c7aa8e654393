"""The site of the documentation: its pages, their links, what it loads, and the lists for language models."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.browser.chromium import EXECUTABLE, chromium
from tests.support.paths import ROOT
from tools import gen_llms_txt
from tools.docs_site import SITE, gather, linked_file, links_of, loads_from_elsewhere, target_of


def test_every_page_is_in_the_navigation_once() -> None:
    listed = [page for _, page in gen_llms_txt.pages()]
    assert len(listed) == len(set(listed))
    assert {*listed} == {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")}


def test_links_of_gathered_pages_lead_to_files(tmp_path: Path) -> None:
    gather(tmp_path / "pages")
    pages = [*(tmp_path / "pages").rglob("*.md")]
    assert (tmp_path / "pages" / "examples" / "flows" / "README.md") in pages
    for page in pages:
        for link in links_of(page.read_text("utf-8")):
            assert (page.parent / link[0]).is_file(), (page, link[0])


def test_a_link_to_nothing_is_an_error() -> None:
    page = Path("docs/nodes.md")
    assert str(target_of(linked_file(page, "../README.md"))) == "index.md"
    assert str(linked_file(page, "../examples/flows")) == "examples/flows/README.md"
    with pytest.raises(FileNotFoundError, match=r"docs/nodes.md links to nothing.md"):
        linked_file(page, "nothing.md")
    assert [link[0] for link in links_of("`[a](b)` [c](d#e)\n```\n[f](g)\n```\n[h](#i)")] == ["d"]


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://unpkg.com/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.googleapis.com/css">',
        '<img src="http://example.com/a.png">',
        '<pre class="mermaid">graph</pre>',
        '<div style="background: url(https://example.com/a.png)">',
    ],
)
def test_a_page_that_loads_from_elsewhere_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "page.html").write_text(f'<a href="https://example.com/">here</a>{text}', "utf-8")
    assert len([*loads_from_elsewhere(tmp_path)]) == 1


def test_a_style_that_loads_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text('@import "https://example.com/b.css"; a{src:url(c.woff)}')
    assert [*loads_from_elsewhere(tmp_path)] == ["a.css loads https://example.com/b.css"]


def test_the_list_for_language_models_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert gen_llms_txt.main(["--check"]) == 0, capsys.readouterr().out
    text = gen_llms_txt.page_list()
    for link in re.findall(r"^- \[[^]]+\]\(([^)]+)\): [^\n]{20,}\.$", text, re.MULTILINE):
        assert (ROOT / link).is_file()
    assert text.count("\n- ") == len([*gen_llms_txt.pages()])


def test_a_list_that_is_not_current_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gen_llms_txt, "LIST", tmp_path / "llms.txt")
    monkeypatch.setattr(gen_llms_txt, "page_list", lambda: "new")
    monkeypatch.setattr(gen_llms_txt, "ROOT", tmp_path)
    assert gen_llms_txt.main(["--check"]) == 1
    assert "make generate" in capsys.readouterr().out
    assert gen_llms_txt.main([]) == 0
    assert gen_llms_txt.main(["--check"]) == 0


@pytest.fixture
def built_pages() -> list[str]:
    """The pages of the site, as ``make docs`` builds it."""
    if not EXECUTABLE.exists():
        pytest.skip(f"{EXECUTABLE} is missing")
    subprocess.run([sys.executable, "tools/docs_site.py"], cwd=ROOT, check=True)
    return [page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html")]


@pytest.mark.slow
async def test_no_page_of_the_site_loads_anything_from_elsewhere(built_pages: list[str]) -> None:
    loaded = set[str]()
    handler = partial(QuietHandler, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        async with chromium() as browser:
            page = await browser.new_page()
            page.on("request", lambda request: loaded.add(request.url))
            for path in built_pages:
                await page.goto(address + path, wait_until="load")
            await page.goto(f"{address}index.html?q=webhook", wait_until="networkidle")
        server.shutdown()
    assert {url for url in loaded if not url.startswith(address)} == set()
    assert any("search" in url for url in loaded)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass
