"""The examples that `init --example` writes: whole, with their data, and with a metric to plot."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from riseml.cli.example_projects import list_examples
from riseml.spec.config.loader import check_config
from tests.unit.cli.conftest import Riseml

ROOT = Path(__file__).parents[3]
CONFIGS = sorted((ROOT / "examples").glob("*/*.yml"))


def test_every_example_of_the_readme_and_the_docs_is_listed_with_a_summary() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"examples/([a-z0-9-]+)", page.read_text())}
    examples = {example.name: example.summary for example in list_examples()}
    assert named - {"grafana"} <= set(examples)
    assert all(len(summary) > 10 for summary in examples.values())
    assert len(set(examples.values())) == len(examples)


@pytest.mark.parametrize("file", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_file_of_the_examples_is_valid_and_reports_a_metric(file: Path) -> None:
    checked = check_config(file.read_text())
    assert checked.problems == ()
    assert checked.spec is not None
    scripts = [script for script in file.parent.glob("*.py") if script.name in file.read_text()]
    assert checked.spec.train.policy.metrics or any("riseml.report(" in script.read_text() for script in scripts)


def test_an_example_is_written_whole_into_a_new_folder(riseml: Riseml, tmp_path: Path) -> None:
    result = riseml("init", "--example", "seeds", where=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "Wrote 3 files into seeds: Three learning rates over five seeds.\nNext: cd seeds && riseml train\n"
    )
    for source in (ROOT / "examples" / "seeds").glob("*.*"):
        assert (tmp_path / "seeds" / source.name).read_text() == source.read_text()
    shutil.rmtree(tmp_path / "seeds")
    written = json.loads(riseml("init", "--example", "seeds", "--json", where=tmp_path).out)
    assert written == {"file": "seeds/riseml.yml", "project": "seeds", "old": None}


def test_an_example_whose_digits_cannot_be_fetched_is_there_and_says_how_to_go_on(
    riseml: Riseml, tmp_path: Path
) -> None:
    digits = tmp_path / "data" / "digits"
    environ = {"RISEML_DATA": str(digits.parent), "PIP_NO_INDEX": "1", "PATH": os.environ["PATH"]}
    failed = riseml("init", "--example", "roles-digits", environ=environ, where=tmp_path)
    assert failed.code == 3
    assert "error: the example is there, but not its data: " in failed.err
    assert f"cd roles-digits && python3 get_data.py {digits}" in failed.err
    assert "Traceback" not in failed.err
    assert (tmp_path / "roles-digits" / "get_data.py").is_file()
    assert "../ai-toaster" not in (tmp_path / "roles-digits" / "README.md").read_text()


def test_the_examples_are_listed_for_people_and_programs(riseml: Riseml) -> None:
    shown = riseml("init", "--example").out
    assert "seeds           Three learning rates over five seeds\n" in shown
    rows = json.loads(riseml("init", "--example", "--json").out)
    assert {"name": "seeds", "summary": "Three learning rates over five seeds"} in rows


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--example", "none"), 3, "riseml has no example 'none'"),
        (("--example", ""), 3, "riseml has no example ''"),
        (("--example", "../seeds"), 3, "riseml has no example '../seeds'"),
        (("--example", "seeds", "--framework", "jax"), 2, "--example takes no --framework"),
        (("seeds",), 2, "init takes no argument 'seeds'"),
        (("--example", "sweep"), 4, "sweep is already there, and not empty"),
    ],
)
def test_wrong_examples_are_refused(
    riseml: Riseml, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "mine").touch()
    result = riseml("init", *words, where=tmp_path)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert not (tmp_path / "seeds").exists()
