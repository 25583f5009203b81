"""Decide what the server does next: `decide(world, observation)` returns what to save and which actions to take.

Belongs here: states of jobs and experiments, verdicts, placement (`placement/`), explanations. Does not belong here:
anything that has an effect or reads the clock. The code is pure: no clock, no I/O, no random numbers, no logging; the
time is a field of the observation.
"""
