import logging

from planwave.cli.notes import logs_as_notes
from tests.fakes.terminal import plain_console, console_output


def test_warnings_of_any_room_are_one_clean_line_each_without_a_trace() -> None:
    screen = plain_console()
    with logs_as_notes(lambda: screen):
        logging.getLogger("somewhere.deep").info("no news")
        try:
            raise ValueError("boom")
        except ValueError:
            logging.getLogger("somewhere.deep").exception("it %s\n\x1b[2Jbadly", "went")
    assert console_output(screen) == "! it went [2Jbadly\n"


def test_afterwards_nothing_is_noted() -> None:
    screen, before = plain_console(), list(logging.getLogger().handlers)
    with logs_as_notes(lambda: screen):
        pass
    logging.getLogger("somewhere").warning("late")
    assert console_output(screen) == ""
    assert logging.getLogger().handlers == before


def test_a_note_nobody_can_read_stops_nothing() -> None:
    def gone() -> None:
        raise BrokenPipeError

    with logs_as_notes(gone):
        logging.getLogger("somewhere").warning("unheard")
