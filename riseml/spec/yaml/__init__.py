"""YAML text to nodes with their positions, and nodes to plain values.

Here: the tree of nodes, syntax errors in plain words, problems with file, line and column.
Not here: what the text of one value means (`spec.scalars`), which keys a file has (`spec.schema`), and what they mean
(`spec.config`, `spec.pool`).
"""
