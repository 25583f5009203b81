"""Turn a spec into plans, and a placed job into a launch. Pure: no I/O, no clock.

Belongs here: the grid, the recipe of the environment and the files that it reads, the plan, placeholders, launches.
Does not belong here: what one framework needs (`frameworks/`), and which host a job gets (`control/placement/`).
"""
