"""Several speakers at once are heard one after the other, each to its end."""

from __future__ import annotations

from planwave.events.chat_chunks.turns import Chunk, TurnQueue


def piece(speaker: str, text: str) -> Chunk:
    return Chunk(speaker, speaker, "text", text, {})


def texts(pieces: list[Chunk]) -> str:
    return " ".join(f"{one.speaker}:{one.text}" for one in pieces)


def test_the_first_speaker_passes_and_the_others_are_queued() -> None:
    floor = TurnQueue()
    assert texts(floor.push(piece("a", "1"))) == "a:1"
    assert floor.push(piece("b", "1")) == []
    assert floor.is_speaking("a")
    assert texts(floor.push(piece("a", "2"))) == "a:2"


def test_the_longest_queued_speaker_continues_when_the_turn_is_free() -> None:
    floor = TurnQueue()
    for speaker in ("a", "b", "c", "b"):
        floor.push(piece(speaker, "x"))
    assert texts(floor.finish("a")) == "b:x b:x"
    assert floor.is_speaking("b")
    assert texts(floor.push(piece("b", "live"))) == "b:live"
    assert texts(floor.finish("b")) == "c:x"


def test_a_speaker_that_finished_while_queued_is_flushed_in_its_turn() -> None:
    floor = TurnQueue()
    for speaker in ("a", "b", "c"):
        floor.push(piece(speaker, "x"))
    assert floor.finish("b") == []
    assert texts(floor.finish("a")) == "b:x c:x"
    assert floor.is_speaking("c")
    assert floor.finish("c") == []
    assert texts(floor.push(piece("d", "free"))) == "d:free"


def test_a_speaker_that_adds_text_after_finishing_keeps_its_turn() -> None:
    floor = TurnQueue()
    for speaker in ("a", "b"):
        floor.push(piece(speaker, "x"))
    floor.finish("b")
    floor.push(piece("b", "y"))
    assert texts(floor.finish("a")) == "b:x b:y"
    assert floor.is_speaking("b")


def test_discarded_text_is_never_sent() -> None:
    floor = TurnQueue()
    for speaker in ("a", "b", "c"):
        floor.push(piece(speaker, "x"))
    floor.discard("b")
    floor.discard("nobody")
    assert texts(floor.close()) == "c:x"
    assert texts(floor.finish("a")) == "c:x"


def test_finishing_without_text_does_nothing() -> None:
    assert TurnQueue().finish("a") == []
