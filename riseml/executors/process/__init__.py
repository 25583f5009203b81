"""Jobs as processes of this machine, without Docker: folders, supervisors, logs and virtual environments.

Not here: anything of Docker (`executors.docker`).
"""
