"""How an engine is reached: unix socket, TCP with TLS, ssh tunnel; and what failures on the way mean.

Not here: what is asked of an engine (`executors.docker`).
"""
