"""Covalt: graphs whose wires carry data or link helpers, with expressions in JavaScript."""
