"""``make check`` finds docstrings that name nothing, and strings that document nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_docstrings import INSTEAD, violations

CODE = '''
"""A module; see ``plan.py`` and [Store][planwave.Store]."""
from planwave.plan import Plan
LIMIT = 3
"""How many."""


class Store(Plan):
    """Keeps plans: ``run``, [run][planwave.Store.run], [title][planwave.Store.title].

    Tests have a [Fake][planwave.testing.Fake].
    """

    def run(self) -> None:
        """Run ``max_parallel`` steps of a ``Plan``, or ``lower``, or ``{"not_a_name"}``."""
        self.limit = "max_parallel"
        """A limit, as in ``test_a_limit``."""
'''


def found_in(root: Path, code: str) -> list[str]:
    for name, text in {
        "planwave/__init__.py": '__all__ = ["Store"]\n',
        "planwave/testing.py": '__all__ = ["Fake"]\n\n\nclass Fake: ...\n',
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
        ("``run``", ":meth:`run`", f":meth:`run` is a role; write {INSTEAD}"),
        ("``run``", ":py:meth:`run`", f":py:meth:`run` is a role; write {INSTEAD}"),
        ("planwave.Store.run", "planwave.Store.walk", "planwave.Store.walk does not exist"),
        ("planwave.Store.title", "planwave.Store.name", "planwave.Store.name does not exist"),
        ("[planwave.Store]", "[planwave.Shop]", "planwave.Shop does not exist"),
        ("testing.Fake]", "testing.Real]", "planwave.testing.Real does not exist"),
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
