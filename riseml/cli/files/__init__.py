"""Files of this machine and of the server's storages: addresses, lists, copies.

Modules: `addresses` (what a user types), `sides` (the two ends of a copy), `copies` (a copy), `names` (how names are
shown).
"""
