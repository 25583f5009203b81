"""Webhooks: the server tells addresses that its user has named how experiments have ended.

Here belong the user's file (`webhook_file`), what is sent (`messages`, pure), one request (`delivery`) and the thread
that sends and tries again (`webhook_loop`). Not here: which ends were told already (`store.ends`). Nothing of a project
has a part in this: an address comes from the file in the home of the server's user alone.
"""
