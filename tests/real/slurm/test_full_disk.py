"""The folder that a cluster shares is full: builds on nodes get room, and what is in use stays."""

from __future__ import annotations

from pathlib import Path

from riseml.executors.this_machine.removal import remove_tree
from tests.support.disks import write_filling
from tests.support.rig import GO, Rig
from tests.support.slurm_cluster import SlurmCluster


def list_environments(folder: Path) -> set[str]:
    return {path.parent.name for path in (folder / "environments").glob("*/.ready")}


def test_a_build_on_a_node_that_finds_a_full_folder_gets_room(
    cluster: SlurmCluster, small_folder: Path, tmp_path: Path
) -> None:
    shared = small_folder / "shared"
    cluster.write_pool(tmp_path / "home", shared=shared)
    rig = Rig(tmp_path / "home", None, RISEML_CLEAN_ABOVE="85")
    rig.host = cluster
    with rig:
        rig.submit(write_filling(25))
        assert rig.wait_closed("1")["state"] == "FINISHED", rig.lines("1")
        unused = list_environments(shared)
        rig.submit(write_filling(30, GO))
        rig.wait_state("2", "RUNNING")
        used = list_environments(shared) - unused
        rig.submit(write_filling(70))
        assert rig.wait_closed("3")["state"] == "FINISHED", rig.lines("3")
        assert used < list_environments(shared)
        assert not unused & list_environments(shared)
        assert "removed of what no experiment needs" in (rig.home / "server.log").read_text()
        rig.go_file("2").touch()
        assert rig.wait_closed("2")["state"] == "FINISHED"
        rig.clean_up()
    remove_tree(shared)
