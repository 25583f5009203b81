"""The hosts of this server: choose, add, check, sample and clean them.

Also calls to hosts outside of the loop: resolve a tag (`ask_registry`), open streams into jobs (`job_access`).
Not here: HTTP (`server.api`), and the choice of a host for a job (`control.placement`).
"""
