"""What commands print: tables, log lines, problems and plans. `printer` is the only module that writes to a stream.

Not here: requests to the server.
"""
