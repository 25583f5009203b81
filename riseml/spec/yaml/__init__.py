"""YAML text to nodes that know their line, and nodes to plain values.

Here: the parser's event stream, problems with their places, scalars with units, placeholders.
Not here: what any particular file may say (`spec.config`, `spec.pool`), and JSON Schema (`spec.schema`).
"""
