"""Checks of a node that need its type: data, templates, handles, nested graphs.

Checks of a graph's structure are in ``planwave.graph``.
"""
