"""Concurrent streams are sent one after the other, each to its end."""

from __future__ import annotations

from planwave.events.stream.turns import Piece, TurnQueue


def piece(speaker: str, text: str) -> Piece:
    return Piece(speaker, speaker, "text", text, {})


def texts(pieces: list[Piece]) -> str:
    return " ".join(f"{one.speaker}:{one.text}" for one in pieces)


def test_the_first_speaker_passes_and_the_others_are_queued() -> None:
    queue = TurnQueue()
    assert texts(queue.push(piece("a", "1"))) == "a:1"
    assert queue.push(piece("b", "1")) == []
    assert queue.is_speaking("a")
    assert texts(queue.push(piece("a", "2"))) == "a:2"


def test_the_longest_queued_speaker_continues_when_the_turn_is_free() -> None:
    queue = TurnQueue()
    for speaker in ("a", "b", "c", "b"):
        queue.push(piece(speaker, "x"))
    assert texts(queue.finish("a")) == "b:x b:x"
    assert queue.is_speaking("b")
    assert texts(queue.push(piece("b", "live"))) == "b:live"
    assert texts(queue.finish("b")) == "c:x"


def test_a_speaker_that_finished_while_queued_is_flushed_in_its_turn() -> None:
    queue = TurnQueue()
    for speaker in ("a", "b", "c"):
        queue.push(piece(speaker, "x"))
    assert queue.finish("b") == []
    assert texts(queue.finish("a")) == "b:x c:x"
    assert queue.is_speaking("c")
    assert queue.finish("c") == []
    assert texts(queue.push(piece("d", "free"))) == "d:free"


def test_a_speaker_that_adds_text_after_finishing_keeps_its_turn() -> None:
    queue = TurnQueue()
    for speaker in ("a", "b"):
        queue.push(piece(speaker, "x"))
    queue.finish("b")
    queue.push(piece("b", "y"))
    assert texts(queue.finish("a")) == "b:x b:y"
    assert queue.is_speaking("b")


def test_discarded_text_is_never_sent() -> None:
    queue = TurnQueue()
    for speaker in ("a", "b", "c"):
        queue.push(piece(speaker, "x"))
    queue.discard("b")
    queue.discard("nobody")
    assert texts(queue.close()) == "c:x"
    assert texts(queue.finish("a")) == "c:x"


def test_finishing_without_text_does_nothing() -> None:
    assert TurnQueue().finish("a") == []
