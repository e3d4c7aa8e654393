"""The embedded model server as a separate program; ``models.py`` starts it by its path.

It is a separate process because creating the server holds the GIL until the model is loaded (seconds
that would block an event loop), and because a crash in native code then ends this process and not
planwave. It imports nothing of planwave.

The program reads one JSON line from stdin and writes one to stdout: ``{"address"}`` or ``{"error"}``.
It ends when stdin ends, that is, when planwave closes it or exits.
"""

from __future__ import annotations

import json
import os
import select
import sys
import traceback
from typing import Any

_CHECK_INTERVAL_S = 2.0
_NICENESS = 5
"""Gives planwave's event loop priority on shared cores."""


def main() -> None:
    """Serve until stdin ends."""
    server: Any = None
    try:
        parent = os.getppid()
        reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # native code writes to stdout; the reply stays clean
        options = json.loads(sys.stdin.readline())
        try:
            os.nice(_NICENESS)
            server = _serve(options)
            message = {"address": server.listening_address}
        except Exception as error:  # noqa: BLE001  # planwave raises it
            message = {"error": f"{type(error).__name__}: {error}"}
        reply.write(json.dumps(message) + "\n")
        reply.close()
        if server is not None:
            _wait_for_parent_exit(parent)
    except Exception:  # noqa: BLE001  # planwave is probably gone
        traceback.print_exc()
    finally:
        os._exit(0)  # do not wait for threads of the server: some never end


def _wait_for_parent_exit(parent: int) -> None:
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _CHECK_INTERVAL_S)
        if readable and not os.read(0, 4096):
            return


def _serve(options: dict[str, Any]) -> Any:
    # Lazy: test_importing_providers_loads_no_sdk
    import xllamacpp  # pyright: ignore[reportMissingTypeStubs]

    native: Any = xllamacpp
    params = native.CommonParams()
    params.model.path = options["path"]
    params.model_alias = {options["name"]}
    params.n_parallel = options["slots"]
    params.n_ctx = options["context"] * options["slots"]  # the server divides it among the slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    # The defaults are for interactive use: no key, any origin, a web page, tools.
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [options["key"]]
    params.cors_origins = "http://127.0.0.1"
    params.cors_credentials = False
    params.ui = False
    params.offline = True
    params.cache_prompt = True
    params.cache_ram_mib = 256
    if options["states"]:
        params.slot_save_path = os.path.join(options["states"], "")  # a prefix of file names
    params.verbosity = 1
    _set_sampling_defaults(params.sampling)
    return native.Server(params)


def _set_sampling_defaults(sampling: Any) -> None:
    """Set the sampling of calls that do not set it.

    Without a temperature the most probable word is taken, so that the same goal has the same answer. Not
    always to the letter: rounding depends on the calls that run side by side, and two words can be almost
    equally probable. A call with a temperature gives other words each time; the other values for it are
    those published with the default model.

    Small models tend to repeat one sentence for ever. DRY lowers the weight of a word that would
    continue a long repetition; the quotes of JSON break repetitions, so its structure is not affected.
    The prompt counts too, and steps quote their inputs: therefore only repetitions of two sentences'
    length within the last 256 tokens count. At one sentence's length quotes were misspelt
    ("financialmeans").
    """
    sampling.temp, sampling.top_k, sampling.top_p = 0.0, 20, 0.8
    sampling.dry_multiplier, sampling.dry_base = 0.8, 1.75
    sampling.dry_allowed_length, sampling.dry_penalty_last_n = 40, 256


if __name__ == "__main__":
    main()
