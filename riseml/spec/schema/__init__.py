"""The JSON Schemas of riseml.yml and pool.yml: load them, check values, explain errors, list keys for the reference.

Not here: defaults and rules that a schema cannot express (`spec.config.builder`, `spec.pool.builder`).
"""
