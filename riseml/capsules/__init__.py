"""Capsules on the side of the user: read from an output folder, given back as code, written as files of other systems.

Not here: how a capsule is made (`riseml.planning.capsule`), and requests to a server.
"""
