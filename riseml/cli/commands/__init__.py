"""The commands: one module for each command or group. Functions read arguments, call the client and print.

Not here: text and tables (`cli.output`), and calls that bypass the HTTP client.
"""
