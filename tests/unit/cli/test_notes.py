import logging

from planwave.cli.notes import noting
from tests.fakes.terminal import plain_screen, written


def test_warnings_of_any_room_are_one_clean_line_each_without_a_trace() -> None:
    screen = plain_screen()
    with noting(lambda: screen):
        logging.getLogger("somewhere.deep").info("no news")
        try:
            raise ValueError("boom")
        except ValueError:
            logging.getLogger("somewhere.deep").exception("it %s\n\x1b[2Jbadly", "went")
    assert written(screen) == "! it went [2Jbadly\n"


def test_afterwards_nothing_is_noted() -> None:
    screen, before = plain_screen(), list(logging.getLogger().handlers)
    with noting(lambda: screen):
        pass
    logging.getLogger("somewhere").warning("late")
    assert written(screen) == ""
    assert logging.getLogger().handlers == before


def test_a_note_nobody_can_read_stops_nothing() -> None:
    def gone() -> None:
        raise BrokenPipeError

    with noting(gone):
        logging.getLogger("somewhere").warning("unheard")
