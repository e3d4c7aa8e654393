"""The embedded model server, as a program of its own; started by ``local.py``, not imported.

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
from typing import Any

_LOOK_S = 2.0
_NICENESS = 5
"""Lets planwave's own event loop go first on cores both want."""


def main() -> None:
    """Serve until stdin ends."""
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
    while "address" in said and os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _LOOK_S)
        if readable and not os.read(0, 4096):
            break
    os._exit(0)  # threads that compute are not waited for


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
    _keep_from_looping(params.sampling)
    return native.Server(params)


def _keep_from_looping(sampling: Any) -> None:
    """Set what calls get that ask for nothing else.

    Small models fall into saying one sentence for ever. DRY takes weight from a word that would
    repeat a long run of earlier words; JSON's quotes break such runs, so structure is left alone.
    The other values are those the default model was published with.
    """
    sampling.temp, sampling.top_k, sampling.top_p = 0.7, 20, 0.8
    sampling.dry_multiplier, sampling.dry_base = 0.8, 1.75
    sampling.dry_allowed_length, sampling.dry_penalty_last_n = 8, 1_024


if __name__ == "__main__":
    main()
