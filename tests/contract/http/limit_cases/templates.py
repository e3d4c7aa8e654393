"""Limits of templates."""

from __future__ import annotations

from typing import Any, Final

from planwave.expressions.renderer import Renderer
from planwave.settings import Limits
from tests.contract.http.limit_cases.registry import (
    Refusal,
    case,
)

MIB: Final = 1024 * 1024


async def _render(limits: Limits, source: str, **variables: Any) -> Refusal | None:
    renderer = Renderer(
        wall_s=limits.template_wall_s,
        memory_bytes=limits.template_memory_bytes,
        max_template_bytes=limits.template_bytes,
        max_output_bytes=limits.template_output_bytes,
    )
    try:
        await renderer.render(source, variables)
    finally:
        await renderer.close()
    return None


@case("template_bytes", 100, code="template-too-large")
async def _(limits: Limits, amount: int) -> Refusal | None:
    source = "{{ 1 }}"
    return await _render(limits, source + "x" * (amount - len(source)))


@case("template_output_bytes", 100, code="template-too-large")
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _render(limits, "{{ x ~ '' }}", x="x" * amount)


@case("template_wall_s", 1, at=1, past=10**9, code="template-timeout", mentions=["than 1 s"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The amount is work: pieces that are replaced."""
    heavy = "{% for i in range(n) %}{% set y = x | replace('a', 'b') %}{% endfor %}"
    return await _render(limits, heavy, x="a" * 500_000, n=min(amount, 90_000))


@case(
    "template_memory_bytes", 64 * MIB, at=MIB, past=500 * MIB, code="template-memory", mentions=[],
    template_output_bytes=8 * MIB,
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Refusal | None:
    source = "{{ (('a' * 1024) | replace('a', 'b' * n)) | length }}"
    return await _render(limits, source.replace("n)", f"{amount // 1024})"))
