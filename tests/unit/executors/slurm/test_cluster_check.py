"""What `riseml pool check` finds at a cluster. A problem that stops every job is the last finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.capabilities import Finding, Outcome
from riseml.executors.slurm.cluster_check import ClusterCheck
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.spec.pool.types import SlurmSpec
from tests.unit.executors.slurm.scripted_slurm import ScriptedSlurm

SINFO = """\
case "$*" in
  --version) echo 'slurm 22.05.8' ;;
  *'%D|'*) echo '2|4|4000|(null)' ;;
  *'%P|'*) echo 'gpu*|up|1:00:00' ;;
  *'%N|'*) printf 'n1|idle|none\\nn2|idle|none\\n' ;;
esac
"""
NODES = """\
for node in n1 n2; do
  SLURMD_NODENAME=$node /bin/sh -c "$last"
done
"""
LAST = "for last; do :; done\n"


@pytest.fixture
def cluster(slurm: ScriptedSlurm) -> ScriptedSlurm:
    """A cluster of two idle nodes that are this machine, without a problem."""
    slurm.write("sinfo", SINFO)
    slurm.write("sbatch", "true")
    slurm.write("srun", LAST + NODES)
    slurm.write("cat", 'shift; exec /bin/cat -- "$@"')
    slurm.write("id", 'exec /usr/bin/id "$@"')
    return slurm


def check(cluster: ScriptedSlurm, folder: Path, **settings: object) -> list[Finding]:
    spec = SlurmSpec(str(folder), **settings)  # type: ignore[arg-type]  # the fields of a cluster, by name
    return list(ClusterCheck(spec, SlurmCommands(cluster)).run())


def test_a_cluster_without_a_problem_says_what_was_looked_at_and_keeps_no_file(
    cluster: ScriptedSlurm, tmp_path: Path
) -> None:
    findings = check(cluster, tmp_path / "shared")
    assert [(finding.topic, finding.outcome) for finding in findings] == [
        ("slurm", Outcome.OK),
        ("jobs", Outcome.OK),
        ("nodes", Outcome.OK),
    ]
    assert findings[0].message == "slurm 22.05.8, 2 nodes in all partitions"
    assert "all 2 idle nodes see" in findings[-1].message
    assert list((tmp_path / "shared").iterdir()) == []


@pytest.mark.parametrize(
    ("before", "after", "topic", "message"),
    [
        ("2|4|4000|(null)", "0|4|4000|(null)", "slurm", "no nodes"),
        ("gpu*|up", "gpu|up", "partition", "no default partition"),
        ("gpu*|up", "gpu*|drain", "partition", "partition gpu is drain"),
        ("1:00:00", "0:30:00", "partition", "`time_limit` is 45 minutes, and partition gpu allows 30"),
    ],
)
def test_a_problem_that_stops_every_job_is_the_last_finding(
    cluster: ScriptedSlurm, tmp_path: Path, before: str, after: str, topic: str, message: str
) -> None:
    cluster.write("sinfo", SINFO.replace(before, after))
    *_, last = check(cluster, tmp_path / "shared", time_limit=2700.0)
    assert (last.topic, last.outcome) == (topic, Outcome.FAILED)
    assert message in last.message


def test_a_job_that_slurm_refuses_and_a_controller_that_is_silent_are_findings(
    cluster: ScriptedSlurm, tmp_path: Path
) -> None:
    cluster.write("sbatch", "echo 'sbatch: error: Invalid qos specification' >&2; exit 1")
    assert "you have no such QOS" in check(cluster, tmp_path / "shared")[-1].message
    cluster.write("sinfo", "echo 'Unable to contact slurm controller' >&2; exit 1")
    (finding,) = check(cluster, tmp_path / "shared")
    assert (finding.topic, finding.outcome) == ("slurm", Outcome.FAILED)


@pytest.mark.parametrize(
    ("srun", "message"),
    [
        (f'{LAST}SLURMD_NODENAME=n1 /bin/sh -c "$last"\n', "node n2 gave no answer"),
        ("printf 'riseml|%s|1|ann|of another folder|writes|1\n' n1 n2", "is not the folder that the server has"),
        (f"{LAST}exit 1\n", "no job can be started"),
    ],
)
def test_a_node_that_differs_is_named(cluster: ScriptedSlurm, tmp_path: Path, srun: str, message: str) -> None:
    cluster.write("srun", srun)
    findings = check(cluster, tmp_path / "shared")
    assert any(message in finding.message for finding in findings if finding.outcome is Outcome.FAILED)


def test_a_folder_that_others_may_write_or_the_server_cannot_is_a_problem(
    cluster: ScriptedSlurm, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert any("`chmod go-w" in finding.message for finding in check(cluster, shared))
    (tmp_path / "file").touch()
    finding = check(cluster, tmp_path / "file")[-1]
    assert (finding.topic, finding.outcome) == ("folder", Outcome.FAILED)


def test_nodes_that_do_something_else_are_not_asked(cluster: ScriptedSlurm, tmp_path: Path) -> None:
    rows = "".join(f"n{number}|allocated|none\\n" for number in range(3, 10)) + "n2|down|Not responding\\n"
    cluster.write("sinfo", SINFO.replace("n2|idle|none\\n", rows))
    cluster.write("srun", LAST + 'SLURMD_NODENAME=n1 /bin/sh -c "$last"\n')
    *_, note = check(cluster, tmp_path / "shared")
    assert note.outcome is Outcome.NOTE
    assert note.message.startswith("not asked: n3 is allocated")
    assert note.message.endswith("and 3 more")
