"""Write the reference of server.yml from its schema: `python -m riseml.spec.server.reference > docs/server-yml.md`."""

from __future__ import annotations

import sys

from riseml.spec.schema.contract import SERVER_CONTRACT
from riseml.spec.schema.reference import list_key_sections

_HEAD = """\
<!-- Generated from schemas/server.schema.json by `python -m riseml.spec.server.reference`: edit the schema. -->

# server.yml

The file that makes a server one for a team. It is `server.yml` in riseml's home (`~/.riseml`, or `RISEML_HOME`) on the
machine of the server. Without it, a server answers one user at its unix socket, and listens at no address. The smallest
one:

```yaml
listen: 0.0.0.0:8443
```

The server reads the file when it starts. It lists all problems at once, with line, column and what to write instead,
and does not start before they are gone. `server.yml.example` shows every key with a comment.
"""

_TAIL = """\
## Forms

- **Memory and sizes** are written as in riseml.yml: `512M`, `16GiB`, in powers of 1024. A number without a unit is MiB
  from 64 up and GiB below, with a warning.
- **Paths of files** are relative to server.yml; `~` is the home of the server's user. Files with secrets must not be
  readable by other users.
- **Names of users** have at most 32 lower-case letters, digits and `-`, and begin with a letter.

A file has at most 1 MiB of UTF-8 and one YAML document of at most 100,000 values. Anchors and aliases are supported,
YAML tags and merge keys are not. With its JSON Schema an editor completes and checks keys: [editors.md](editors.md).
"""


def render_server_reference() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *list_key_sections(SERVER_CONTRACT), _TAIL])


if __name__ == "__main__":
    sys.stdout.write(render_server_reference())
