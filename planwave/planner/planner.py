"""The planner: request a plan from a model, check it, and send errors back for repair."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from planwave.errors import InputError, LimitExceeded, PlanInvalid, ProviderError
from planwave.graph.diagnostics import Diagnostic, errors_in
from planwave.graph.json_values import is_storable_text
from planwave.graph.plan import Plan, graph_hash, title_of_text
from planwave.graph.protocols import NodeTypes
from planwave.ids import new_id
from planwave.planner.capabilities import (
    NO_RULES,
    PlanRules,
    change_schema,
    check_can_plan,
    plan_schema,
    plannable_types,
    provider_cards,
    tool_cards,
    type_cards,
)
from planwave.planner.cost_estimate import forecast
from planwave.planner.graph_builder import ModelDefaults
from planwave.planner.progress import PlanProgress, PlanScanner, ProgressListener, ReadSteps
from planwave.planner.questions import (
    NO_ANSWERS,
    check_answers,
    goal_with_answers,
)
from planwave.planner.reply_parser import (
    RETRY_WITHOUT_REPLY,
    ParseContext,
    ParseResult,
    Reading,
    Translate,
    read_reply,
)
from planwave.planner.revised_plan import RevisedPlan, Revision, RevisionReading
from planwave.planner.revision import read_revision, revision_prompt
from planwave.planner.small_models import read_small_reply, read_steps, small_request
from planwave.prompts.render import PlanExample, planner_prompt, repair_prompt
from planwave.providers.errors import TRY_AGAIN_HINT
from planwave.providers.protocols import (
    UNSET,
    CallScope,
    CallSettings,
    ModelReply,
    ModelRequest,
    Models,
    Providers,
    Usage,
    text_tokens,
)
from planwave.providers.recordings import usage_data
from planwave.settings import Limits

MAX_REPAIRS: Final = 2
_MAX_FINDINGS: Final = 40
"""A thousand errors of one kind help a model no more than forty."""
_HINTS_FOR_PEOPLE: Final = frozenset({"unknown-node-type"})
"""Errors whose hint names commands, which a model cannot run."""
_MAX_REPLY_CHARS: Final = 24_000
"""Characters of a faulty reply that are handed back; a longer one is not worth its tokens."""
_MAX_TITLE_CHARS: Final = 80


class Planner:
    """A planner: turns a goal into a checked plan.

    Args:
        models: Calls the planner's model.
        providers: Says which providers and models there are.
        catalogue: The node types a plan may use.
        limits: What a goal and a plan may not pass; None for no limits.
        rules: Which of the node types plans may use.
        new_id: Makes plan ids.
        now: Gives the time of creation.
    """

    def __init__(
        self,
        models: Models,
        providers: Providers,
        catalogue: NodeTypes,
        limits: Limits | None = None,
        rules: PlanRules = NO_RULES,
        new_id: Callable[[], str] = new_id,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._models = models
        self._providers = providers
        self._catalogue = catalogue
        self._limits = limits
        self._rules = rules
        self._new_id = new_id
        self._now = now

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: ProgressListener | None = None,
        node_types: Sequence[str] | None = None,
        max_nodes: int | None = None,
        settings: CallSettings = UNSET,
        scope: CallScope | None = None,
        answers: Mapping[str, str] = NO_ANSWERS,
        examples: Sequence[PlanExample] = (),
    ) -> Plan:
        """Plan a goal.

        Args:
            prompt: The goal in the user's words.
            provider: Who plans, and runs the nodes the plan leaves open; None for the default.
            model: See ``provider``.
            on_progress: Called with each progress event while the plan is written; must not block.
            node_types: The only types this plan may use, of those that plans may; None for all.
            max_nodes: The most nodes this plan may have, below what the limits allow.
            settings: The call settings of the planner's model.
            scope: The node whose calls these are, where they are to be recorded.
            answers: What a person answered to the questions of an earlier plan of the goal, by question.
            examples: Earlier plans that the model is shown; small models are shown none.

        Raises:
            InputError: See ``check_goal``; ``model-cannot-plan``, ``unknown-node-type``, ``no-node-types``.
            LimitExceeded: The goal is longer than ``goal_chars``.
            UnknownProvider, UnavailableProvider, UnknownModel: Raised before any model call.
            PlanInvalid: Faulty after two repairs; holds every diagnostic and the raw replies.
            ProviderError: A call failed after the retry layer gave up.
        """
        check_goal(prompt, self._limits, answers)
        provider, model = self._providers.resolve(provider, model)
        check_can_plan(self._providers, provider, model)
        rules = self._rules.restricted_to(node_types)
        types = plannable_types(self._catalogue, rules)
        talk = self._start_conversation(
            prompt, provider, model, types, max_nodes, rules, answers, examples
        ).with_settings(settings)
        translate, steps = (read_small_reply, read_steps) if talk.small else (None, None)
        context = self._context((provider, model), translate, types, max_nodes, rules, answers)
        report = on_progress or _ignore_progress
        ask = partial(self._ask, on_progress=report, scope=scope, steps=steps)
        read = partial(_read_plan, context)
        answer = await self._ask_until_valid(talk, read, report, ask)
        return self._plan(prompt, talk, *answer, report)

    def _context(
        self,
        model: tuple[str, str],
        translate: Translate | None,
        types: Sequence[str],
        max_nodes: int | None,
        rules: PlanRules,
        answers: Mapping[str, str] = NO_ANSWERS,
    ) -> ParseContext:
        """Return what a reply is read with; nodes that name no model get this one."""
        return ParseContext(
            self._catalogue, self._providers, ModelDefaults(*model), self._limits, translate,
            types, max_nodes, rules, answers,
        )  # fmt: skip

    async def revise(
        self,
        plan: RevisedPlan,
        words: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: ProgressListener | None = None,
        scope: CallScope | None = None,
    ) -> Revision:
        """Have a model write the operations that change a plan as a person wants it.

        Args:
            plan: The plan as it is.
            words: What is to be different, in the person's words.
            provider: Who plans, and runs the nodes that are added without one; None for the default.
            model: See ``provider``.
            on_progress: Called with each progress event; must not block.
            scope: Whose calls these are, so that an execution repeats none after its process ended.

        Returns:
            The operations with the graph that they make; none of them, with the model's sentence, where
            the words ask for nothing that can be done.

        Raises:
            PlanwaveError: Those of ``create_plan``; ``model-cannot-plan`` also for small models.
        """
        check_goal(words, self._limits)
        provider, model = self.require_reviser(provider, model)
        types = plannable_types(self._catalogue, self._rules)
        first = self._start_conversation(plan.goal, provider, model, types, None, self._rules).first
        prompt = revision_prompt(plan, words)
        schema = first.schema and change_schema(plan, self._catalogue, types, self._rules)
        first = replace(first, prompt=prompt, schema=schema, schema_name="change")
        context = self._context((provider, model), None, types, None, self._rules)
        report = on_progress or _ignore_progress
        ask = partial(self._ask, on_progress=report, scope=scope, steps=None)
        read = partial(_read_revision, plan, context)
        result, attempts = await self._ask_until_valid(
            _Conversation(first, False), read, report, ask
        )
        return Revision(result, provider, model, attempts)

    def require_reviser(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Return the provider and the model that write a change; None for the default.

        Raises:
            InputError: ``model-cannot-plan``.
            UnknownProvider, UnavailableProvider, UnknownModel: There is no such one here.
        """
        provider, model = self._providers.resolve(provider, model)
        check_can_plan(self._providers, provider, model)
        if self._providers.profile(provider, model).small:
            raise InputError(
                f"{provider}/{model} is too small to change a plan",
                code="model-cannot-plan",
                hint="choose another provider or model, or edit the plan",
            )
        return provider, model

    @property
    def rules(self) -> PlanRules:
        """What its plans may use."""
        return self._rules

    def request_for(
        self,
        prompt: str,
        provider: str,
        model: str,
        *,
        node_types: Sequence[str] | None = None,
        max_nodes: int | None = None,
    ) -> ModelRequest:
        """Return the first request of ``create_plan``, for an equal plan of an equal request."""
        rules = self._rules.restricted_to(node_types)
        types = plannable_types(self._catalogue, rules)
        return self._start_conversation(prompt, provider, model, types, max_nodes, rules).first

    async def _ask_until_valid(
        self,
        conversation: _Conversation,
        read: Callable[[str, str], Awaitable[_Reading]],
        on_progress: ProgressListener,
        ask: _Ask,
    ) -> tuple[_Reading, list[dict[str, Any]]]:
        """Call the model and send errors back until a reply is valid or the repairs are used up."""
        request = conversation.first
        attempts: list[dict[str, Any]] = []
        findings: Sequence[Diagnostic] = ()
        for number in range(1 + MAX_REPAIRS):
            if number:
                documents = [d.as_json() for d in findings]
                data = {"attempt": number + 1, "diagnostics": documents}
                on_progress(PlanProgress("repair", data, attempts[-1]["usage"]))
            try:
                answer = await ask(request)
            except ProviderError as error:
                if error.code != "empty-reply":
                    error.attempts = tuple(attempts)
                    if error.hint == TRY_AGAIN_HINT:
                        error.hint = _PLAN_AGAIN_HINT
                    raise
                answer = _ModelAnswer("", "stop", self._estimated(request, "").as_json())
            reading = await read(answer.text, answer.finish_reason)
            attempts.append(_attempt_record(answer, reading))
            if not errors_in(reading.diagnostics):
                return reading, attempts
            findings = reading.diagnostics
            request = conversation.next_request(request, reading, answer)
        raise PlanInvalid(findings, attempts)

    def _start_conversation(
        self,
        goal: str,
        provider: str,
        model: str,
        types: Sequence[str],
        max_nodes: int | None,
        rules: PlanRules,
        answers: Mapping[str, str] = NO_ANSWERS,
        examples: Sequence[PlanExample] = (),
    ) -> _Conversation:
        profile = self._providers.profile(provider, model)
        if profile.small:
            text = goal_with_answers(goal, answers)
            return _Conversation(small_request(text, provider=provider, model=model), small=True)
        system, user = planner_prompt(
            goal,
            type_cards(self._catalogue, types, rules),
            provider_cards(self._providers),
            provider=provider,
            model=model,
            max_nodes=self._max_nodes(max_nodes),
            tools=tool_cards(self._catalogue, rules),
            answers=answers,
            examples=examples,
        )
        request = ModelRequest(
            provider,
            model,
            user,
            system=system,
            max_tokens=profile.max_output_tokens,
            schema=plan_schema(self._catalogue, types, rules)
            if profile.structured_output
            else None,
            schema_name="plan",
        )
        return _Conversation(request, small=False, examples=examples)

    def _max_nodes(self, requested: int | None) -> int | None:
        bounds = [requested, None if self._limits is None else self._limits.plan_nodes]
        return min((bound for bound in bounds if bound is not None), default=None)

    async def _ask(
        self,
        request: ModelRequest,
        *,
        on_progress: ProgressListener,
        scope: CallScope | None,
        steps: ReadSteps | None,
    ) -> _ModelAnswer:
        """Read one reply while it arrives; stop the call if the reply passes ``plan_bytes``."""
        most = None if self._limits is None else self._limits.plan_bytes
        scanner = PlanScanner(steps, self._is_linked)
        pieces: list[str] = []
        size = 0
        stream = self._models.stream(request, scope)
        try:
            async for item in stream:
                if isinstance(item, ModelReply):
                    for progress in scanner.finish():
                        on_progress(progress)
                    return _ModelAnswer(item.text, item.finish_reason, usage_data(item))
                if item.kind == "discarded":  # it was reasoning; the reply has the text
                    scanner, size = PlanScanner(steps, self._is_linked), 0
                    pieces.clear()
                    continue
                reasoning = item.kind == "reasoning"
                on_progress(PlanProgress("delta", {"text": item.text, "reasoning": reasoning}))
                if reasoning:
                    continue
                pieces.append(item.text)
                for progress in scanner.feed(item.text):
                    on_progress(progress)
                size += len(item.text.encode("utf-8", "surrogatepass"))
                if most is not None and size > most:
                    text = "".join(pieces)
                    usage = self._estimated(request, text)
                    return _ModelAnswer(text, "plan_bytes", usage.as_json())
        finally:
            # Left early, the stream must free its connection now, not when it is collected.
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        raise ProviderError(
            f"{request.provider}/{request.model} ended without a reply",
            provider=request.provider,
            model=request.model,
            retryable=True,
        )

    def _is_linked(self, node_type: str) -> bool:
        facts = self._catalogue.type_info(node_type)
        return facts is not None and not facts.executes

    def _estimated(self, request: ModelRequest, text: str) -> Usage:
        """Return the estimated usage of a call that was stopped before it reported its usage."""
        usage = Usage(text_tokens(*request.texts), text_tokens(text), estimated=True)
        return replace(
            usage, cost_usd=self._providers.price(request.provider, request.model, usage)
        )

    def _plan(
        self,
        goal: str,
        talk: _Conversation,
        result: ParseResult,
        attempts: Sequence[dict[str, Any]],
        on_progress: ProgressListener,
    ) -> Plan:
        graph = result.graph
        if graph is None:
            raise PlanInvalid(result.diagnostics, attempts)
        for fix in _fixes_of(result):
            on_progress(PlanProgress("fix", {"fix": fix}))
        return Plan(
            plan_id=self._new_id(),
            user_prompt=goal,
            title=result.title or title_of_text(goal, _MAX_TITLE_CHARS),
            graph=graph,
            hash=graph_hash(graph),
            created_at=self._now().isoformat(timespec="microseconds"),
            provider=talk.first.provider,
            model=talk.first.model,
            diagnostics=[d.as_json() for d in result.diagnostics],
            fixes=_fixes_of(result),
            questions=result.questions,
            attempts=attempts,
            examples=[{"plan_id": e.plan_id, "title": e.title} for e in talk.examples],
            forecast=forecast(graph, self._catalogue, self._providers, goal=goal),
        )


