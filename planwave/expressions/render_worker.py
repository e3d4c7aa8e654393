"""The render worker: ``python -m planwave.expressions.render_worker MEMORY_BYTES CPU_S OUTPUT_BYTES FUEL``.

The parent and the worker exchange frames over standard input, which is a socket: four bytes of
length (big endian), then a JSON text. One request at a time; the end of input ends the process, so
the worker cannot outlive its parent.

Three limits, from soft to hard: MiniJinja's fuel; a CPU timer whose signal is not caught; a limit on
address space. The last two end the process; the parent derives the error from the exit status.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

from minijinja import Environment
from minijinja import TemplateError as EngineError

from planwave.errors import TemplateError
from planwave.expressions import errors
from planwave.expressions.engine_errors import describe
from planwave.expressions.filters import UNDEFINED_VALUE, fromjson, not_a_number
from planwave.expressions.json_text import LARGEST_WHOLE, Json, to_text

EXIT_MEMORY = 77
"""Exit status after a ``MemoryError`` that Python could still catch."""
_READABLE_ATTRIBUTES = frozenset(("__class__", "keys", "values", "items", "get", "count", "index"))

_SMALLEST, _LARGEST = -(2**127), 2**128 - 1
"""The integers that the engine keeps."""
_SMALLEST_LOSS = 2.0**126
_NUMBER_FAULTS = ("invalid float literal", "cannot parse float", "cannot convert")
"""How the engine begins its messages on values that the filters int and float cannot read."""


class RenderError(Exception):
    """An error of a request, sent to the parent with its code."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


class _Sealed:
    """A JSON container with only reading methods, because the engine looks up Python attributes."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in _READABLE_ATTRIBUTES:
            return super().__getattribute__(name)
        raise AttributeError(name)

    def __str__(self) -> str:
        return _json(self)

    __repr__ = __str__


class SealedDict(_Sealed, dict[str, Any]):
    """A JSON object that cannot be written to."""

    __slots__ = ()


class SealedList(_Sealed, list[Any]):
    """A JSON list that cannot be written to."""

    __slots__ = ()


def seal(value: Json) -> Json:
    """Copy JSON into objects and lists without writing methods."""
    if isinstance(value, dict):
        return SealedDict((k, seal(v)) for k, v in cast(dict[str, Json], value).items())
    if isinstance(value, list):
        return SealedList(seal(item) for item in cast(list[Json], value))
    if isinstance(value, float) and abs(value) == LARGEST_WHOLE:
        return int(value)  # the engine has one less for it
    return value


def _not_json(value: object) -> Json:
    raise RenderError(
        errors.FAILED, f"the value of the expression is a {type(value).__name__}, not JSON"
    )


def _json(value: Json) -> str:
    try:
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_not_json
        )
    except ValueError as error:
        raise RenderError(errors.FAILED, f"the expression's value is not JSON: {error}") from error


def _fromjson(value: Json, default: Json = UNDEFINED_VALUE) -> Json:
    """Parse a text; the engine gets None for null and for what is undefined."""
    try:
        return seal(fromjson(value, default))
    except TemplateError as error:
        raise RenderError(error.code, error.message, error.hint) from error


def _large_integer_in(value: Json) -> int | None:
    """Return an integer in a value that the engine makes a float of, as it has more than 128 bits."""
    if isinstance(value, dict):
        value = list(cast(dict[str, Json], value).values())
    if isinstance(value, list):
        items = map(_large_integer_in, cast(list[Json], value))
        return next((each for each in items if each is not None), None)
    is_large = isinstance(value, int) and not _SMALLEST <= value <= _LARGEST
    return value if is_large else None


class OutputBudget:
    """A counter of the output of one render, so that too much output stops it early."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._remaining = limit

    def start(self) -> None:
        self._remaining = self._limit

    def spend(self, text: str) -> str:
        """Count a text and return it."""
        self._remaining -= errors.byte_length(text, max(self._remaining, 0))
        if self._remaining < 0:
            actual = self._limit - self._remaining
            raise RenderError(
                errors.TOO_LARGE,
                f"the rendered text is longer than template_output_bytes allows: "
                f"limit {self._limit}, met {actual}",
            )
        return text


