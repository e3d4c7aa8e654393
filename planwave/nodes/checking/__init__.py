"""Checks of one node before a run that need its type: data, templates, handles, graphs inside it. Checks of the graph's structure are in ``planwave.graph``."""
