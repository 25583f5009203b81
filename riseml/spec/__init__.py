"""The files that people write, riseml.yml and pool.yml: text to a dataclass, or to all problems at once.

Floors, from below: `scalars` (the text of one value), `yaml` (nodes with positions), `schema` (JSON Schema), then
`config` (riseml.yml) and `pool` (pool.yml), which do not import each other.
Not here: reading the two files from disk. Only `pool.files` examines files: the keys and certificates of a pool.yml.
"""
