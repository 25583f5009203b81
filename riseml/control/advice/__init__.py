"""Find what probably ended a failed experiment, and what the user can do about it. Pure.

- `table`: the known failures in order, from `python_failures`, `environment_failures`, `machine_failures` and
  `connection_failures`; to add a failure, add a row to one of these
- `known_failure`: what a row is, and which row explains a job
- `advise`: one sentence about an experiment, also when the job that failed first only lost its connection to another

Does not belong here: what happens to the experiment (`control.verdict`).
"""
