"""Which point a search tries next, and which trial it stops: computed by Optuna from the records alone. No I/O.

A proposal is a function of the records and of the seed: each is made by a new sampler, whose seed comes from the seed
of the search and the number of the trial. No state of Optuna carries over from one proposal to the next.
"""
