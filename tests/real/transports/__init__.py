"""Transports against real servers: sshd, a Docker Engine with TLS, relays and networks that stop."""
