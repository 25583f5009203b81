"""Call the commands of Slurm, and explain their failures.

A command of Slurm waits for the controller; when that is frozen, it fails after Slurm's MessageTimeout, and what it
asked for may happen later.
"""

from __future__ import annotations

import re
import subprocess

from riseml.base.errors import EngineError, RisemlError, Unreachable
from riseml.executors.slurm.command_site import CommandSite, ThisMachine
from riseml.executors.slurm.queue_rows import (
    NODE_FORMAT,
    NODE_STATE_FORMAT,
    PARTITION_FORMAT,
    QUEUE_FORMAT,
    NodeState,
    PartitionRow,
    QueueRow,
    parse_node_states,
    parse_nodes,
    parse_partitions,
    parse_queue,
)
from riseml.model import NodeKind
from riseml.spec.pool.types import SlurmSpec

_TIMEOUT = 60.0  # seconds
_UNSURE = re.compile(
    "unable to contact|timed out|temporar|try again|zero bytes|communication|connection|transport|unexpected message"
    "|protocol authentication|no route|network",
    re.IGNORECASE,
)
"""The words of the commands when the controller does not answer; all other errors are refusals."""

_REFUSALS = {
    "group not permitted": "your groups may not use this partition",
    "not permitted to use this partition": "you may not use this partition",
    "invalid partition": "there is no such partition",
    "invalid feature": "no node has the features of `constraint`",
    "reservation is invalid": "there is no such reservation now",
    "access denied to requested reservation": "you may not use this reservation",
    "invalid account": "you have no such account, or it may not use this partition",
    "invalid qos": "you have no such QOS, or it may not be used here",
    "node configuration is not available": "no nodes of the partition could ever hold this",
    "node count specification": "it asks for more nodes than the partition has or allows",
    "job credential": "the controller does not know this user",
    "time limit": "it asks for more time than allowed",
}
"""What the words of a refusal mean; the first part that is found counts."""

_IMMEDIATE = 20  # seconds for a check to start
_MOST_TEXT = 500  # characters of a message


class SlurmCommands:
    """sbatch, squeue, scancel and sinfo, as the server's user on the machine where they run.

    Args:
        site: where they run.
    """

    def __init__(self, site: CommandSite | None = None) -> None:
        self.site = site or ThisMachine()

    def submit(self, script: str) -> str:
        """Submit a job; return its id.

        Raises:
            Unreachable: the controller did not answer; the job may have been submitted.
            EngineError: Slurm refuses it (permanent).
        """
        answer = self._run(["sbatch", "--parsable"], script)
        return answer.strip().splitlines()[-1].partition(";")[0]

    def list_jobs(self) -> list[QueueRow]:
        """Return every riseml job of this user that Slurm knows, in one call.

        Raises:
            Unreachable, EngineError: it does not say.
        """
        rows = parse_queue(self._run(["squeue", "--noheader", "--me", "--states=all", f"--format={QUEUE_FORMAT}"]))
        return [row for row in rows if row.name.startswith("riseml-")]

    def cancel(self, job: str) -> None:
        """End a job at once; does nothing when it has ended.

        Raises:
            Unreachable, EngineError: it may go on.
        """
        self._run(["scancel", job])

    def list_nodes(self, partition: str) -> tuple[NodeKind, ...]:
        """Return the kinds of nodes of a partition; of all partitions when it is empty.

        Raises:
            Unreachable, EngineError: Slurm does not say.
        """
        only = [f"--partition={partition}"] if partition else ["--all"]
        return parse_nodes(self._run(["sinfo", "--noheader", "--exact", f"--format={NODE_FORMAT}", *only]))

    def list_node_states(self, partition: str) -> list[NodeState]:
        """Return the nodes of a partition with their states; of all partitions when it is empty.

        Raises:
            Unreachable, EngineError: Slurm does not say.
        """
        only = [f"--partition={partition}"] if partition else []
        return parse_node_states(self._run(["sinfo", "--noheader", "--Node", f"--format={NODE_STATE_FORMAT}", *only]))

    def list_partitions(self) -> list[PartitionRow]:
        """Return the partitions that this user sees.

        Raises:
            Unreachable, EngineError: Slurm does not say.
        """
        return parse_partitions(self._run(["sinfo", "--noheader", f"--format={PARTITION_FORMAT}"]))

    def try_job(self, options: list[str]) -> None:
        """Ask whether a small job with these options of sbatch could be submitted; submit none.

        Raises:
            Unreachable, EngineError: it could not, or Slurm does not say.
        """
        self._run(["sbatch", "--test-only", "--output=/dev/null", "--ntasks=1", *options], "#!/bin/sh\n")

    def ask_nodes(self, script: str, nodes: list[str], settings: SlurmSpec) -> list[str]:
        """Run a shell line on these nodes at once, and return what they print.

        Raises:
            Unreachable, EngineError: Slurm does not start it.
        """
        named = {"partition": settings.partition, "account": settings.account, "qos": settings.qos}
        options = [f"--{name}={value}" for name, value in named.items() if value]
        options += [f"--nodelist={','.join(nodes)}", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}", "--chdir=/"]
        options += ["--ntasks-per-node=1", f"--immediate={_IMMEDIATE}"]
        command = ["srun", "--job-name=riseml-check", "--time=1", "--mem=10M", *options, "/bin/sh", "-c", script]
        return [line for line in self._run(command).splitlines() if line.startswith("riseml|")]

    def read_text(self, path: str) -> str:
        """Return the content of a small file as the machine of the commands reads it.

        Raises:
            Unreachable, EngineError: it does not read it.
        """
        process = self._call(["cat", "--", path])
        if process.returncode != 0:
            raise EngineError(" ".join(process.stderr.split())[:_MOST_TEXT])
        return process.stdout

    def read_user(self) -> str:
        """Return the name of the user whom the commands run as.

        Raises:
            Unreachable: that machine does not say.
        """
        return self._call(["id", "-un"]).stdout.strip()

    def read_version(self) -> str:
        """Return `slurm 22.05.8`.

        Raises:
            Unreachable, EngineError: Slurm is not installed here.
        """
        return self._run(["sinfo", "--version"]).strip()

    def _run(self, command: list[str], script: str = "") -> str:
        """Return what a command of Slurm prints."""
        process = self._call(command, script)
        if process.returncode == 0:
            return process.stdout
        raise _explain(command[0], process.stderr or process.stdout or f"exit code {process.returncode}")

    def _call(self, command: list[str], script: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command, and return its end."""
        wrapped = self.site.wrap(command)
        try:
            process = subprocess.run(
                wrapped, input=script, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT, check=False
            )
        except FileNotFoundError as error:
            hint = "run the server on a login node, or name one as `login` in the section `slurm` of pool.yml"
            raise Unreachable(f"{wrapped[0]} is not on this machine", hint) from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unreachable(f"{command[0]} gave no answer: {error}") from error
        trouble = self.site.explain_end(command[0], process.returncode)
        if trouble is not None:
            raise trouble
        return process


def _explain(command: str, text: str) -> RisemlError:
    words = " ".join(text.split())[:_MOST_TEXT]
    if _UNSURE.search(words):
        return Unreachable(f"Slurm's controller does not answer ({words})", "`sinfo` shows when it does again")
    hint = "compare the section `slurm` of pool.yml with what `sinfo` and `sacctmgr show assoc` show"
    own = words.removeprefix(f"{command}: error: ")
    plain = next((sentence for part, sentence in _REFUSALS.items() if part in words.lower()), "")
    return EngineError(f"Slurm refuses: {plain} ({own})" if plain else f"Slurm refuses: {own}", hint, permanent=True)
