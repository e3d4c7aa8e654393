"""Keywords in snake_case for names of JSON."""

from __future__ import annotations

import pytest

from planwave.graph.keywords import data_name, handle_name, python_name
from planwave.graph.model import Port
from planwave.graph.protocols import NodeTypeInfo

KNOWN = NodeTypeInfo(
    "known",
    "",
    (Port("input"), Port("itemList"), Port("way-{i}"), Port("class")),
    (),
    data_fields={
        name: name for name in ("userPrompt", "longer_than", "maxX", "max_x", "tools-out")
    },
    declares_data=True,
)


@pytest.mark.parametrize(
    ("name", "keyword"),
    [
        ("userPrompt", "user_prompt"),
        ("timeoutS", "timeout_s"),
        ("longer_than", "longer_than"),
        ("input", "input"),
        ("class", "class_"),
    ],
)
def test_keyword_of_a_name_is_in_snake_case(name: str, keyword: str) -> None:
    assert python_name(name) == keyword


@pytest.mark.parametrize(
    ("keyword", "name"),
    [
        ("user_prompt", "userPrompt"),
        ("longer_than", "longer_than"),
        ("max_x", "max_x"),
    ],
)
def test_known_type_decides_which_field_a_keyword_is(keyword: str, name: str) -> None:
    assert data_name(keyword, "known", KNOWN) == name


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("userPrompt", "'known' has no field 'userPrompt'; did you mean 'user_prompt'?"),
        ("longer_then", "did you mean 'longer_than'?"),
        ("zzz", "it has longer_than, max_x, user_prompt$"),
        ("input", "'input' is an input of 'known', not a field"),
        ("item_list", "'item_list' is an input of 'known'"),
        ("retry", "it is a part of the policy: policy={'retry': …}"),
        ("on_error", "it is a part of the policy: policy={'onError': …}"),
    ],
)
def test_unknown_field_is_refused_with_the_one_that_is_meant(keyword: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        data_name(keyword, "known", KNOWN)


def test_type_without_fields_says_that_it_has_none() -> None:
    with pytest.raises(TypeError, match="has no field 'x'; it has none"):
        data_name("x", "bare", KNOWN._replace(data_fields={}))


def test_inputs_are_found_by_keyword_pattern_and_open_name() -> None:
    assert handle_name("item_list", "known", KNOWN) == "itemList"
    assert handle_name("class_", "known", KNOWN) == "class"
    with pytest.raises(TypeError, match="has no input 'inputt'; did you mean 'input'"):
        handle_name("inputt", "known", KNOWN)
    with_names = KNOWN._replace(inputs=(Port("{name}"),))
    assert handle_name("user_name", "known", with_names) == "user_name"


@pytest.mark.parametrize("facts", [None, KNOWN._replace(declares_data=False)])
def test_fields_of_a_type_that_is_not_known_become_camel_case(facts: NodeTypeInfo | None) -> None:
    assert data_name("user_prompt", "other", facts) == "userPrompt"
    assert data_name("class_", "other", facts) == "class"
    with pytest.raises(TypeError, match=r"write user_prompt=…, or data=\{'userPrompt': …\}"):
        data_name("userPrompt", "other", facts)


def test_inputs_of_a_type_that_is_not_known_become_camel_case() -> None:
    assert handle_name("item_list", "other", None) == "itemList"
