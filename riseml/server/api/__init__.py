"""The HTTP API: routes, request limits, error answers and response shapes.

A route reads the store or writes an intent of the user; it never calls an executor.
Not here: the loop (`server.reconcile`), and the shapes that clients share (`riseml.wire`).
"""
