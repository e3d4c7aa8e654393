from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from planwave.errors import TemplateError
from planwave.expressions.render_worker import EXIT_MEMORY as WORKER_EXIT_MEMORY
from planwave.expressions.renderer import EXIT_MEMORY, FUEL, Renderer

WALL_S = 60.0
"""What only a template that never ends would need, whatever the machine."""
GREEDY = "{{ ('a' * 10000) | replace('a', 'b' * 50000) }}"


@pytest.fixture
async def renderer() -> AsyncIterator[Renderer]:
    own = Renderer(wall_s=WALL_S)
    yield own
    await own.close()


async def refusal(renderer: Renderer, source: str, **variables: Any) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        await renderer.render(source, variables)
    return caught.value


def worker_pid(renderer: Renderer) -> int:
    worker = renderer._worker
    assert worker is not None
    return worker.process.pid


async def stuck(renderer: Renderer) -> asyncio.Task[str]:
    """Start a render that cannot end by itself, and wait until its worker holds it."""
    await renderer.render("warm", {})
    os.kill(worker_pid(renderer), signal.SIGSTOP)
    task = asyncio.get_running_loop().create_task(renderer.render("{{ 'late' }}", {}))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_text_and_values_are_rendered(renderer: Renderer) -> None:
    text = await renderer.render("{% for x in xs %}{{ x }};{% endfor %}\n", {"xs": [1, None, {}]})
    assert text == "1;;{};\n"
    assert await renderer.evaluate("[x.a, 1 / 2]", {"x": {"a": None}}) == [None, 0.5]


async def test_strange_text_crosses_the_pipe_unchanged(renderer: Renderer) -> None:
    text = "\u2028\x00é\U0001f600{{ 7*7 }}</script>'\""
    assert await renderer.render("{{ x ~ '' }}", {"x": text}) == text


async def test_one_worker_serves_many_renders_in_order(renderer: Renderer) -> None:
    done: list[int] = []

    async def ask(number: int) -> None:
        assert await renderer.render("{{ n + 0 }}", {"n": number}) == str(number)
        done.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(ask(number))
    first = worker_pid(renderer)
    await ask(20)
    assert (done, worker_pid(renderer)) == (list(range(21)), first)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("{{ nope }}", "template-undefined"),
        ("{{ x.nope }}", "template-undefined"),
        ("{{ 1 +* }}", "template-syntax"),
        ("{{ 1 | nope }}", "template-forbidden"),
        ("{{ lipsum() }}", "template-forbidden"),
        ("{{ cycler(1) }}", "template-forbidden"),
        ("{{ debug() }}", "template-forbidden"),
        ("{% include 'a' %}", "template-forbidden"),
        ("{{ x.pop('a') }}", "template-forbidden"),
        ("{{ x.get }}", "template-error"),
        ("{{ 1 // 0 }}", "template-error"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "template-error"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
         "template-timeout"),
    ],
)  # fmt: skip
async def test_a_faulty_template_has_its_code_and_the_worker_lives(
    source: str, code: str, renderer: Renderer
) -> None:
    await renderer.render("warm", {})
    before = worker_pid(renderer)
    assert (await refusal(renderer, source, x={"a": 1})).code == code
    assert await renderer.render("{{ 1 + 1 }}", {}) == "2"
    assert worker_pid(renderer) == before


async def test_an_undefined_result_is_not_null(renderer: Renderer) -> None:
    assert await renderer.evaluate("x", {"x": None}) is None
    with pytest.raises(TemplateError) as caught:
        await renderer.evaluate("x.a", {"x": {}})
    assert caught.value.code == "template-undefined"


async def test_an_expression_cannot_break_out_of_its_place(renderer: Renderer) -> None:
    for expression in ("1 }} {{ 2", "1) is defined or (x", "1 %} {% set a = 1"):
        with pytest.raises(TemplateError) as caught:
            await renderer.evaluate(expression, {"x": None})
        assert caught.value.code == "template-syntax"


async def test_too_much_memory_ends_that_render_alone(renderer: Renderer) -> None:
    assert (await refusal(renderer, GREEDY)).code == "template-memory"
    assert await renderer.render("{{ 1 + 1 }}", {}) == "2"


async def test_a_worker_killed_for_memory_fails_only_the_render_in_flight(
    renderer: Renderer,
) -> None:
    first = await stuck(renderer)
    second = asyncio.get_running_loop().create_task(renderer.render("{{ 'next' }}", {}))
    os.kill(worker_pid(renderer), signal.SIGKILL)
    with pytest.raises(TemplateError) as caught:
        await first
    assert caught.value.code == "template-memory"
    assert await second == "next"


async def test_a_worker_killed_between_renders_is_replaced(renderer: Renderer) -> None:
    await renderer.render("warm", {})
    worker = renderer._worker
    assert worker is not None
    worker.process.kill()
    worker.process.wait()
    assert await renderer.render("{{ 'again' }}", {}) == "again"


