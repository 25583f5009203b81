"""The files that people write, riseml.yml, pool.yml and server.yml: text to a dataclass, or to all problems at once.

Floors, from below: `scalars` (the text of one value), `yaml` (nodes with positions), `schema` (JSON Schema), then
`config` (riseml.yml), `pool` (pool.yml) and `server` (server.yml), which do not import each other.
Not here: reading these files from disk. Only `named_files` examines files: the keys and certificates that they name.
"""
