"""Choose the next point of a search and the trials to stop, with Optuna and from the records alone. No I/O.

A proposal is a function of the records and of the seed: each is made by a new sampler, whose seed comes from the seed
of the search and the number of the trial. No state of Optuna carries over from one proposal to the next.
"""
