import pytest

from planwave.api.framing import check_head, target_of
from planwave.api.problems import ProblemError

HOST = (b"host", b"x")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"/a?b", b"/a?b"),
        (b"*", b"*"),
        (b"http://x/a?b", b"http://x/a?b"),
        (b"http://x", b"/"),
        (b"http://x:80?b=/c", b"/?b=/c"),
    ],
)
def test_every_target_has_a_path(target: bytes, expected: bytes) -> None:
    assert target_of(target) == expected


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.1", [HOST]),
        ("1.0", []),
        ("1.1", [HOST, (b"transfer-encoding", b"Chunked")]),
    ],
)
def test_a_plain_head_is_let_through(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    check_head(version, headers)


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("2.0", [HOST]),
        ("1.1", []),
        ("1.1", [HOST, HOST]),
        ("1.0", [HOST, HOST]),
        ("1.1", [HOST, (b"transfer-encoding", b"gzip, chunked")]),
        ("1.1", [HOST, (b"transfer-encoding", b"gzip"), (b"transfer-encoding", b"chunked")]),
    ],
)
def test_a_head_of_two_readings_is_refused(
    version: str, headers: list[tuple[bytes, bytes]]
) -> None:
    with pytest.raises(ProblemError) as refused:
        check_head(version, headers)
    assert refused.value.status_hint == 400
