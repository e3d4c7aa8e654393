"""``make check`` finds docstrings that name nothing, and strings that document nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_docstrings import violations

CODE = '''
"""A module; see ``plan.py`` and :class:`Store`."""
from planwave.plan import Plan
LIMIT = 3
"""How many."""


class Store(Plan):
    """Keeps plans: :meth:`run`, :meth:`Store.run`, :attr:`Plan.title`, :func:`planwave.plan.read`."""

    def run(self) -> None:
        """Run ``max_parallel`` steps of a :class:`httpx.Client`, or ``lower``, or ``{"not_a_name"}``."""
        self.limit = "max_parallel"
        """A limit, as in ``test_a_limit``."""
'''


def found_in(root: Path, code: str) -> list[str]:
    for name, text in {
        "planwave/plan.py": "class Plan:\n    title = ''\n\ndef read(): ...\n",
        "planwave/store.py": code.lstrip(),
        "tests/test_plan.py": "def test_a_limit(): ...\n",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return [each.partition(": ")[2] for each in violations(root)[1]]


def test_true_documentation_is_accepted(tmp_path: Path) -> None:
    assert found_in(tmp_path, CODE) == []


@pytest.mark.parametrize(
    ("true", "wrong", "finding"),
    [
        ("``plan.py``", "``plans.py``", "plans.py does not exist"),
        (":meth:`run`", ":meth:`walk`", "walk does not exist"),
        (":meth:`Store.run`", ":meth:`Shop.run`", "Shop.run does not exist"),
        (":attr:`Plan.title`", ":attr:`Plan.name`", "Plan.name does not exist"),
        ("planwave.plan.read", "planwave.plan.write", "planwave.plan.write does not exist"),
        ("``max_parallel``", "``max_steps``", "max_steps does not exist"),
        ("``lower``", "``StoreRetry``", "StoreRetry does not exist"),
        ("``test_a_limit``", "``test_no_limit``", "test_no_limit does not exist"),
        ("LIMIT = 3\n", "LIMIT = 3\n\n", "a string that documents nothing"),
        ("LIMIT = 3\n", "", "a string that documents nothing"),
        ("LIMIT = 3\n", "print()\n", "a string that documents nothing"),
    ],
)
def test_each_wrong_reference_and_each_orphan_is_found(
    tmp_path: Path, true: str, wrong: str, finding: str
) -> None:
    assert found_in(tmp_path, CODE.replace(true, wrong)) == [finding]
