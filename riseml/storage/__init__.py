"""The files that experiments leave behind: output folders, and the record of the configuration in each.

The server's own files (database, logs, project archives) are in `store`.
"""
