"""The lock files: the versions of ``constraints.txt``, with hashes, for all that ``pyproject.toml`` names."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.support.paths import ROOT
from tools.lock import CONSTRAINTS, LOCKS, pins

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SPECIFIC = {"pip"}
"""Those that the environment has itself."""


def normalized(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_lock_has_the_versions_of_the_constraints_and_no_others() -> None:
    assert pins(ROOT / "requirements.lock") == pins(CONSTRAINTS)


@pytest.mark.parametrize("name", LOCKS)
def test_lock_has_all_dependencies_with_hashes_and_no_address(name: str) -> None:
    text, found = (ROOT / name).read_text("utf-8"), pins(ROOT / name)
    assert found.items() <= pins(ROOT / "requirements.lock").items()
    extras = PROJECT["optional-dependencies"]
    named = [*PROJECT["dependencies"], *(each for extra in LOCKS[name] for each in extras[extra])]
    assert {normalized(each) for each in named} - SPECIFIC <= set(found)
    blocks = re.split(r"(?<!\\)\n", text.strip())
    assert len(blocks) == len(found)
    for block in blocks:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block
    assert not re.search(r"://|index-url|find-links|@ ", text)


def test_every_extra_of_planwave_is_in_the_lock() -> None:
    assert set(LOCKS["requirements.lock"]) >= set(PROJECT["optional-dependencies"]) - {"build"}


def test_image_and_ci_install_by_hashes_only() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    installs = re.findall(r"pip install ((?:[^&\n]|\\\n)*)", image)
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "--no-deps --no-build-isolation" in installs[1]
    assert "export LOCKED=1" in (ROOT / ".ci/run").read_text("utf-8")
    assert "--require-hashes -r requirements.lock" in (ROOT / "Makefile").read_text("utf-8")
    ignored = (ROOT / ".dockerignore").read_text("utf-8")
    for name in re.findall(r"[a-z-]+\.lock", image):
        assert f"!{name}" in ignored


def test_npm_packages_run_no_install_scripts() -> None:
    calls = re.findall(r'_npm\("ci"[^)]*\)', (ROOT / "tools/web.py").read_text("utf-8"))
    assert calls
    assert all("--ignore-scripts" in each for each in calls)
