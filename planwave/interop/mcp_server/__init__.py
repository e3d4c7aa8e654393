"""planwave as an MCP server: tools that plan and run, and results as resources."""
