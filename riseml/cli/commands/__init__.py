"""The commands: one module for each group of verbs.

Not here: text and tables (`cli.output`), and calls that bypass the HTTP client.
"""
