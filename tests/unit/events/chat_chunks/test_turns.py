"""Several speakers at once are heard one after the other, each to its end."""

from __future__ import annotations

from planwave.events.chat_chunks.turns import Chunk, TurnQueue


def piece(speaker: str, text: str) -> Chunk:
    return Chunk(speaker, speaker, "text", text, {})


def texts(pieces: list[Chunk]) -> str:
    return " ".join(f"{one.speaker}:{one.text}" for one in pieces)


def test_the_first_to_speak_is_heard_at_once_and_the_others_wait() -> None:
    floor = TurnQueue()
    assert texts(floor.push(piece("a", "1"))) == "a:1"
    assert floor.push(piece("b", "1")) == []
    assert floor.is_speaking("a")
    assert texts(floor.push(piece("a", "2"))) == "a:2"


def test_who_waited_longest_goes_on_where_it_is_once_the_floor_is_free() -> None:
    floor = TurnQueue()
    for speaker in ("a", "b", "c", "b"):
        floor.push(piece(speaker, "x"))
    assert texts(floor.finish("a")) == "b:x b:x"
    assert floor.is_speaking("b")
    assert texts(floor.push(piece("b", "live"))) == "b:live"
    assert texts(floor.finish("b")) == "c:x"


def test_who_left_while_it_waited_is_heard_and_passed_over() -> None:
    floor = TurnQueue()
    for speaker in ("a", "b", "c"):
        floor.push(piece(speaker, "x"))
    assert floor.finish("b") == []
    assert texts(floor.finish("a")) == "b:x c:x"
    assert floor.is_speaking("c")
    assert floor.finish("c") == []
    assert texts(floor.push(piece("d", "free"))) == "d:free"


def test_who_says_more_after_leaving_is_waited_for_again() -> None:
    floor = TurnQueue()
    for speaker in ("a", "b"):
        floor.push(piece(speaker, "x"))
    floor.finish("b")
    floor.push(piece("b", "y"))
    assert texts(floor.finish("a")) == "b:x b:y"
    assert floor.is_speaking("b")


def test_what_is_withdrawn_is_never_heard() -> None:
    floor = TurnQueue()
    for speaker in ("a", "b", "c"):
        floor.push(piece(speaker, "x"))
    floor.discard("b")
    floor.discard("nobody")
    assert texts(floor.close()) == "c:x"
    assert texts(floor.finish("a")) == "c:x"


def test_who_never_spoke_may_leave() -> None:
    assert TurnQueue().finish("a") == []