class RenderEnvironment:
    """One MiniJinja environment: strict, with fuel, without loader, and without shared state."""

    def __init__(self, output_bytes: int, fuel: int) -> None:
        self._budget = OutputBudget(output_bytes)
        self._fuel = fuel
        self._variables: dict[str, Any] = {}
        self._engine = self._new_engine()

    def _new_engine(self) -> Environment:
        engine = Environment(
            undefined_behavior="strict",
            fuel=self._fuel,
            finalizer=self._as_text,
            keep_trailing_newline=True,
        )
        for name in ("cycler", "joiner", "debug", "lipsum"):
            engine.remove_global(name)
        engine.add_filter("fromjson", _fromjson)
        return engine

    def _as_text(self, value: Any) -> str:
        if isinstance(value, str):
            return self._budget.spend(value)
        if value is None:
            return ""
        self._require_digits(value)
        return self._budget.spend(_json(value))

    def _require_digits(self, value: Json) -> None:
        """Refuse to print a float that stands for an integer, or was calculated from one."""
        if not isinstance(value, float) or abs(value) < _SMALLEST_LOSS:
            return
        if (large := _large_integer_in(list(self._variables.values()))) is not None:
            raise RenderError(
                errors.FAILED,
                f"the integer {large} has more than 128 bits, and would lose digits here",
                "print it by a path alone, as in {{ input }}, outside of blocks and calculations",
            )

    def answer(self, request: dict[str, Any]) -> Json:
        """Return the result of a request."""
        variables = {name: seal(value) for name, value in request["variables"].items()}
        self._variables = variables
        try:
            return self._run(request, variables)
        except EngineError as error:
            if (error.detail or "").startswith(_NUMBER_FAULTS):
                self._name_bad_number(request, variables)
            raise RenderError(*describe(error, request["source"])) from error
        except TypeError as error:  # a list or an object as the key of an object
            raise RenderError(errors.FAILED, "a list or an object cannot be a key") from error

    def _name_bad_number(self, request: dict[str, Any], variables: dict[str, Any]) -> None:
        """Run a request that failed in the filter int or float again, to name the value.

        The engine does not tell it, and filters in Python cannot tell null from undefined. Nothing
        is raised if another part of the template failed.
        """
        usual, self._engine = self._engine, self._new_engine()

        def convert(value: Json, *default: Json, name: str, **options: Json) -> Json:
            default = (*default, *options.values())
            expression = f"value | {name}(default[0])" if default else f"value | {name}"
            try:
                return usual.eval_expr(expression, value=value, default=default)
            except EngineError:
                fault = not_a_number(value)
                raise RenderError(fault.code, fault.message, fault.hint) from None

        for name in ("int", "float"):
            self._engine.add_filter(name, partial(convert, name=name))
        try:
            with suppress(EngineError):
                self._run(request, variables)
        finally:
            self._engine = usual

    def _run(self, request: dict[str, Any], variables: dict[str, Any]) -> Json:
        self._budget.start()
        if request["op"] == "render":
            text = self._engine.render_str(request["source"], **variables)
            self._budget.start()
            return self._budget.spend(text)
        return self._evaluate(request["source"], variables)

    def _evaluate(self, expression: str, variables: dict[str, Any]) -> Json:
        value = self._engine.eval_expr(expression, **variables)
        # The engine returns None for undefined; the text is known to be a single expression.
        if value is None and not self._engine.eval_expr(f"({expression}) is defined", **variables):
            raise RenderError(errors.UNDEFINED, f"{expression} is undefined")
        self._require_digits(value)
        self._budget.spend(to_text(value) if isinstance(value, str) else _json(value))
        return value


def respond(answer: Callable[[dict[str, Any]], Json], payload: bytes) -> bytes:
    """Return the reply to one request; every error in a template becomes an error reply."""
    hint: str | None = None
    try:
        reply = {"value": answer(json.loads(payload))}
        return json.dumps(reply, separators=(",", ":"), default=_not_json).encode()
    except MemoryError:
        os._exit(EXIT_MEMORY)
    except RenderError as error:
        code, message, hint = error.code, str(error), error.hint
    except AttributeError as error:
        code, message = errors.FORBIDDEN, f"method {str(error)[:100]!r} is not available"
    except RecursionError:
        code, message = errors.FAILED, "a value is nested too deep"
    except Exception as error:  # noqa: BLE001 - a callback of the engine may raise anything
        code, message = errors.FAILED, f"{type(error).__name__}: {str(error)[:500]}"
    error = {"code": code, "message": message, "hint": hint or errors.HINTS.get(code)}
    return json.dumps({"error": error}).encode()


def read_exactly(size: int) -> bytes | None:
    """Read ``size`` bytes from the parent; return None at the end of input."""
    chunks = bytearray()
    while len(chunks) < size:
        chunk = os.read(0, min(size - len(chunks), 1 << 20))
        if not chunk:
            return None
        chunks += chunk
    return bytes(chunks)


def write_frame(payload: bytes) -> None:
    """Send one frame to the parent."""
    unsent = memoryview(len(payload).to_bytes(4, "big") + payload)
    while unsent:
        unsent = unsent[os.write(0, unsent) :]


def restrict_process(memory_bytes: int) -> None:
    """Limit this process to what rendering needs: no files, children or core dumps; little memory."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if hasattr(resource, "RLIMIT_NPROC"):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def main(arguments: list[str]) -> None:
    """Serve requests until the input ends."""
    memory_bytes, cpu_s = int(arguments[0]), float(arguments[1])
    renders = RenderEnvironment(int(arguments[2]), int(arguments[3]))
    restrict_process(memory_bytes)
    write_frame(b"ready")
    while (header := read_exactly(4)) is not None:
        payload = read_exactly(int.from_bytes(header, "big"))
        if payload is None:
            return
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        reply = respond(renders.answer, payload)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_frame(reply)


if __name__ == "__main__":
    main(sys.argv[1:])
