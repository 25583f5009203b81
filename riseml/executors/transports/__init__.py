"""Reach an engine (unix socket, TCP with TLS, ssh tunnel), and explain connection failures.

`engine_client` gives clients, `routes` chooses the way, `tunnel` runs ssh as `tunnel_phases` decides, `hostkeys`
pins host keys, `diagnosis` explains failures, and so do `tls_bridge` and `tunnel` for theirs.

Not here: the calls to an engine (`executors.docker`).
"""
