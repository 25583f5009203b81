"""pool.yml: text to a `PoolSpec`, or to all its problems.

Here: the dataclasses, the loader, the rules that a schema cannot express, the reference page.
Not here: riseml.yml (`spec.config`), connections to the hosts (`executors.transports`), the state of the hosts
(`server.hosts`).
"""
