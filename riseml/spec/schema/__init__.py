"""The JSON Schemas of the files that people write: load them, check values, explain errors.

Not here: defaults, units and rules that a schema cannot express (`spec.config.builder`, `spec.pool.builder`).
"""
