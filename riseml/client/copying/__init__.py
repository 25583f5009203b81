"""Copy files and folders between this machine and the storage of a server, for commands and programs.

Not here: one request for a file (`client.file_client`), and addresses as users type them (`cli.files`).
"""