def check_goal(goal: str, limits: Limits | None, answers: Mapping[str, str] = NO_ANSWERS) -> None:
    """Raise if a goal, or an answer to what it leaves open, is empty, too long or not storable.

    Raises:
        InputError: It is empty (``empty-goal``) or no storable text (``invalid-text``), or an answer
            cannot be used (``invalid-goal-answer``).
        LimitExceeded: It is longer than ``goal_chars``.
    """
    if not goal.strip():
        raise InputError(
            "the goal is empty", code="empty-goal", hint="say what you want to have done"
        )
    if limits is not None and len(goal) > limits.goal_chars:
        raise LimitExceeded("goal_chars", limits.goal_chars, len(goal), what="the goal")
    if not is_storable_text(goal):
        raise InputError(
            "the goal holds a NUL character or half a surrogate pair", code="invalid-text"
        )
    check_answers(answers)


class _ModelAnswer(NamedTuple):
    text: str
    finish_reason: str
    usage: Mapping[str, Any]


async def _read_plan(context: ParseContext, reply: str, finish_reason: str) -> ParseResult:
    return read_reply(reply, context, finish_reason)


async def _read_revision(
    plan: RevisedPlan, context: ParseContext, reply: str, finish_reason: str
) -> RevisionReading:
    # In a thread: hundreds of operations on a large plan take a second.
    return await asyncio.to_thread(read_revision, plan, context, reply, finish_reason)


