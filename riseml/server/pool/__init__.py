"""The hosts of this server: which there are, how they are checked, sampled and cleaned.

Also what a host is asked outside of the loop: which image a registry has under a tag (`ask_registry`).
Not here: HTTP (`server.api`), and the choice of a host for a job (`control.placement`).
"""
