"""server.yml: text to a `ServerConfig`, or to all its problems.

Here: the dataclasses, the loader, the rules that a schema cannot express, the reference page.
Not here: the listener and the authority (`server.tls`), accounts and their keys (`store.accounts`), and settings of a
server without a team (`base.settings`).
"""
