"""A project folder on the user's machine: find it, list the files that belong to it, pack them for the server.

Modules: `folder` (find the project and read its riseml.yml), `listing` (which files belong to it), `ignore_rules`
(.gitignore and .risemlignore as git reads them), `archive` (digest and tar of the files), `messages` (sizes and paths
in messages).

Not here: network requests, the content of riseml.yml (`riseml.spec`), and anything that writes to disk.
"""
