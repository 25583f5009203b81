"""The commands of Slurm: how they are called, and what their failures mean."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from riseml.base.errors import EngineError, RisemlError, Unreachable
from riseml.executors.slurm.command_site import ThisMachine
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.spec.pool.types import SlurmSpec
from tests.unit.executors.slurm.scripted_slurm import ScriptedSlurm


def test_a_script_is_submitted_and_its_job_has_an_id(slurm: ScriptedSlurm) -> None:
    slurm.write("sbatch", "echo 'sbatch: a note of the site'; echo '77;cluster'")
    assert SlurmCommands(slurm).submit("#!/bin/sh\ntrue\n") == "77"
    assert (slurm.read_words("sbatch"), slurm.read_input("sbatch")) == (["--parsable"], "#!/bin/sh\ntrue\n")


def test_only_jobs_of_riseml_are_listed(slurm: ScriptedSlurm) -> None:
    slurm.write("squeue", "echo '7|RUNNING|None|N/A|riseml-a-4-1'; echo '8|RUNNING|None|N/A|bash'")
    assert [row.id for row in SlurmCommands(slurm).list_jobs()] == ["7"]
    assert "--me" in slurm.read_words("squeue")


@pytest.mark.parametrize(("partition", "word"), [("gpu", "--partition=gpu"), ("", "--all")])
def test_nodes_of_the_partition_count(slurm: ScriptedSlurm, partition: str, word: str) -> None:
    slurm.write("sinfo", "echo '3|4|4000|gpu:t4:2'")
    (kind,) = SlurmCommands(slurm).list_nodes(partition)
    assert (kind.count, kind.gpus) == (3, 2)
    assert word in slurm.read_words("sinfo")


def test_idle_nodes_are_asked_with_the_settings_of_the_cluster_and_their_noise_is_dropped(slurm: ScriptedSlurm) -> None:
    slurm.write("srun", "echo 'module loaded'; echo 'riseml|n1|1000'")
    settings = SlurmSpec("/shared", partition="gpu", account="lab")
    assert SlurmCommands(slurm).ask_nodes("id -u", ["n1", "n2"], settings) == ["riseml|n1|1000"]
    words = slurm.read_words("srun")
    assert {"--partition=gpu", "--account=lab", "--nodelist=n1,n2", "--nodes=2"} <= set(words)
    assert not any(word.startswith("--qos") for word in words)
    assert words[-3:] == ["/bin/sh", "-c", "id -u"]


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("sbatch: error: Unable to contact slurm controller", Unreachable, "controller does not answer"),
        ("Socket timed out on send/recv operation", Unreachable, "controller does not answer"),
        ("sbatch: error: Invalid account or qos", EngineError, "you have no such account"),
        ("sbatch: error: Requested node configuration is not available", EngineError, "could ever hold this"),
        ("sbatch: error: a rule of this site", EngineError, "Slurm refuses: a rule of this site"),
        ("", EngineError, "exit code 1"),
    ],
)
def test_a_failure_is_a_refusal_unless_the_controller_is_silent(
    slurm: ScriptedSlurm, words: str, error: type[RisemlError], message: str
) -> None:
    slurm.write("sbatch", f"printf '%s' '{words}' >&2; exit 1")
    with pytest.raises(error, match=message) as raised:
        SlurmCommands(slurm).submit("")
    assert type(raised.value) is error
    assert getattr(raised.value, "permanent", False) is (error is EngineError)


def test_a_machine_without_slurm_says_where_to_run_the_server() -> None:
    class NoSlurm(ThisMachine):
        def wrap(self, command: Sequence[str]) -> list[str]:
            return ["/none/sinfo"]

    with pytest.raises(Unreachable, match="/none/sinfo is not on this machine") as raised:
        SlurmCommands(NoSlurm()).read_version()
    assert "login" in str(raised.value.hint)


def test_a_file_that_cannot_be_read_has_the_words_of_its_reader(slurm: ScriptedSlurm) -> None:
    slurm.write("cat", "echo 'cat: /shared/x: Stale file handle' >&2; exit 1")
    with pytest.raises(EngineError, match="Stale file handle"):
        SlurmCommands(slurm).read_text("/shared/x")
