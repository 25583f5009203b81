"""Which experiment starts next, and on which hosts: queue, free room, gangs, addresses and refusals. Pure.

Not here: what happens to jobs once they have a place (`control.decide`).
"""
