"""pool.yml: text to a `PoolSpec`, or to all its problems.

Not here: connections to the hosts that the file names (`executors.transports`), and their state (`server.pool`).
"""
