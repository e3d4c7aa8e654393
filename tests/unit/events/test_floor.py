"""Several speakers at once are heard one after the other, each to its end."""

from __future__ import annotations

from planwave.events.floor import Floor, Piece


def piece(speaker: str, text: str) -> Piece:
    return Piece(speaker, speaker, "text", text, {})


def texts(pieces: list[Piece]) -> str:
    return " ".join(f"{one.speaker}:{one.text}" for one in pieces)


def test_the_first_to_speak_is_heard_at_once_and_the_others_wait() -> None:
    floor = Floor()
    assert texts(floor.say(piece("a", "1"))) == "a:1"
    assert floor.say(piece("b", "1")) == []
    assert floor.holds("a")
    assert texts(floor.say(piece("a", "2"))) == "a:2"


def test_who_waited_longest_goes_on_where_it_is_once_the_floor_is_free() -> None:
    floor = Floor()
    for speaker in ("a", "b", "c", "b"):
        floor.say(piece(speaker, "x"))
    assert texts(floor.leave("a")) == "b:x b:x"
    assert floor.holds("b")
    assert texts(floor.say(piece("b", "live"))) == "b:live"
    assert texts(floor.leave("b")) == "c:x"


def test_who_left_while_it_waited_is_heard_and_passed_over() -> None:
    floor = Floor()
    for speaker in ("a", "b", "c"):
        floor.say(piece(speaker, "x"))
    assert floor.leave("b") == []
    assert texts(floor.leave("a")) == "b:x c:x"
    assert floor.holds("c")
    assert floor.leave("c") == []
    assert texts(floor.say(piece("d", "free"))) == "d:free"


def test_who_says_more_after_leaving_is_waited_for_again() -> None:
    floor = Floor()
    for speaker in ("a", "b"):
        floor.say(piece(speaker, "x"))
    floor.leave("b")
    floor.say(piece("b", "y"))
    assert texts(floor.leave("a")) == "b:x b:y"
    assert floor.holds("b")


def test_what_is_withdrawn_is_never_heard() -> None:
    floor = Floor()
    for speaker in ("a", "b", "c"):
        floor.say(piece(speaker, "x"))
    floor.withdraw("b")
    floor.withdraw("nobody")
    assert texts(floor.close()) == "c:x"
    assert texts(floor.leave("a")) == "c:x"


def test_who_never_spoke_may_leave() -> None:
    assert Floor().leave("a") == []
