"""Secrets are taken out by key, by mark and by form; references and words are not."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.secrets import (
    MARK,
    Withheld,
    is_secret_key,
    secret_name,
    without_secrets,
)

CANARY = "c4n4ry-8f3b2a91d7"


@pytest.mark.parametrize(
    "value",
    [
        {"api_key": CANARY},
        {"apiKey": CANARY},
        {"OPENAI_API_KEY": CANARY},
        {"headers": {"Authorization": f"Bearer {CANARY}"}},
        {"headers": [{"name": "X-Api-Key", "value": CANARY}]},
        {"headers": [{"key": "authorization", "value": CANARY}]},
        {"headers": f"Accept: a/b\nAuthorization: Bearer {CANARY}\nX: y"},
        {"env": [{"name": "REGION", "value_type": "secret", "value": CANARY}]},
        {"template": {"api_key": {"type": "str", "value": CANARY}}},
        {"template": {"key": {"password": True, "value": CANARY}}},
        {"url": f"https://h.example/x?api_key={CANARY}&q=1"},
        {"url": f"https://user:{CANARY}@h.example/x"},
        {"info": f'{{"api_key": "{CANARY}", "a": 1}}'},
        {"info": f'{{\\"api_key\\": \\"{CANARY}\\"}}'},
        {"prompt": f"use the key sk-{CANARY}-{CANARY} for it"},
        {"code": f"requests.get(u, headers={{'Authorization': 'Bearer {CANARY}'}})"},
        {"code": f"password = '{CANARY}'"},
        {"pem": f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----"},
        {"a": [[{"password": CANARY}]]},
        {"GITHUB_TOKEN": CANARY},
        {"slackToken": CANARY},
        {"Ocp-Apim-Subscription-Key": CANARY},
        {"password": f"{CANARY}{{{{ env.TAIL }}}}"},
        {"password": f"={CANARY}"},
        {"url": f"https://h.example/x?sv=1&sig={CANARY}"},
        {"url": f"https://hooks.slack.com/services/T00000000/B0000/{CANARY}".replace("-", "")},
        {"url": f"https://api.telegram.org/bot123456:{CANARY}abc/sendMessage"},
        {"code": f"curl -u admin:{CANARY} https://h.example"},
        {"code": f"os.environ['SECRET_KEY'] = '{CANARY}'"},
        {"code": f"[api_key => '{CANARY}']"},
        {"npmrc": f"//registry.example/:_authToken={CANARY}"},
        {"contract": {f"use sk-{CANARY}-{CANARY}": "a name of a field"}},
    ],
    ids=str,
)
def test_a_secret_is_taken_out_and_named(value: dict[str, Any]) -> None:
    clean, removed = without_secrets(value, "/x")
    assert CANARY.replace("-", "") not in repr(clean).replace("-", "")
    assert removed
    assert all(each.pointer.startswith("/x/") for each in removed)
    assert any(CANARY.replace("-", "") in each.value.replace("-", "") for each in removed)
    assert not any(CANARY in each.pointer for each in removed)


@pytest.mark.parametrize(
    "value",
    [
        {"api_key": "{{env.KEY}}"},
        {"Authorization": "Bearer {{ $env.TOKEN }}"},
        {"api_key": "={{ $json.key }}"},
        {"api_key": "$OPENAI_API_KEY"},
        {"api_key": ""},
        {"password": None},
        {"schema": {"properties": {"password": {"type": "string"}}, "required": ["password"]}},
        {"max_tokens": 300, "tokens": 5},
        {"prompt": "Ask for the password: please be polite."},
        {"credentials": {"openAiApi": {"id": "7", "name": "OpenAI account"}}},
        {"text": "Basic questions and Bearer bonds"},
        {"headers": "Authorization: Bearer {{#env.KEY#}}\nAccept: token"},
        {"code": "run -u root:{{ name }} and ls -u x"},
        {"api_key": "=Bearer {{ $json.key }}"},
    ],
    ids=str,
)
def test_what_is_no_secret_stays(value: dict[str, Any]) -> None:
    assert without_secrets(value) == (value, [])


@pytest.mark.parametrize("name", ["headers", "params"])
@pytest.mark.parametrize("secret", ["plainwords", "ab", "three plain words"])
def test_lines_of_names_and_values_are_told_by_the_names(name: str, secret: str) -> None:
    clean, (removed,) = without_secrets({name: f"Accept: a/b\nX-Api-Key: {secret}\npage:token\n"})
    assert clean == {name: f"Accept: a/b\nX-Api-Key: {MARK}\npage:token\n"}
    assert removed.value == secret
    bearer, _ = without_secrets({name: f"Authorization:Bearer {secret}"})
    assert str(bearer[name]) == f"Authorization:Bearer {MARK}"


def test_names_of_fields_that_are_secrets_stay_apart() -> None:
    keys = {f"Bearer {CANARY}-{number}": number for number in range(3)}
    clean, removed = without_secrets(keys, "/x")
    assert list(clean.values()) == [0, 1, 2]
    assert len(removed) == 3
    assert CANARY not in repr(clean)


def test_the_place_of_a_secret_says_what_stood_before_it() -> None:
    clean, (removed,) = without_secrets({"Authorization": f"Bearer {CANARY}"})
    withheld = clean["Authorization"]
    assert isinstance(withheld, Withheld)
    assert (withheld.scheme, str(withheld)) == ("Bearer ", MARK)
    assert removed.value == CANARY


def test_a_secret_in_a_longer_text_leaves_the_rest() -> None:
    clean, _ = without_secrets({"h": f"Accept: x\nX-Api-Key: {CANARY}"})
    assert clean == {"h": f"Accept: x\nX-Api-Key: {MARK}"}


@pytest.mark.parametrize("name", ["api_key", "API-Key", "clientSecret", "db_password", "token"])
def test_keys_of_secrets(name: str) -> None:
    assert is_secret_key(name)


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "keys",
        "secretary",
        "authorName",
        "tokenizer",
        "nextPageToken",
        "stop_token",
        "maxToken",
    ],
)
def test_keys_of_other_things(name: str) -> None:
    assert not is_secret_key(name)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "value", "a", "password"]), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(_JSON)
def test_the_rest_of_any_document_keeps_its_shape(value: Any) -> None:
    clean, removed = without_secrets(value)
    assert type(clean) is type(value) or isinstance(clean, Withheld)
    if not removed:
        assert clean == value
    again, more = without_secrets(clean)
    assert (again, more) == (clean, [])


def test_the_name_beside_a_secret_is_cleaned_too() -> None:
    variable = {"name": "api_key sk-hidden1Xq7Zt42Ab", "value": "x1y2z3", "value_type": "secret"}
    _, removed = without_secrets(variable)
    assert {each.value for each in removed} == {"sk-hidden1Xq7Zt42Ab", "x1y2z3"}
    assert all("sk-hidden" not in each.name for each in removed)


@pytest.mark.parametrize(
    "part", ["?sig=", "a=", "token:$", "password=", "eyJ", "://a:", " -u a:", "bot1:", "{{", "${"]
)
def test_a_long_text_is_read_in_a_time_that_grows_with_it(part: str) -> None:
    begun = time.process_time()
    without_secrets({"x": part * 60_000, "headers": part * 60_000, "password": part * 60_000})
    assert time.process_time() - begun < 4


def test_two_steps_never_share_the_name_of_a_secret() -> None:
    names: dict[str, str] = {}
    made = [
        secret_name(names, pointer, label, "X-Api-Key")
        for pointer, label in (("/0", "a-b"), ("/1", "a b"), ("/2", "1"), ("/3", ""), ("/0", "a-b"))
    ]
    assert made == ["a_b_x_api_key", "a_b_x_api_key_2", "secret_1_x_api_key", "x_api_key", made[0]]
    assert all(len(secret_name(names, f"/{i}", "x" * 100, "y")) <= 64 for i in range(9))
