"""The logs of experiments in files: one append-only file per experiment, which is also its own index.

Here: the states of a line (`line_state`), the records of the file format (`records`), the lines in records
(`line_parser`), the blocks of lines that readers get (`blocks`) and the reports among them (`report_blocks`), where a
reader continues (`read_position`), one open file (`log_file`), the logs of a server (`log_store`) and the limit of
bytes per job. All are pure but the last three. Not here: the merged stream of lines and states
(`server.api.merged_log.log_stream`), and how the engine delivers frames (`executors`).
"""
