"""The server that waits to take the place of another one: when its turn comes, and what it answers until then.

Not here: the claim on the database (`riseml.store.claim`) and the lock of the home (`riseml.server.home_lock`).
"""