_PLAN_AGAIN_HINT: Final = "plan again, or choose another provider or model"
_Ask = Callable[[ModelRequest], Awaitable[_ModelAnswer]]
_Reading = TypeVar("_Reading", bound=Reading)


@dataclass(frozen=True, slots=True)
class _Conversation:
    """The first request, and how to repeat it with the errors of the reply."""

    first: ModelRequest
    small: bool
    examples: Sequence[PlanExample] = ()

    def with_settings(self, settings: CallSettings) -> _Conversation:
        return replace(self, first=settings.of(self.first))

    def next_request(
        self, previous: ModelRequest, result: Reading, answer: _ModelAnswer
    ) -> ModelRequest:
        errors = errors_in(result.diagnostics)
        if all(d.code in RETRY_WITHOUT_REPLY for d in errors):
            return previous
        cut = answer.finish_reason in ("length", "plan_bytes")
        prompt = repair_prompt(
            self.first.prompt, _truncate(result.reply), _error_sentences(errors), shorter=cut
        )
        return replace(previous, prompt=prompt, max_tokens=self._next_max_tokens(previous, answer))

    def _next_max_tokens(self, previous: ModelRequest, answer: _ModelAnswer) -> int | None:
        """Return the token limit of the repair call: doubled after a cut reply, except for small models.

        Where planwave set no limit, the model's own was reached: only a shorter plan helps.
        """
        if answer.finish_reason != "length" or self.small or previous.max_tokens is None:
            return previous.max_tokens
        return previous.max_tokens * 2


