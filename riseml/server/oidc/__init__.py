"""Logins at the organisation's provider of OpenID Connect.

Here: what is asked of the provider, the checks of its answers, and who logs in. Not here: sessions (`store.sessions`),
and what browsers see (`server.web`). The server talks to the provider; a command or a browser learns a session of
riseml, and no token of the provider.
"""
