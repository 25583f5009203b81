"""The logs of experiments in files: one append-only file per experiment, which is also its own index.

Here: the states of a line (`line_state`), the records of the file format (`records`), the blocks of lines that
readers get (`blocks`), one open file (`log_file`), the logs of a server (`log_store`) and the limit of bytes per job
(`quota`). `line_state`, `records` and `blocks` are pure. Not here: the merged stream of lines and states
(`server.api.merged_log.log_stream`), and how the engine delivers frames (`executors`).
"""
