"""The listener of a server for a team: TLS, its certificate, the names that it answers to, and its connections.

Here: what stands between a socket on TCP and the gate (`server.gate`), which knows senders by their keys.
Not here: the unix socket and the page of a single user (`server.web`), and what a sender may do (`server.api`).
"""
