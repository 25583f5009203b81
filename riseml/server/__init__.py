"""The control plane: one process, one control loop, one store, one HTTP API.

`__main__` is the server. `executor_check` is a separate program: with it, the command line finds out whether a server
with other settings could run jobs.
"""
