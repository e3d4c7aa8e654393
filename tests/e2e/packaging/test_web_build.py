"""``tools/web.py`` and the build hook: what is built when, and what distributions carry.

npm is a script that notes its calls: the real one needs a registry.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

COPIED = ("pyproject.toml", "README.md", "LICENSE", ".gitignore", "hatch_build.py")
NODE = "#!/bin/sh\necho {version}\n"
NPM = """#!/bin/sh
echo "$*" >> "$CALLS"
test -z "$NPM_FAILS" || {{ echo "cannot resolve react"; exit 1; }}
case "$*" in
  ci*) rm -rf node_modules; mkdir node_modules; echo x > node_modules/package.js;;
  "run build")
    mkdir -p ../planwave/api/web/assets
    echo '<base href="/" /><script src="./assets/index-1.js"></script>' > ../planwave/api/web/index.html
    echo 'page()' > ../planwave/api/web/assets/index-1.js;;
esac
"""


class Tree:
    """A copy of what the web UI and the distributions are built from, with a Node of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs, self.calls = folder / "tree", folder / "bin", folder / "calls"
        for path in COPIED:
            self._copy(path)
        for path in (ROOT / "tools").glob("*.py"):
            self._copy(f"tools/{path.name}")
        skipped = shutil.ignore_patterns("node_modules", ".lock")
        shutil.copytree(ROOT / "web", self.folder / "web", ignore=skipped)
        self._copy("planwave/__init__.py")
        self._copy("planwave/api/__init__.py")
        self._copy("planwave/api/llms.txt")
        self.programs.mkdir()
        (self.programs / "sh").symlink_to("/bin/sh")
        for name in ("rm", "mkdir"):
            (self.programs / name).symlink_to(str(shutil.which(name)))

    def _copy(self, path: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)

    def install_node(self, version: str = "v20.20.2") -> None:
        for name, text in (("node", NODE), ("npm", NPM)):
            (self.programs / name).write_text(text.format(version=version), "utf-8")
            (self.programs / name).chmod(0o755)

    def remove_node(self) -> None:
        for name in ("node", "npm"):
            (self.programs / name).unlink()

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run ``python arguments`` in the tree."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HATCH_")
        } | {"PATH": str(self.programs), "CALLS": str(self.calls), **more}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def web(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run("tools/web.py", *arguments, **more)

    def distribute(self, *targets: str, **more: str) -> subprocess.CompletedProcess[str]:
        wanted = [part for target in targets for part in ("--target", target)]
        return self.run("-m", "hatchling", "build", *wanted, **more)

    def npm_calls(self) -> list[str]:
        """Return the calls of npm since the last time."""
        calls = self.calls.read_text("utf-8").splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return calls


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_lock_file_names_no_registry_and_npm_is_told_to_keep_it_so() -> None:
    assert '"resolved"' not in (ROOT / "web/package-lock.json").read_text("utf-8")
    assert "omit-lockfile-registry-resolved=true" in (ROOT / "web/.npmrc").read_text("utf-8")


def test_nothing_built_is_committed() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {"node_modules/", "/planwave/api/web/", "/screenshots/"} <= set(ignored)


def test_packages_are_installed_once_for_a_lock_file_and_page_built_once_for_its_sources(
    tree: Tree,
) -> None:
    tree.install_node()
    assert tree.web("build").returncode == 0
    assert tree.npm_calls() == ["ci --include=dev --ignore-scripts", "run build"]
    assert tree.web("build").stdout == "The web UI is up to date.\n"
    (tree.folder / "web/src/app/App.test.tsx").write_text("// a test\n", "utf-8")
    assert tree.web("build").returncode == 0
    assert tree.npm_calls() == []
    (tree.folder / "web/src/app/App.tsx").write_text("export function App() {}\n", "utf-8")
    assert tree.web("build").returncode == 0
    assert tree.npm_calls() == ["run build"]
    with (tree.folder / "web/package-lock.json").open("a") as lock:
        lock.write("\n")
    assert tree.web("test").returncode == 0
    assert tree.npm_calls() == ["ci --include=dev --ignore-scripts", "run test"]


def test_build_that_failed_is_not_current(tree: Tree) -> None:
    tree.install_node()
    failed = tree.web("build", NPM_FAILS="yes")
    assert failed.returncode == 1
    assert "`npm ci --include=dev --ignore-scripts` failed" in failed.stderr
    assert tree.web("build").returncode == 0
    assert tree.npm_calls() == [
        "ci --include=dev --ignore-scripts",
        "ci --include=dev --ignore-scripts",
        "run build",
    ]


def test_missing_node_is_said_in_one_sentence(tree: Tree) -> None:
    sentence = "the web UI needs Node 20.19 or newer to be built, and there is none."
    refused = tree.web("build")
    assert (refused.returncode, refused.stderr) == (2, f"{sentence}\n")
    for command in ("build", "check", "test"):
        left_out = tree.web(command, "--optional")
        assert left_out.returncode == 0
        assert left_out.stdout == f"Left out, `{command}` of the web UI: {sentence}\n"


def test_old_node_counts_as_missing(tree: Tree) -> None:
    tree.install_node("v20.18.9")
    assert "Node is v20.18.9" in tree.web("build").stderr
    assert tree.npm_calls() == []


@pytest.mark.slow
class TestDistributions:
    @pytest.fixture(autouse=True)
    def builder(self) -> None:
        pytest.importorskip("hatchling", reason="hatchling is not installed (extra: dev)")

    def test_wheel_and_source_distribution_carry_the_ui(self, tree: Tree) -> None:
        tree.install_node()
        built = tree.distribute("sdist", "wheel")
        assert built.returncode == 0, built.stderr
        assert tree.npm_calls() == ["ci --include=dev --ignore-scripts", "run build"]
        files = [str(path) for path in (tree.folder / "dist").iterdir()]
        assert len(files) == 2
        checked = tree.run("tools/check_dist.py", *files)
        assert checked.stdout == "2 distributions carry the web UI\n"

    def test_wheel_of_source_distribution_needs_no_node(self, tree: Tree, tmp_path: Path) -> None:
        tree.install_node()
        assert tree.distribute("sdist").returncode == 0
        tree.remove_node()
        (archive,) = (tree.folder / "dist").iterdir()
        with tarfile.open(archive) as opened:
            opened.extractall(tmp_path / "unpacked", filter="data")
        (tree.folder,) = (tmp_path / "unpacked").iterdir()
        built = tree.distribute("wheel")
        assert built.returncode == 0, built.stderr
        (wheel,) = (tree.folder / "dist").glob("*.whl")
        assert tree.run("tools/check_dist.py", str(wheel)).returncode == 0

    def test_wheel_without_node_stops_and_editable_installation_goes_on(self, tree: Tree) -> None:
        refused = tree.distribute("wheel")
        assert refused.returncode == 1
        assert refused.stderr.strip() == (
            "the web UI needs Node 20.19 or newer to be built, and there is none."
        )
        warned = tree.distribute("wheel:editable")
        assert warned.returncode == 0
        assert "The web UI is not built" in warned.stdout + warned.stderr

    def test_outdated_ui_is_not_packaged(self, tree: Tree) -> None:
        tree.install_node()
        assert tree.web("build").returncode == 0
        tree.remove_node()
        (tree.folder / "web/src/app/App.tsx").write_text("export function App() {}\n", "utf-8")
        assert tree.distribute("wheel").returncode == 1

    def test_failure_of_npm_is_shown_with_its_output(self, tree: Tree) -> None:
        tree.install_node()
        refused = tree.distribute("wheel", NPM_FAILS="yes")
        assert refused.returncode == 1
        assert "cannot resolve react" in refused.stderr

    def test_check_refuses_wheel_without_ui(self, tree: Tree) -> None:
        assert tree.distribute("wheel", HATCH_BUILD_NO_HOOKS="true").returncode == 0
        (wheel,) = (tree.folder / "dist").glob("*.whl")
        refused = tree.run("tools/check_dist.py", str(wheel))
        assert refused.returncode == 1
        assert f"{wheel.name}: planwave/api/web/index.html is missing" in refused.stdout