async def test_a_crash_is_reported_as_one(renderer: Renderer) -> None:
    task = await stuck(renderer)
    os.kill(worker_pid(renderer), signal.SIGSEGV)
    os.kill(worker_pid(renderer), signal.SIGCONT)
    with pytest.raises(TemplateError) as caught:
        await task
    assert caught.value.code in ("template-crashed",)


async def test_a_worker_that_does_not_answer_in_time_is_killed() -> None:
    renderer = Renderer(wall_s=WALL_S)
    await renderer.render("warm", {})
    silent = worker_pid(renderer)
    os.kill(silent, signal.SIGSTOP)
    renderer.wall_s = 0.2
    with pytest.raises(TemplateError, match=r"longer than 0\.2 s") as caught:
        await renderer.render("{{ 'late' }}", {})
    assert caught.value.code == "template-timeout"
    renderer.wall_s = WALL_S
    assert await renderer.render("{{ 1 + 1 }}", {}) == "2"
    assert worker_pid(renderer) != silent
    await renderer.close()


async def test_cpu_time_is_limited_too() -> None:
    renderer = Renderer(wall_s=2, max_output_bytes=1 << 20)
    heavy = "{% for i in range(90000) %}{% set y = x | replace('a', 'b') %}{% endfor %}"
    error = await refusal(renderer, heavy, x="a" * 500_000)
    await renderer.close()
    assert error.code == "template-timeout"


async def test_a_cancelled_render_never_answers_a_later_one(renderer: Renderer) -> None:
    task = await stuck(renderer)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await renderer.render("{{ 'mine' }}", {}) == "mine"


async def test_a_render_cancelled_in_the_queue_disturbs_nobody(renderer: Renderer) -> None:
    first = await stuck(renderer)
    before = worker_pid(renderer)
    loop = asyncio.get_running_loop()
    queued = [loop.create_task(renderer.render(f"{{{{ {n} }}}}", {})) for n in range(2)]
    await asyncio.sleep(0)
    queued[0].cancel()
    os.kill(before, signal.SIGCONT)
    assert (await first, await queued[1], worker_pid(renderer)) == ("late", "1", before)
    assert queued[0].cancelled()


async def test_other_tasks_run_while_a_template_renders(renderer: Renderer) -> None:
    task = await stuck(renderer)
    rounds = 0
    while rounds < 100:
        await asyncio.sleep(0)
        rounds += 1
    assert not task.done()
    os.kill(worker_pid(renderer), signal.SIGCONT)
    assert await task == "late"


async def test_output_at_the_limit_passes_and_one_byte_more_does_not() -> None:
    renderer = Renderer(wall_s=WALL_S, max_output_bytes=10)
    assert await renderer.render("{{ 'é' * 5 }}", {}) == "é" * 5
    for source in ("{{ 'é' * 5 }}x", "{% for i in range(9999) %}{{ i }}{% endfor %}"):
        assert (await refusal(renderer, source)).code == "template-too-large"
    assert await renderer.evaluate("'a' * 10", {}) == "a" * 10
    with pytest.raises(TemplateError):
        await renderer.evaluate("'a' * 11", {})
    await renderer.close()


async def test_a_template_over_the_limit_never_reaches_the_worker() -> None:
    renderer = Renderer(max_template_bytes=10)
    error = await refusal(renderer, "é" * 5 + "x")
    assert (error.code, renderer._worker) == ("template-too-large", None)


async def test_values_that_are_not_json_are_refused_before_the_worker(renderer: Renderer) -> None:
    assert (await refusal(renderer, "{{ x }}", x=object())).code == "template-error"
    assert renderer._worker is None


@pytest.mark.parametrize("executable", ["/bin/false", "/nowhere/python"])
async def test_a_worker_that_does_not_start_says_so(
    executable: str, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", executable)
    error = await refusal(renderer, "{{ 1 }}")
    assert (error.code, error.retryable) == ("template-unavailable", True)
    monkeypatch.undo()
    assert await renderer.render("{{ 1 }}", {}) == "1"


async def test_no_process_is_left_after_close(renderer: Renderer) -> None:
    await renderer.render("warm", {})
    first = worker_pid(renderer)
    (await stuck(renderer)).cancel()
    await renderer.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    await renderer.close()


def test_a_renderer_can_move_from_one_event_loop_to_the_next() -> None:
    renderer = Renderer(wall_s=WALL_S)

    async def both() -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(renderer.render(f"{{{{ {n} }}}}", {})) for n in (1, 2)]
        return [task.result() for task in tasks]

    assert asyncio.run(both()) == ["1", "2"]
    assert asyncio.run(both()) == ["1", "2"]
    asyncio.run(renderer.close())


async def test_the_worker_gets_no_secret_of_its_parent(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    await renderer.render("warm", {})
    with open(f"/proc/{worker_pid(renderer)}/environ", "rb") as environment:  # noqa: ASYNC230
        assert b"sk-secret" not in environment.read()


def test_both_sides_agree_on_the_status_of_memory() -> None:
    assert EXIT_MEMORY == WORKER_EXIT_MEMORY
    assert json.loads(str(FUEL)) == FUEL
