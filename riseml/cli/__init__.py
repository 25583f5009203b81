"""The command line: a thin client of the HTTP API.

Modules: `main` (the entry point), `commands` (one module for each group of commands), `output` (what commands print),
`context` and `arguments` (what every command gets and reads), `config_source` (the riseml.yml of a command),
`files` (files of storages and of this machine),
`questions` (what the user has to allow), `log_follower` (a log to its end), `local_server` and `server_process`
(the user's own server).

Not here: any code of the server; import-linter forbids it. Only `output.printer` writes to a stream.
"""
