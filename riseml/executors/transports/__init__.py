"""Reach an engine (unix socket, TCP with TLS, ssh tunnel), and explain connection failures.

`engine_client` gives clients, `routes` chooses the way, `tunnel` runs ssh as `tunnel_phases` decides, `hostkeys` and
`known_hosts` pin host keys, `diagnosis`, `tls_errors` and `ssh_errors` explain failures.

Not here: the calls to an engine (`executors.docker`).
"""