def _attempt_record(answer: _ModelAnswer, result: Reading) -> dict[str, Any]:
    return {
        "reply": result.reply,
        "finish_reason": answer.finish_reason,
        "diagnostics": [d.as_json() for d in result.diagnostics],
        "usage": answer.usage,
    }


def _error_sentences(errors: Sequence[Diagnostic]) -> list[str]:
    """Return errors as sentences with hints for the model, some of each kind."""
    sample = _sample_by_code(errors, _MAX_FINDINGS)
    sentences = [
        f"[{d.code}] {d.message}"
        + (f" (at {d.pointer})" if d.pointer and d.pointer not in d.message else "")
        + (f"; {d.hint}" if d.hint and d.code not in _HINTS_FOR_PEOPLE else "")
        for d in sample
    ]
    if more := len(errors) - len(sample):
        sentences.append(f"and {more} more like these")
    return sentences


def _sample_by_code(errors: Sequence[Diagnostic], limit: int) -> list[Diagnostic]:
    """Leave out what is most like the rest: the later ones of the codes that come most often."""
    met: Counter[str] = Counter()
    ranked: list[tuple[int, int]] = []
    for number, error in enumerate(errors):
        ranked.append((met[error.code], number))
        met[error.code] += 1
    return [errors[number] for number in sorted(number for _, number in sorted(ranked)[:limit])]


def _truncate(reply: str) -> str:
    if len(reply) <= _MAX_REPLY_CHARS:
        return reply
    return f"{reply[:_MAX_REPLY_CHARS]}\n… ({len(reply) - _MAX_REPLY_CHARS} more characters)"


def _fixes_of(result: ParseResult) -> list[str]:
    untitled = () if result.title else ("the plan had no title: took the beginning of the goal",)
    return [*result.fixes, *untitled]


def _ignore_progress(_: PlanProgress) -> None: ...
