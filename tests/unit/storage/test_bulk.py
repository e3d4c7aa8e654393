from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from planwave.storage.bulk import MultiRowStatement

INSERT = MultiRowStatement.insert("kept", "key, text")
KEEP_FIRST = MultiRowStatement.insert("kept", "key, text", "ON CONFLICT DO NOTHING")
SET = MultiRowStatement(
    2,
    "UPDATE kept SET text = ? WHERE key = ?",
    "UPDATE kept SET text = column1 FROM (VALUES {}) WHERE key = column2",
)
MOST = 256
ANY_NUMBER = [0, 1, 2, 3, 4, 5, 63, 64, 65, MOST - 1, MOST, MOST + 1, 3 * MOST - 5]


@pytest.fixture
def raw() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.execute("CREATE TABLE kept (key INTEGER PRIMARY KEY, text TEXT)")
    yield made
    made.close()


def kept(raw: sqlite3.Connection) -> list[tuple[int, str | None]]:
    return raw.execute("SELECT key, text FROM kept ORDER BY key").fetchall()


@pytest.mark.parametrize("count", ANY_NUMBER)
def test_every_row_comes_to_something_once(raw: sqlite3.Connection, count: int) -> None:
    keys = range(1, count + 1)
    assert INSERT.run(raw, [value for key in keys for value in (key, None)]) == count
    assert kept(raw) == [(key, None) for key in keys]
    assert SET.run(raw, [value for key in keys for value in (f"t{key}", key)]) == count
    assert kept(raw) == [(key, f"t{key}") for key in keys]


@pytest.mark.parametrize("count", ANY_NUMBER)
def test_any_number_of_rows_costs_few_statements(raw: sqlite3.Connection, count: int) -> None:
    statements: list[str] = []
    raw.set_trace_callback(statements.append)
    INSERT.run(raw, [value for key in range(count) for value in (key, "t")])
    assert len(statements) == -(-count // MOST)


def test_there_are_few_texts_for_all_numbers(raw: sqlite3.Connection) -> None:
    class Listening(sqlite3.Connection):
        def execute(self, text: str, *values: object) -> sqlite3.Cursor:  # type: ignore[override]
            texts.add(text)
            return super().execute(text, *values)  # type: ignore[arg-type]

    texts: set[str] = set()
    listening = sqlite3.connect(":memory:", isolation_level=None, factory=Listening)
    listening.execute("CREATE TABLE kept (key INTEGER PRIMARY KEY, text TEXT)")
    texts.clear()
    for count in range(1, MOST + 1):
        KEEP_FIRST.run(listening, [value for key in range(count) for value in (key, "t")])
    listening.close()
    assert len(texts) <= 9


def test_of_rows_with_one_key_the_first_may_stay(raw: sqlite3.Connection) -> None:
    INSERT.run(raw, [1, "old"])
    assert KEEP_FIRST.run(raw, [1, "new", 2, "first", 2, "second"]) == 1
    assert KEEP_FIRST.run(raw, [2, "third"]) == 0
    assert kept(raw) == [(1, "old"), (2, "first")]


def test_a_row_that_is_refused_takes_all_of_its_statement_along(raw: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=r"kept\.key"):
        INSERT.run(raw, [1, "a", 2, "b", 1, "c"])
    assert kept(raw) == []


def test_the_values_it_is_given_stay_as_they_are(raw: sqlite3.Connection) -> None:
    values = [1, "a", 2, "b", 3, "c"]
    INSERT.run(raw, values)
    assert values == [1, "a", 2, "b", 3, "c"]
