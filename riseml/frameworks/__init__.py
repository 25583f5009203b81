"""Frameworks: which jobs an experiment has, and what each must know to find the others. Pure; no I/O."""
