"""Choose which experiment starts next, and on which hosts. Pure.

- `queue`: the order of the waiting experiments, and how far one pass served them
- `free`, `candidates`, `room`: what is free, on which hosts, and what the head of the queue leaves (`reserve`)
- `fit`: the search for hosts
- `connect`, `addresses`: networks, addresses and ports
- `place`: one pass, composed of the parts above
- `refusal`, `shortage`: why a gang does not fit

Does not belong here: what happens to jobs that have a place (`control.decide` and its other modules).
"""
