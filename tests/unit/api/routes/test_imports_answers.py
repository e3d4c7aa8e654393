"""What the page knows of imports, held against the service."""

from __future__ import annotations

import json
import re

import pytest
from pydantic import TypeAdapter

from planwave.foreign_formats import NOUNS
from planwave.shapes.imports import ImportResponse
from tests.support.interop.import_answers import PATH, SOURCES


@pytest.mark.parametrize("name", SOURCES)
def test_answers_that_the_tests_of_the_page_read_have_the_shape_of_the_service(name: str) -> None:
    recorded = json.loads(PATH.read_text("utf-8"))
    assert set(recorded) == set(SOURCES)
    TypeAdapter(ImportResponse).validate_python(recorded[name])


def test_the_page_calls_formats_as_the_service_does() -> None:
    source = (PATH.parent / "importReport.ts").read_text("utf-8")
    table = re.search(r"export const NOUNS[^{]*\{(.*?)\n\};", source, re.DOTALL)
    assert table is not None
    rows = re.findall(r'"?([\w-]+)"?: "([^"]+)"', table[1])
    assert dict(rows) == dict(NOUNS)
