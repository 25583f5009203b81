"""The control plane: one process, one control loop, one store, one HTTP API.

`__main__` is the server. `executor_check` is a program of its own: the command line asks it whether a server with other
settings could run jobs.
"""
