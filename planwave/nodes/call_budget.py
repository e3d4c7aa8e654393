"""What the model calls of a node reserve of the budget of its execution."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planwave.graph.protocols import Budget, FlowContext, Reservation
from planwave.nodes.services import services_of
from planwave.providers.protocols import CallScope, ModelRequest, Usage, text_tokens

_REPLY_TOKENS: Final = 4_096
"""The most tokens that are reserved for a reply; few replies are longer."""
_WARNED: Final = "unpriced models"


class CallBudget:
    """Reserves for each model call what it may use, until its ``usage`` event is emitted.

    A call that is served from its record reserves nothing. Without a budget nothing is done.
    """

    __slots__ = ("_context", "_open")

    def __init__(self, context: FlowContext, scope: CallScope) -> None:
        self._context = context
        self._open: list[Reservation] = []
        if context.budget is not None:
            scope.reserve = self._reserve

    async def _reserve(self, request: ModelRequest) -> None:
        budget = self._context.budget
        if budget is None:
            return
        tokens = _expected(request)
        amounts = {"calls": 1.0, "tokens": float(tokens.input_tokens + tokens.output_tokens)}
        if "usd" in budget.amounts:
            amounts["usd"] = self._price(request, tokens) or 0.0
        self._open.append(await budget.reserve(amounts))

    def warning(self, request: ModelRequest) -> str | None:
        """Return the warning of a model without a known price, once in a graph run."""
        budget, runtime = self._context.budget, self._context.runtime
        if not _is_priced(budget) or self._price(request, _expected(request)) is not None:
            return None
        name = f"{request.provider} ({request.model})"
        if runtime.cache_get(_WARNED, name):
            return None
        runtime.cache_set(_WARNED, name, True)
        return f"the price of {name} is not known: its calls count as $0 in the budget"

    def _price(self, request: ModelRequest, tokens: Usage) -> float | None:
        """Return the most that a call may cost: all of its prompt may be written to the provider's cache."""
        providers = services_of(self._context).providers
        least = providers.profile(request.provider, request.model).cached_tokens
        if least is not None and tokens.input_tokens >= least:
            tokens = replace(tokens, cache_write_tokens=tokens.input_tokens)
        return providers.price(request.provider, request.model, tokens)

    def take(self) -> list[Reservation]:
        """Return what is reserved now, for the caller to release."""
        taken, self._open = self._open, []
        return taken

    def release(self) -> None:
        """Free what was reserved; the usage of the calls has been emitted, or they have failed."""
        for reservation in self.take():
            reservation.release()


def _is_priced(budget: Budget | None) -> bool:
    return budget is not None and "usd" in budget.amounts


def _expected(request: ModelRequest) -> Usage:
    """Return the tokens of the prompt and of a reply, as far as they are known before the call."""
    tools = (f"{each.name}{each.description}{each.parameters}" for each in request.tools)
    most = _REPLY_TOKENS if request.max_tokens is None else request.max_tokens
    return Usage(text_tokens(*request.texts, *tools), min(most, _REPLY_TOKENS))
