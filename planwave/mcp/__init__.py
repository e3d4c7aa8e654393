"""Connections to MCP servers, which give tools to agents.

The servers are those of the operator's settings, by name. ``servers.py`` has them, ``connection.py`` one
of them for a run of a graph. How agents get their tools is in ``nodes/library/mcp_server.py``.
"""
