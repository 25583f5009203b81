"""The examples on a real Slurm cluster of three nodes: TensorFlow, PyTorch, and a set of ten."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.e2e.console import Result
from tests.real.frameworks.test_toaster import EXAMPLE, ROLES, find_cache
from tests.real.streams.conftest import Hands
from tests.real.streams.test_tensorboard import open_forward, read_json, read_points
from tests.support.command import run_riseml
from tests.support.rig import Rig, single
from tests.support.slurm_cluster import SlurmCluster
from tests.support.waiting import DEADLINE

TEN = 10


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cluster: SlurmCluster, shared_environments: Path) -> Iterator[Rig]:
    """A server with the digits in the data of its shared folder."""
    home = tmp_path_factory.mktemp("site") / "home"
    cluster.write_pool(home, ", build_on: server")  # private nodes reach no package index on the internet
    shared = home.with_name("shared")
    (shared / "environments").symlink_to(shared_environments)
    digits = shared / "data" / "digits"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", find_cache() / "data" / "digits"], check=True)
    digits.parent.mkdir(mode=0o700, exist_ok=True)
    digits.symlink_to(find_cache() / "data" / "digits")
    rig = Rig(home, None)
    rig.host = cluster
    with rig:
        yield rig
        rig.clean_up()


def train(site: Rig, where: Path, *words: str) -> Result:
    """Return what `riseml train` printed until the experiment had ended."""
    done = run_riseml(["train", *words], where, {**site.environ(), "RISEML_LOG": "classic"}, 3 * DEADLINE)
    return Result(done.returncode, done.stdout, done.stderr)


def test_the_example_of_tensorflow_learns_the_digits_on_nodes_and_tensorboard_shows_it(site: Rig) -> None:
    result = train(site, EXAMPLE, "-p", "epochs=1")
    assert (result.code, result.err) == (0, ""), result.out
    found = site.experiment(result.id)
    assert found["state"] == "FINISHED"
    assert {job["name"] for job in found["jobs"]} - {"build"} == ROLES
    assert "test accuracy: " in "\n".join(result.lines("master"))
    _see_scalars(site, result.id)


def _see_scalars(site: Rig, name: str) -> None:
    """See what the example has written by a TensorBoard on a node, through the door of its job."""
    with open_forward(Hands(site), name) as (_, job, address):
        run = f"{name} epochs=1 lr=0.02/summaries"
        site.wait("it has read them", lambda: run in read_json(address, "plugin/scalars/tags"))
        assert [step for step, _ in read_points(address, run)] == [1]
    watcher = job.partition(".")[0]
    assert site.experiment(watcher)["jobs"][-1]["host"] == "slurm"
    site.post(f"/v1/experiments/{watcher}/kill")
    assert site.wait_closed(watcher)["state"] == "KILLED"


def test_the_example_of_pytorch_learns_the_digits_on_three_nodes(site: Rig, cluster: SlurmCluster) -> None:
    whole_nodes = ("--set", "train.resources.cpus=3", "--set", "train.pytorch.version=2.13.0-cpu")
    result = train(site, EXAMPLE.parent / "pytorch-digits", "-p", "epochs=2", *whole_nodes)
    assert (result.code, result.err) == (0, ""), result.out
    assert set(re.findall(r"rank (\d) of 3: test accuracy", result.out)) == {"0", "1", "2"}
    rows = cluster.ask("squeue", "--noheader", "--states=all", "--format=%j %D").splitlines()
    assert rows.count(f"riseml-{site.server_id()[:12]}-{result.id}-1 3") == 1, "one job on three nodes"


def test_a_set_of_ten_runs_over_three_nodes(site: Rig, cluster: SlurmCluster) -> None:
    # A point waits until all nodes have one, so that no early end makes room on a node for the last points.
    run = """echo "$SLURMD_NODENAME" >"$OUTPUT_DIR/node"
    until [ "$(cat "$OUTPUT_DIR"/../*/node | sort -u | wc -l)" = 3 ]; do sleep 0.1; done
    echo point {{x}}"""
    keys = {"parameters": {"x": list(range(TEN))}, "concurrency": TEN, "resources": {"cpus": 1, "mem": "900MiB"}}
    name = str(site.submit(single(run, **keys))["id"])
    found = site.wait_closed(name)
    assert found["state"] == "FINISHED"
    points = {line.split(" ", 1)[1] for line in site.lines(name) if " point " in line}
    assert points == {f"point {number}" for number in range(TEN)}
    nodes = {path.read_text().strip() for path in Path(found["output"]).rglob("node")}
    assert nodes == {"n1", "n2", "n3"}
    site.wait("Slurm runs nothing of it", lambda: not cluster.list_jobs(site.server_id()))
