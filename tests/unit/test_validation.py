"""Faults of shape in JSON's words, for every kind of them our models can find."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from planwave.validation import describe_error, json_type


class Inside(BaseModel):
    """A part of what is read."""

    x: int = 1


class Add(BaseModel):
    op: Literal["add"]


class Remove(BaseModel):
    op: Literal["remove"]


class Read(BaseModel):
    """One field of every kind."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: Annotated[str, Field(min_length=1, max_length=3)] = "a"
    word: Literal["eager", "waves"] = "eager"
    two: Annotated[str, Field(min_length=2)] = "ab"
    whole: Annotated[int, Field(ge=1, le=9)] = 1
    number: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    flag: bool = True
    items: Annotated[list[int], Field(min_length=1, max_length=2)] = [1]
    table: dict[str, int] = {}
    part: Inside = Inside()
    change: Annotated[Add | Remove | None, Field(discriminator="op")] = None
    code: str = "a"
    lax: Annotated[int, Field(strict=False)] = 1
    lax_flag: Annotated[bool, Field(strict=False)] = True

    @field_validator("code")
    @classmethod
    def _one_line(cls, code: str) -> str:
        if "\n" in code:
            raise ValueError("Write one line")
        return code


def said_of(**fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Read.model_validate(fields)
    (fault,) = caught.value.errors(include_url=False)
    return describe_error("it", fault)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("text", 5, "it has to be text, not a number"),
        ("text", None, "it has to be text, not null"),
        ("text", "", "it may not be empty"),
        ("text", "abcd", "it has to have at most 3 characters"),
        ("two", "a", "it has to have at least 2 characters"),
        ("word", "fast", "it has to be 'eager' or 'waves'"),
        ("whole", "1", "it has to be a whole number, not text"),
        ("whole", 1.5, "it has to be a whole number, not 1.5"),
        ("whole", True, "it has to be a whole number, not a boolean"),
        ("whole", 0, "it has to be at least 1"),
        ("whole", 10, "it has to be at most 9"),
        ("number", 0, "it has to be more than 0.0"),
        ("number", 1, "it has to be less than 1.0"),
        ("number", [], "it has to be a number, not an array"),
        ("number", float("inf"), "it has to be a finite number"),
        ("flag", 1, "it has to be true or false, not a number"),
        ("items", {}, "it has to be an array, not an object"),
        ("items", [], "it may not be empty"),
        ("items", [1, 2, 3], "it has to have at most 2 items"),
        ("table", [], "it has to be an object, not an array"),
        ("part", "x", "it has to be an object, not text"),
        ("change", {}, "it: 'op' is required"),
        ("change", {"op": "mend"}, "it: 'op' has to be one of 'add', 'remove', not 'mend'"),
        ("code", "a\nb", "it: write one line"),
        ("lax", "x", "it has to be a whole number"),
        ("lax", 1.5, "it has to be a whole number"),
        ("lax_flag", "perhaps", "it has to be true or false"),
        ("strange", 1, "it is not known here"),
    ],
)
def test_what_does_not_fit_is_told_without_words_of_python(
    field: str, value: Any, said: str
) -> None:
    assert said_of(**{field: value}) == said


def test_what_is_missing_is_required() -> None:
    class Needs(BaseModel):
        name: str

    with pytest.raises(ValidationError) as caught:
        Needs.model_validate({})
    assert describe_error("data.name", caught.value.errors()[0]) == "data.name is required"


def test_a_fault_without_its_input_says_what_is_wanted() -> None:
    assert describe_error("it", {"type": "string_type", "msg": "…"}) == "it has to be text"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"), (True, "a boolean"), (0, "a number"), (0.5, "a number"), ("", "text"),
        ([], "an array"), ((), "an array"), ({}, "an object"),
    ],
)  # fmt: skip
def test_kinds_of_values_have_names(value: Any, kind: str) -> None:
    assert json_type(value) == kind
