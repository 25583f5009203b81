"""Processes of this machine that outlive the server: each tree has a supervisor, which writes its log and its end.

Jobs without containers run so, and builds of their environments. Does not belong here: what a job or a build is.
"""
