"""The reference of pool.yml, generated from the schema: `python -m riseml.spec.pool.reference > docs/pool-yml.md`."""

from __future__ import annotations

import sys

from riseml.spec.schema.contract import POOL
from riseml.spec.schema.reference import list_key_sections

_HEAD = """\
<!-- Generated from schemas/pool.schema.json by `python -m riseml.spec.pool.reference`: change the schema, not this. -->

# pool.yml

The Docker hosts that experiments may use. The file is `pool.yml` in riseml's home (`~/.riseml`, or `RISEML_HOME`) on
the machine of the server. Without it the local engine is used. The smallest one:

```yaml
hosts:
  - name: gpu1
    url: ssh://riseml@gpu1
    gpus: [0, 1]
```

Every problem of the file is named at once, with line, column and what to write instead; `pool.yml.example` shows every
key with a comment.
"""

_TAIL = """\
## How a host is reached

- **`ssh://user@host[:port][/path/of/docker.sock]`**: one tunnel of the OpenSSH client for each host, kept up and ended
  with the server. The user has to be allowed to use Docker there (`docker info` works in a shell). Nothing is typed:
  a key without passphrase or an agent opens the door. The host is known by its key, which has to be pinned before:
  `riseml pool trust HOST`, or `ssh-keyscan -H HOST >> ~/.riseml/known_hosts` and a look at the fingerprint. An unknown
  or a changed key is refused.
- **`tcp://host:port` with `tls`**: mutual TLS, as in `dockerd --tlsverify`. The engine's certificate has to be signed
  by `ca` and to name the host of the url; ours has to be signed by the authority that the engine trusts.
- **`tcp://host:port` with `insecure: true`**: no TLS. Whoever reaches the port, a container on that host included, is
  root there.
- **`unix:///path`**: an engine of this machine.

A host that does not answer is silent, and its jobs are left alone until it is lost; a connection that has died without
a word is noticed within half a minute.

## Forms

- **Memory** is written as in riseml.yml: `512M`, `500MB`, `16GiB`, in powers of 1024. A number without a unit is MiB
  from 64 up and GiB below, with a warning.
- **Paths of files** are relative to pool.yml; `~` is the home of the server's user. **Storage paths** are absolute, and
  the same on every host.
- **Labels** and driver options are texts, as written: `true` stays `true` and `1.10` stays `1.10`.

Files are at most 1 MiB, in UTF-8, with one YAML document of at most 100,000 values. Anchors and aliases are read; YAML
tags and merge keys are not. `schemas/pool.schema.json` gives completion and checks in an editor:

```yaml
# yaml-language-server: $schema=./pool.schema.json
```
"""


def render_pool_reference() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *list_key_sections(POOL), _TAIL])


if __name__ == "__main__":
    sys.stdout.write(render_pool_reference())
