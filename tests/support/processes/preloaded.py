"""What the processes of tests import, so that the process they are forked from has it already."""

from __future__ import annotations

import gc

import tests.support.graph.random_documents
import tests.support.llm.fake_providers
import tests.support.recovery.crash_points
import tests.support.server.running_server  # noqa: F401

gc.collect()
gc.freeze()  # a collection in a child would copy the pages of all these objects
