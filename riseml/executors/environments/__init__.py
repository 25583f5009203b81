"""Virtual environments by content, and projects as files, for jobs that run without containers.

Processes of this machine have them in riseml's home, the nodes of a cluster on their shared file system. Does not
belong here: how a job is started.
"""
