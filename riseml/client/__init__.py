"""The client of the HTTP API: a method for each route, one request below it, the connection below that.

Import its modules by name; this package imports none, so that a command loads only what it needs.
Not here: what commands print (`riseml.cli`), and the shapes of answers (`riseml.wire`).
"""
