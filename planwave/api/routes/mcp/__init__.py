"""The route of the MCP server."""
