"""The `rest` engine: a tool is an operation of an HTTP API, a call is one request."""
