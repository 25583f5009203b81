"""Webhooks: the server sends the ends of experiments to addresses that its user has named.

Here belong the user's file (`webhook_file`), and the thread that sends and repeats
(`webhook_loop`). Not here: which ends were sent already (`store.ends`). Addresses come only from
the file in the home of the server's user, never from a project.
"""
