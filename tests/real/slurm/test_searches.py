"""A search whose trials continue the files of others, on nodes that share the folder of outputs."""

from __future__ import annotations

from pathlib import Path

from tests.support.rig import Rig, single

POPULATION = 3
TRAIN = """
mkdir -p "$OUTPUT_DIR/checkpoint"; echo x >"$OUTPUT_DIR/own"
echo "$EXPERIMENT_ID ${RISEML_PARENT:-none}" >>"$OUTPUT_DIR/checkpoint/trace"
echo "riseml.report {\\"level\\": {{x}}}"
"""


def test_trials_of_a_population_continue_the_files_of_their_parents(slurm_rig: Rig) -> None:
    search = {
        "method": "pbt",
        "trials": 2 * POPULATION,
        "metric": "level",
        "goal": "minimize",
        "seed": 3,
        "pbt": {"population": POPULATION, "inherit": ["checkpoint"]},
    }
    config = single(TRAIN, parameters={"x": [1, 2, 3, 4]}, search=search, concurrency=POPULATION)
    name = slurm_rig.submit(config)["id"]
    ended = slurm_rig.wait_closed(name)
    assert (ended["state"], ended["search"]["end"]) == ("FINISHED", "COMPLETED"), slurm_rig.lines(name)
    traces = {
        member["id"]: (Path(member["output"]) / "checkpoint" / "trace").read_text().splitlines()
        for member in ended["experiments"]
    }
    first, second = list(traces)[:POPULATION], list(traces)[POPULATION:]
    assert [traces[trial] for trial in first] == [[f"{trial} none"] for trial in first]
    for trial in second:
        inherited, own = traces[trial]
        parent = own.split()[1]
        assert (own.split()[0], parent in first, [inherited]) == (trial, True, traces[parent])
    assert all((Path(member["output"]) / "own").read_text() == "x\n" for member in ended["experiments"])
