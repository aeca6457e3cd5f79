"""The `mcp` engine: tools of MCP servers, over streamable HTTP, SSE or a child's stdio."""
