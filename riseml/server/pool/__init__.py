"""The hosts of this server: which there are, how they are checked, sampled and cleaned.

Not here: HTTP (`server.api`), and the choice of a host for a job (`control.placement`).
"""
