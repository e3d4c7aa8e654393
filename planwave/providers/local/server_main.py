"""The embedded model server as a separate program; ``models.py`` starts it by its path.

A process of its own, because building the server holds Python's lock until the model is loaded
(seconds in which an event loop would stand still), and because a fault in native code then ends
this process and not planwave. It imports nothing of planwave.

One JSON line comes in on stdin, one goes out on stdout: ``{"address"}`` or ``{"error"}``. When
stdin ends, planwave has gone or wants no more, and the program ends at once.
"""

from __future__ import annotations

import json
import os
import select
import sys
import traceback
from typing import Any

_LOOK_S = 2.0
_NICENESS = 5
"""Lets planwave's own event loop go first on cores both want."""


def main() -> None:
    """Serve until stdin ends."""
    server: Any = None
    try:
        parent = os.getppid()
        answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # native code writes where it likes; the answer's line stays clean
        wanted = json.loads(sys.stdin.readline())
        try:
            os.nice(_NICENESS)
            server = _serve(wanted)
            said = {"address": server.listening_address}
        except Exception as error:  # noqa: BLE001  # told to planwave, which raises it as its own
            said = {"error": f"{type(error).__name__}: {error}"}
        answer.write(json.dumps(said) + "\n")
        answer.close()
        if server is not None:
            _wait_for_parent_exit(parent)
    except Exception:  # noqa: BLE001  # most likely there is nobody left to answer
        traceback.print_exc()
    finally:
        os._exit(0)  # neither the server's end nor its threads are waited for: some never end


def _wait_for_parent_exit(parent: int) -> None:
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _LOOK_S)
        if readable and not os.read(0, 4096):
            return


def _serve(wanted: dict[str, Any]) -> Any:
    import xllamacpp  # pyright: ignore[reportMissingTypeStubs]

    native: Any = xllamacpp
    params = native.CommonParams()
    params.model.path = wanted["path"]
    params.model_alias = {wanted["name"]}
    params.n_parallel = wanted["slots"]
    params.n_ctx = wanted["context"] * wanted["slots"]  # it is divided among the slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = wanted["threads"]
    # The defaults are made for a desk, not for a service: no key, any origin, a web page, tools.
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [wanted["key"]]
    params.cors_origins = "http://127.0.0.1"
    params.cors_credentials = False
    params.ui = False
    params.offline = True
    params.cache_prompt = True
    params.cache_ram_mib = 256
    params.verbosity = 1
    _set_sampling_defaults(params.sampling)
    return native.Server(params)


def _set_sampling_defaults(sampling: Any) -> None:
    """Set what calls get that ask for nothing else.

    Small models fall into saying one sentence for ever. DRY takes weight from a word that would
    repeat a long run of earlier words; JSON's quotes break such runs, so structure is left alone.
    The prompt counts too, and a step quotes what it was given: so a run is long only when it is a
    sentence, and is looked for in the last 256 words or so, or quoted words would be bent. The
    other values are those the default model was published with.
    """
    sampling.temp, sampling.top_k, sampling.top_p = 0.7, 20, 0.8
    sampling.dry_multiplier, sampling.dry_base = 0.8, 1.75
    sampling.dry_allowed_length, sampling.dry_penalty_last_n = 16, 256


if __name__ == "__main__":
    main()
