"""Plug-ins of frameworks: which jobs an experiment has, and what each job needs to find the others. Pure; no I/O.

One module for each framework, which imports no other one; `base` is the seam, `registry` the list. Does not belong
here: anything that is the same for every framework (`planning/`).
"""
