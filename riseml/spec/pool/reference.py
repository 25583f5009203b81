"""Write the reference of pool.yml from its schema: `python -m riseml.spec.pool.reference > docs/pool-yml.md`."""

from __future__ import annotations

import sys

from riseml.spec.schema.contract import POOL_CONTRACT
from riseml.spec.schema.reference import list_key_sections

_HEAD = """\
<!-- Generated from schemas/pool.schema.json by `python -m riseml.spec.pool.reference`: edit the schema. -->

# pool.yml

The Docker hosts that experiments may use. The file is `pool.yml` in riseml's home (`~/.riseml`, or `RISEML_HOME`) on
the machine of the server. Without it, experiments use the local engine. The smallest one:

```yaml
hosts:
  - name: gpu1
    url: ssh://riseml@gpu1
    gpus: [0, 1]
```

riseml lists all problems of the file at once, with line, column and what to write instead. `pool.yml.example` shows
every key with a comment.
"""

_TAIL = """\
## Adding and removing hosts

`riseml pool add NAME URL` adds a host in one command, and makes the file if there is none:

1. It shows the keys that the host shows to ssh, and asks you to compare the fingerprint. Without a terminal, or with
   `--json`, `--host-key SHA256:...` names the right one; otherwise the command refuses (exit code 4). A host that is
   reached through another one (ProxyJump) cannot be scanned: its key must be in `known_hosts` already.
2. It reads the host's cores, memory and engine, and runs the checks of `riseml pool check` on it: versions, clock,
   encryption, and that it sees the storage that the other hosts write. It refuses an engine that the pool has under
   another address, and a clock that is more than 30 s wrong; it warns of one that is more than 5 s wrong. `--force`
   adds a host although a check fails.
   An alias of your ssh configuration becomes `address`, which the other hosts need.
3. It pins the key, makes the host a member of the swarm (`network: overlay`, from the second host on), and inserts its
   lines below the last host. Every other character of the file stays. Two commands take turns; when you save the file
   in the same moment, your text is kept, and the host is inserted into it.

Nothing changes before the last step, nor with `--dry-run`. The first host makes the pool, and this machine is no longer
used unless you add it, too: the command refuses while jobs run here, and names the command that keeps this machine.

`riseml pool remove NAME` takes the lines out again, with the comments inside them. It refuses while jobs run there
(`--force`: they count as lost), and for the last host. The host manages the swarm no longer first, and then leaves it;
the command refuses where too few managers would be left for a majority, unless `--force` says otherwise. A host stays
in the swarm when jobs or builds of another riseml server run there, or when the swarm runs services; what a server that
is gone has left there does not count. The command says what stays on the host: environments, outputs, and the pinned
key on the server's machine.

A host that you take out of the file by hand while jobs run there is named by `riseml pool`, `pool check` and the
server's log: its jobs count as lost after `RISEML_LOST_AFTER`, unless the host is back in the file by then. A file with
problems changes nothing, and these commands and `pool drain` say so.

## The swarm

With `network: overlay` the hosts are in one Docker swarm, which decides by the majority of its managers. One manager is
right for two hosts, three for three to six, five from seven on: with two managers the loss of either one stops every
gang across hosts. `pool add`, `pool remove` and `pool join` keep these numbers, and so does the server: it promotes a
host when another one that managed the swarm is lost, and says so in its log. A host becomes a manager by leaving the
swarm and joining it again, while none of its containers is connected across hosts. A swarm that has a manager which is
in no pool keeps the managers that its administrator chose. Servers that share hosts know that by labels
of the swarm's nodes (`riseml.server.ID`, with the host's name in pool.yml).

`pool join` repairs what it finds: hosts that left the swarm, managers that are too few or too many, also with a host
that does not answer.

Too few managers, and the swarm has no leader. Then experiments on one host run and start as before. Jobs across hosts
that run go on, too. Experiments that need several hosts wait (`NO_LEADER`), and the hosts are free for others
meanwhile. `riseml status`, `explain`, `pool`, `pool check`, the log of the waiting experiment and the server's log say
which managers do not answer. Start them again. When they are gone for good, `riseml pool recover` makes a new majority
from what lives (`docker swarm init --force-new-cluster` on one manager): it says first what that costs, and asks. The
jobs of experiments that run across hosts lose the network between them. Managers that return become managers again;
one that cannot (its engine reports an error) is made to join again by the server, or by `pool join`.
If the other managers live and are only cut off, there will be two swarms, so mend the network instead.

## GPUs

Without `gpus`, or with `gpus: all`, jobs may use every NVIDIA GPU of the host. The server reads them once it reaches
the host: their ids, UUIDs, models, memory and driver. On its own machine it asks the driver (NVML). On another host it
runs `nvidia-smi` in a container of that host's engine, which needs the `nvidia` runtime (`nvidia-ctk runtime configure
--runtime=docker`) or CDI devices (`nvidia.com/gpu`). The container has no network, no mounts and no capabilities, runs
as `nobody`, and is removed at once. Its image only brings the C library: one that is there, or `debian:stable-slim`,
which `riseml pool add`, `riseml pool check` and `riseml monitor --gpu` pull if nothing else serves.

`riseml system info -g` shows the GPUs, `riseml monitor --gpu` what they do, and `riseml pool check` why they cannot be
read; then list them by hand: `gpus: [0, 1]`. Each of these commands reads them again, once in four seconds at most. A
GPU that is divided (MIG) counts as its parts, each with its UUID; nothing but the memory is known of a part.

What was tested: the texts of several drivers, and the way through a real engine with a runtime that stands for
NVIDIA's. No machine with a GPU was there: readings of real hardware, MIG and CDI have not been seen.

## How the server reaches a host

- **`ssh://user@host[:port][/path/of/docker.sock]`**: the server keeps one tunnel of the OpenSSH client to each host,
  as long as the server runs. The user must have permission to use Docker there (`docker info` works in a shell). ssh
  must not ask for a password: use a key without a passphrase, or an agent. Pin the key of the host first, with
  `riseml pool trust HOST`, or with `ssh-keyscan -H HOST >> ~/.riseml/known_hosts` and a check of the fingerprint. The
  server refuses an unknown or a changed key.
- **`tcp://host:port` with `tls`**: mutual TLS, as in `dockerd --tlsverify`. The engine's certificate must be signed
  by `ca` and valid for the host of the URL. The certificate `cert` must be signed by the authority that the engine
  trusts.
- **`tcp://host:port` with `insecure: true`**: no TLS. Any client that reaches the port is root on the host;
  containers on that host are such clients.
- **`unix:///path`**: an engine on this machine.

A host that does not answer is silent. The server leaves its jobs alone until the host counts as lost. It notices a
connection that died without a message within half a minute. An experiment whose image no other host has, and no
registry gives, waits until the silent host answers or is lost.

## Forms

- **Memory** is written as in riseml.yml: `512M`, `500MB`, `16GiB`, in powers of 1024. A number without a unit is MiB
  from 64 up and GiB below, with a warning.
- **Paths of files** are relative to pool.yml; `~` is the home of the server's user. **Storage paths** are absolute, and
  the same on every host.
- **Labels** and driver options are strings, as written: `true` stays `true` and `1.10` stays `1.10`.

A file has at most 1 MiB of UTF-8 and one YAML document of at most 100,000 values. Anchors and aliases are supported,
YAML tags and merge keys are not. With its JSON Schema an editor completes and checks keys: [editors.md](editors.md).
"""


def render_pool_reference() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *list_key_sections(POOL_CONTRACT), _TAIL])


if __name__ == "__main__":
    sys.stdout.write(render_pool_reference())
