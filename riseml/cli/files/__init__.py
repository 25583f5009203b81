"""Files of this machine and of the server's storages as commands name and show them.

Modules: `addresses` (what a user types), `opened` (what an address leads to), `progress`, `removal`. A copy itself is
`client.copying`.
"""
