"""Graphs run from Python, without a service process; ``planwave.run`` and its relatives.

Here: built graphs, runs, their results and where their events are kept. Not here: how a graph is
driven (``executor``), the rules of forks and answers (``service/executions``).
"""
