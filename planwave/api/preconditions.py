"""``If-Match``: the version that a change is based on, as the ``ETag`` of the item has it."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Header

from planwave.api.schemas.examples import HASH
from planwave.errors import PreconditionRequired

_ANY: Final = "*"

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="The version you looked at, as its `ETag` has it: changed only if it is still "
        "the present one.",
        examples=[f'"{HASH}"'],
    ),
]


def expected_versions(if_match: str | None) -> frozenset[str] | None:
    """Return the versions that a header names; None if it accepts any."""
    if if_match is None or if_match.strip() == _ANY:
        return None
    return frozenset(tag.strip().strip('"') for tag in if_match.split(","))


def required_versions(if_match: str | None) -> frozenset[str] | None:
    """Return the versions that a header names; None if it accepts any with ``*``.

    Raises:
        PreconditionRequired: There is no header.
    """
    if if_match is None:
        raise PreconditionRequired(
            "a change names the hash of the version that it is based on",
            hint='send If-Match: "<hash>" with the ETag of what you read',
        )
    return expected_versions(if_match)
