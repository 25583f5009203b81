"""The gate before the API: it says who sends a request, and lets none through whose sender it does not know.

Each kind of listener has its gate, which sets the `Caller` of a request: `socket_gate` by the user of the process at
the other end of the unix socket, `key_gate` by a key, `riseml.server.web` by the session of a browser. Behind them is
one API. What a caller may do is not decided here: see `riseml.server.api.access_table`.
"""
