"""The HTTP API: routes, request limits, error answers and response shapes.

`routes` has the routes, `submissions` what a request to run something leads to, `merged_log` the log of an experiment,
`views` the records as answers. A route reads the store or writes an intent of the user; it never calls an executor.
Not here: the loop (`server.reconcile`), and the shapes that clients share (`riseml.wire`).
"""
