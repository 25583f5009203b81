"""The HTTP API: routes, request limits, error answers and response shapes.

A route reads the store or writes what is wanted; it never calls an executor.
Not here: the loop (`server.reconcile`), and the shapes that clients share (`riseml.wire`).
"""
