"""`import riseml` as a program's way to run experiments: the same submission and the same server as the commands.

`public` has every name that `riseml` gives; the package `riseml` imports it when a program first asks for such a name.
Not here: `riseml.report` inside of a job (`riseml.job_programs.reports`).
"""
