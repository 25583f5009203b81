"""The capsule of a real experiment: begun with its output, completed at its end, whatever its job does to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from scripts.capsule_schema import SCHEMA
from tests.real.api.test_dry_run import riseml, write
from tests.support.rig import GO, Rig, single

SECRET = "geheim-41c7"


def read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "capsule.json").read_text())
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(found)
    assert SECRET not in json.dumps(found)
    return found


def test_a_capsule_is_beside_the_output(rig: Rig, tmp_path: Path) -> None:
    config = single(
        f"{GO}; cat lines.txt",
        install=["echo made > here.txt"],
        env=["TOKEN"],
        parameters={"seed": 7},
    )
    folder = write(tmp_path / "project", config)
    rig.submit(
        config,
        {"lines.txt": "one\n"},
        environment={"TOKEN": SECRET},
        settings=[("train.priority", "3")],
        git={"revision": "a" * 40, "clean": False},
    )
    found = rig.wait_state("1", "RUNNING")
    place = Path(found["output"], ".riseml")
    begun = read(place)
    assert (begun["complete"], begun["code"]["included"], begun["seeds"]["seed"]) == (False, True, "7")
    assert begun["data"]["entries"] == []
    assert (place / "project.tar").stat().st_size > 0
    rig.go_file("1").touch()
    rig.wait_closed("1")
    done = read(place)
    assert (done["complete"], done["state"], done["jobs"][0]["exit_code"]) == (True, "FINISHED", 0)
    assert "priority: 3" in done["config"]
    assert done["code"]["git"] == {"revision": "a" * 40, "clean": False}
    assert done["environments"][0]["digest"] == found["image_digest"]
    shown = riseml(rig, folder, "show", "1", "--capsule", "--json")
    assert json.loads(shown.out) == done
    lines = riseml(rig, folder, "show", "1", "--capsule").out
    assert "variables:  TOKEN (passed on)\n" in lines
    assert "git aaaaaaaaaaaa, with changes\n" in lines
    with rig.client() as client:
        tar = client.get(f"/v1/snapshots/{done['code']['digest']}")
    assert tar.content == (place / "project.tar").read_bytes()
    assert riseml(rig, folder, "show", "9", "--capsule").code == 3


def test_what_a_job_removes_of_its_capsule_is_there_again_at_the_end(process_rig: Rig) -> None:
    rig = process_rig
    harms = [
        'rm -r "$OUTPUT_DIR/.riseml" "$OUTPUT_DIR/riseml-configuration.yml"',
        'echo x >"$OUTPUT_DIR/.riseml/project.tar"',
    ]
    for name, harm in enumerate(harms, 1):
        rig.submit(single(harm))
        found = rig.wait_closed(str(name))
        place = Path(found["output"], ".riseml")
        capsule = read(place)
        assert (found["state"], capsule["complete"], capsule["code"]["included"]) == ("FINISHED", True, True)
        assert "state: FINISHED" in Path(found["output"], "riseml-configuration.yml").read_text()
        with rig.client() as client:
            tar = client.get(f"/v1/snapshots/{capsule['code']['digest']}")
        assert tar.content == (place / "project.tar").read_bytes()


def test_a_job_that_replaces_its_capsule_by_a_link_harms_no_other_file(rig: Rig, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    rig.submit(single(f'rm -r "$OUTPUT_DIR/.riseml"; ln -s {victim} "$OUTPUT_DIR/.riseml"'))
    rig.wait_closed("1")
    assert list(victim.iterdir()) == []
    assert rig.experiment("1")["state"] == "FINISHED"
    assert rig.get("/v1/experiments/1/capsule")["capsule"]["complete"]
