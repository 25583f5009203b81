"""Capsules on the user's side: read from an output folder, unpacked as code, exported as files for other systems.

Not here: how a capsule is made (`riseml.planning.capsule`), and requests to a server.
"""
