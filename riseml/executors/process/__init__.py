"""Jobs as processes of this machine, without Docker.

`supervisor` runs one job and outlives the server; `job_records`, `job_processes` and `job_folders` find its records and
processes; `reflinked_code` writes the projects of jobs; `watch` notices changes; `job_commands` opens commands and
ports of a job (`executors.supervision.command_runner`); `process_use` measures; `executor` joins them to an
`executors.base.Executor`.

Not here: anything of Docker (`executors.docker`), virtual environments and the files of projects
(`executors.environments`), and reading logs (`executors.logs.log_reader`).
"""
