"""Variables that libraries and the system read: the table, its page, and what jobs get instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.capsules.exported_run import make_run
from riseml.planning.launch import bind_job, job_variables
from riseml.spec.config.loader import check_config, load_config
from riseml.spec.config.parameters import FRAMEWORK_VARIABLES, RESERVED_VARIABLES, RISEML_VARIABLES
from riseml.spec.scalars.known_variables import READERS, find_variable_reader
from tests.unit.frameworks.layouts import gang, make_experiment
from tests.unit.planning.test_capsule import capsule_of

PAGE = Path(__file__).parents[4] / "docs" / "frameworks.md"
FILE = """
project: x
train:
  image: a
  run: t {{rank}} {{path}} {{lr}}
  parameters: {rank: 4, path: p, lr: 0.1}
  variables: {rank: LORA_RANK, path: false}
"""


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LANG", "LC_ALL", "HOME", "PATH", "LD_PRELOAD"])
def test_names_that_others_read_are_known(name: str) -> None:
    assert find_variable_reader(name) is not None


def test_what_riseml_and_frameworks_read_is_known_and_usual_names_are_free() -> None:
    names = RESERVED_VARIABLES - RISEML_VARIABLES | {name for one in FRAMEWORK_VARIABLES.values() for name in one}
    assert [name for name in sorted(names) if find_variable_reader(name) is None] == []
    usual = "LR LEARNING_RATE EPOCHS BATCH_SIZE SEED MODEL DATA LAYERS UNITS OPTIMIZER DROPOUT N NAME SIZE FOLD SECONDS"
    assert [name for name in usual.split() if find_variable_reader(name)] == []


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text()
    for reader, source, names in READERS:
        assert f"| {reader} | {' '.join(f'`{name}`' for name in names.split())} | {source} |" in page


def test_jobs_get_the_variables_that_the_file_names() -> None:
    assert check_config(FILE).problems == ()
    experiment = make_experiment(load_config(FILE))
    (job,) = gang(experiment)
    bound = bind_job(experiment, job)
    found = dict(job_variables(bound))
    assert (found["LORA_RANK"], found["LR"], found.keys() & {"RANK", "PATH", "false"}) == ("4", "0.1", set())


@pytest.mark.parametrize("framework", ["image: a", "framework: pytorch", "framework: jax", "framework: tensorflow"])
def test_every_framework_warns(framework: str) -> None:
    text = f"project: x\ntrain: {{{framework}, run: 't {{{{lang}}}}', parameters: {{lang: en}}}}\n"
    (problem,) = check_config(text).problems
    assert "train.parameters.lang: warning: jobs get it as the environment variable LANG" in str(problem)
    assert "`variables: {lang: MY_LANG}`" in str(problem)
    renamed = text.replace("parameters:", "variables: {lang: MY_LANG}, parameters:")
    assert check_config(renamed).problems == ()


def test_an_export_has_the_same_variables() -> None:
    run = make_run(capsule_of(make_experiment(load_config(FILE))), "", "1:1", has_code=False)
    (job,) = run.jobs
    assert job.variables["LORA_RANK"] == "4"
    assert job.variables.keys() & {"RANK", "PATH"} == set()
