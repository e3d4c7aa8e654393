"""Build, check and test the web UI: ``python tools/web.py build|check|test``.

Each command is a script of ``web/package.json``. npm packages are installed first, once for each
content of the lock file; the page is built once for each content of its sources. A stamp with the
hash of that content lies beside the result. Commands that run at the same time wait for each
other: two ``npm ci`` in one folder corrupt each other's files.

Without Node, ``build`` fails in one sentence; with ``--optional`` every command only says what it
leaves out. This module uses the standard library alone: the build hook of the package loads it.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_NODE = (20, 19)
STAMP = ".made-from"
"""The file with the hash of the sources, in ``node_modules`` and in the folder of the built files."""
OUTPUT_SHOWN = 4_096
"""How much of npm's output an error holds; pip shows nothing else of it."""
_INSTALL_SOURCES = ("package.json", "package-lock.json", ".npmrc")
_BUILD_SOURCES = (
    *_INSTALL_SOURCES,
    "index.html",
    "diagram.html",
    "tsconfig.json",
    "vite.config.ts",
)
_BUILD_FOLDERS = ("public", "src")
_TEST_FILE = re.compile(r"\.test\.tsx?$")


class BuildError(Exception):
    """The web UI cannot be built; the message says why."""


class NodeMissing(BuildError):
    """There is no Node, or one that is too old."""


class WebProject:
    """The folder ``web`` of a source tree, and the folder that it is built into.

    Args:
        root: The source tree.
        is_quiet: npm's output is shown only where it fails.
    """

    def __init__(self, root: Path = ROOT, is_quiet: bool = False) -> None:
        self.folder = root / "web"
        self.built = root / "planwave" / "api" / "web"
        self._is_quiet = is_quiet

    @property
    def is_current(self) -> bool:
        """Whether the built files were made from the present sources."""
        return _read(self.built / STAMP) == self._build_hash()

    def build(self) -> bool:
        """Build the page unless it is current; return whether it was built.

        Raises:
            NodeMissing: It has to be built and there is no Node.
            BuildError: npm failed.
        """
        if self.is_current:
            return False
        with self._locked():
            if self.is_current:  # another process has built it meanwhile
                return False
            self._install()
            self._npm("run", "build")
            (self.built / STAMP).write_text(self._build_hash(), "utf-8")
        return True

    def run(self, script: str) -> None:
        """Run a script of ``package.json``.

        Raises:
            NodeMissing, BuildError: As ``build``.
        """
        with self._locked():
            self._install()
        self._npm("run", script)

    def _install(self) -> None:
        """Install npm packages, development packages too: the compiler is one of them."""
        require_node()
        stamp, wanted = self.folder / "node_modules" / STAMP, _hash(self.folder, _INSTALL_SOURCES)
        if _read(stamp) != wanted:
            # No package needs its install script to build the page; one that is taken over would use it.
            self._npm("ci", "--include=dev", "--ignore-scripts")
            stamp.write_text(wanted, "utf-8")

    def _npm(self, *arguments: str) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise NodeMissing("npm is missing, which comes with Node")
        command = [npm, *arguments]
        captured = subprocess.PIPE if self._is_quiet else None
        done = subprocess.run(
            command, cwd=self.folder, stdout=captured, stderr=captured and subprocess.STDOUT
        )
        if done.returncode:
            shown = (done.stdout or b"").decode(errors="replace")[-OUTPUT_SHOWN:]
            summary = f"`npm {' '.join(arguments)}` failed in {self.folder}"
            raise BuildError(f"{summary}:\n{shown}" if shown else summary)

    def _build_hash(self) -> str:
        folders = (self.folder / name for name in _BUILD_FOLDERS)
        files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
        names = sorted(path.relative_to(self.folder).as_posix() for path in files)
        sources = [name for name in names if not _TEST_FILE.search(name)]
        return _hash(self.folder, [*_BUILD_SOURCES, *sources])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def require_node() -> None:
    """Check that Node is there.

    Raises:
        NodeMissing: It is missing or too old.
    """
    wanted = ".".join(map(str, OLDEST_NODE))
    node = shutil.which("node")
    if node is None:
        raise NodeMissing(f"the web UI needs Node {wanted} or newer to be built, and there is none")
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)\.", done.stdout)
    if found is None or tuple(map(int, found.groups())) < OLDEST_NODE:
        version = done.stdout.strip() or f"not working ({node})"
        raise NodeMissing(
            f"the web UI needs Node {wanted} or newer to be built, and Node is {version}"
        )


def _hash(folder: Path, names: Sequence[str]) -> str:
    """Return the hash of files by name and content."""
    found = hashlib.sha256()
    for name in names:
        content = (folder / name).read_bytes()
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def _read(file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return None


def main(arguments: Sequence[str]) -> int:
    """Run one command; return its exit code."""
    parser = argparse.ArgumentParser(prog="tools/web.py", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["build", "check", "test"])
    parser.add_argument("--optional", action="store_true", help="go on where Node is missing")
    chosen = parser.parse_args(arguments)
    project = WebProject()
    os.environ.setdefault("NO_UPDATE_NOTIFIER", "1")
    try:
        if chosen.command != "build":
            project.run(chosen.command)
        elif not project.build():
            print("The web UI is up to date.")
    except NodeMissing as error:
        if not chosen.optional:
            print(f"{error}.", file=sys.stderr)
            return 2
        print(f"Left out, `{chosen.command}` of the web UI: {error}.")
    except BuildError as error:
        print(f"{error}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
