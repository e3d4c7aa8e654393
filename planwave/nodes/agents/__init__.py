"""Agents that call tools: the loop, the tools and their calls. Node types are in ``library/``."""
