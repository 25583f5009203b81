"""The routes, one module for each subject, and the router that joins them.

A route checks a request, reads the store or writes an intent of the user, and answers in a shape of `riseml.wire`.
Not here: how records are shown (`api.views`), and what follows from a request to run something (`api.submissions`).
"""
