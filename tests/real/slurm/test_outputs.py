"""What a role writes into its working folder on a node is kept as riseml.yml says, or its loss is said."""

from __future__ import annotations

from pathlib import Path

from tests.support.rig import Rig, single


def test_named_files_of_a_role_are_kept_and_the_loss_of_others_is_said(slurm_rig: Rig) -> None:
    run = "mkdir runs; echo x >runs/events; echo y >model.pt; echo z >other; rm -rf .riseml; exit 4"
    name = slurm_rig.submit(single(run, outputs=["runs", "*.pt"]), {"kept.pt": "as sent"})["id"]
    found = slurm_rig.wait_closed(name)
    assert found["state"] == "FAILED"
    output = Path(found["output"])
    assert (output / "runs" / "events").read_text() == "x\n"
    assert (output / "model.pt").read_text() == "y\n"
    assert not (output / "kept.pt").exists()
    assert (found["written"]["kept_files"], found["written"]["lost_names"]) == (2, ["other"])
    said = [line for line in slurm_rig.lines(name) if " riseml: " in line]
    assert len(said) == 2
    assert "1 new file (2 B) was not kept: other" in said[1]
