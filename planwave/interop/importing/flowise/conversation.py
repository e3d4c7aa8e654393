"""The conversation that the model steps of a run share, written out for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planwave.interop.importing.flowise.loops import HUMAN_INPUT, Loop
from planwave.interop.importing.flowise.steps import Said, Step, of_top, passed_in
from planwave.interop.importing.templates import quoted

_MOST_SPEAKERS: Final = 100
"""Steps whose replies a conversation has, as many as the longest path of a graph by default."""
_DECISIONS: Final = {"0": "proceed", "1": "reject"}
SPEAKING: Final = frozenset({"llmAgentflow", "agentAgentflow", "executeFlowAgentflow"})
"""Steps that add to the shared conversation."""
_LISTENING: Final = SPEAKING | {HUMAN_INPUT, "conditionAgentAgentflow"}
_KEY: Final = ("conversation",)


def conversation(step: Step, *, with_question: bool = True) -> str:
    """Return what was said before a step, as an expression of a list.

    Args:
        step: The step.
        with_question: Whether the question of the user is in it where no step before was sent it.
    """
    pieces = [piece] if (piece := of_top(step, step.flow.history)) else []
    pieces += _run(step)
    if with_question and (opening := if_first(step, step.opening or asked(step))):
        pieces.append(opening)
    return " + ".join(pieces) or "[]"


def said_in_run(step: Step) -> str:
    """Return what the steps of the run said before a step, without the turns before the run."""
    return " + ".join(_run(step)) or "[]"


def _run(step: Step, *, is_after: bool = False, handle: str = "") -> list[str]:
    """Return lists that together are what the run's steps said before a step, or also what it says."""
    scope = step.scope
    base = _base(step)
    made: list[tuple[Step | None, str]] = [(None, base)] if base != "[]" else []
    speakers = scope.speakers(step)
    speakers += [step] if is_after and (step.said or step.opening or step.chat) else []
    if len(speakers) > _MOST_SPEAKERS:
        step.lose(f"its conversation has replies of {len(speakers)} steps: too many", step.id)
    for each in speakers[:_MOST_SPEAKERS]:
        is_sure = each is step or scope.has_run(each, step)
        if each.chat:
            before = [said for by, said in made if by is None or scope.is_before(by, each)]
            made = [(by, said) for by, said in made if not (by is None or scope.is_before(by, each))]  # fmt: skip
            other = " + ".join(before) or "[]"
            chat = _chat(each)
            made.insert(0, (each, chat if is_sure else f"({chat} if {each.ran} else ({other}))"))  # fmt: skip
            continue
        opening, said = if_first(each, each.opening), _said_to(step, each, handle)
        both = " + ".join(piece for piece in (opening, said) if piece)
        if both:
            made.append((each, both if is_sure else f"(({both}) if {each.ran} else [])"))
    return [said for _, said in made]


def _said_to(step: Step, speaker: Step, handle: str) -> str:
    """Return what a step added to the conversation; a person's decision stands there as the user's message."""
    said = speaker.said_expressions
    if speaker.kind == HUMAN_INPUT:
        branch = handle if speaker is step else step.scope.branch(speaker, step)
        decision = _DECISIONS.get(branch, "decided")
        said = [*said, Said("user", quoted(decision)).expression]
    return f"[{', '.join(said)}]" if said else ""


def _base(step: Step) -> str:
    """Return what the run's steps said before those of the graph of a step: in earlier rounds, and before these."""
    loop = step.scope.loop
    if loop is None:
        return "[]"
    around = passed_in(step, loop.region.scope, said_in_run(loop.region))
    if not _has_speakers(loop):
        return around
    return loop.before(_KEY, around, _at_end)


def _has_speakers(loop: Loop) -> bool:
    return any(
        each.kind in _LISTENING or (each.loop is not None and _has_speakers(each.loop))
        for each in loop.body.steps
    )


def _at_end(step: Step, handle: str) -> str:
    return " + ".join(_run(step, is_after=True, handle=handle)) or "[]"


def keep_conversation(loop: Loop) -> None:
    """Say whether the rounds of a loop hand on what was said, where somebody reads it."""
    loop.region.chat = _has_speakers(loop)


def _chat(region: Step) -> str:
    return "[]" if region.loop is None else region.loop.after(_KEY, _at_end)


def asked(step: Step) -> list[Said]:
    """Return the message of the user that a first model step is sent."""
    sent = of_top(step, step.flow.sent)
    return [Said("user", sent)] if sent else []


def if_first(step: Step, said: Sequence[Said]) -> str:
    """Return messages that are sent only where no model step ran before; "" where one always did."""
    if step.is_first is None:
        step.is_first = _is_first(step)
    if not said or step.is_first == "false":
        return ""
    items = f"[{', '.join(one.expression for one in said)}]"
    return items if step.is_first == "true" else f"({items} if {step.is_first} else [])"


def _is_first(step: Step) -> str:
    before = step.scope.speakers(step)
    if any(not each.chat and step.scope.has_run(each, step) for each in reversed(before)):
        return "false"
    others = [f"({each.ran} and {_chat(each)})" if each.chat else each.ran for each in before]
    if (base := _base(step)) != "[]":
        others.append(f"({base})")
    return f"not ({' or '.join(others)})" if others else "true"


def ends_with_reply(step: Step) -> bool:
    """Return whether the conversation before a step may end with a reply of a model."""
    speakers = [each for each in step.scope.earlier(step) if each.said or each.chat]
    if speakers:
        return _is_reply(speakers[-1])
    loop = step.scope.loop
    if loop is None:
        return False
    return any(map(_is_reply, loop.body.steps)) or ends_with_reply(loop.region)


def _is_reply(step: Step) -> bool:
    if step.loop is not None:
        return any(map(_is_reply, step.loop.body.steps))
    return step.kind in SPEAKING and any(
        step.inputs.get(name) == "assistantMessage" for name in step.inputs if name.endswith("ReturnResponseAs")
    )  # fmt: skip
