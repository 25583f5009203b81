"""The listener of the web page at 127.0.0.1, the checks of its requests, and the files of the page.

Here: one-time tokens, sessions, the checks of each request, the static files.
Not here: what the page shows. Requests that pass go to the same routes as those of the command line (`server.api`).
"""
