"""The module `riseml` inside a job: its lines, what it leaves out, and that it never ends a training."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.job_programs import add_report_module, read_program
from riseml.store.logs.report_lines import split_report
from tests.support.waiting import DEADLINE

PACKAGE = Path(__file__).parents[3]
INSIDE = {"PATH": os.environ["PATH"], "RISEML_JOB": "train"}


def run(folder: Path, program: str, variables: dict[str, str] = INSIDE, options: str = "") -> tuple[list[str], str]:
    """Run a program as a job does, without riseml in its Python; return the lines of stdout, and stderr."""
    (folder / "train.py").write_text(program)
    script = add_report_module(f'exec "{sys.executable}" -S {options} train.py')
    done = subprocess.run(
        ["/bin/sh", "-ec", script],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    return done.stdout.split("\n")[:-1], done.stderr  # `splitlines` would split at the record separator, too


def body(line: str) -> str:
    """Return what a line of the module reports."""
    shown, report = split_report(line.encode())
    assert (shown, report) == (None, line[1:].encode())
    return line.removeprefix("\x1eriseml.report ")


def test_a_step_that_the_server_does_not_take_is_left_out_with_a_word(tmp_path: Path) -> None:
    lines, errors = run(
        tmp_path, "import riseml\nfor step in (10**15 - 1, 10**15, -10**30): riseml.report(step=step, loss=1)\n"
    )
    assert list(map(body, lines)) == ['{"step": 999999999999999, "loss": 1.0}']
    assert errors == "riseml: a report was left out: ValueError('a step has at most 15 digits')\n"


def test_the_calls_of_riseml_become_lines(tmp_path: Path) -> None:
    lines, errors = run(
        tmp_path,
        "import riseml\n"
        "riseml.report_result(accuracy=.97, loss=.1, experiment_id='4')\n"
        "print('between')\n"
        "riseml.report(step=120, loss=.31)\n"
        "riseml.report({'val/acc (top)': 1, 'step': True}, step=-3.0)\n"
        "riseml.report(step=5)\n",
    )
    assert errors == ""
    assert [body(lines[0]), lines[1], *map(body, lines[2:])] == [
        '{"accuracy": 0.97, "loss": 0.1}',
        "between",
        '{"step": 120, "loss": 0.31}',
        '{"step": -3, "val/acc (top)": 1.0}',
    ]


def test_progress_becomes_a_few_lines_and_the_last_is_always_there(tmp_path: Path) -> None:
    lines, errors = run(
        tmp_path,
        "import riseml\n"
        "for done in range(1, 1001): riseml.progress(done, 1000)\n"
        "riseml.progress('much', 1000)\n"
        "riseml.progress(None, None)\n",
    )
    assert errors == "riseml: a report was left out: ValueError(\"could not convert string to float: 'much'\")\n"
    assert body(lines[0]) == '{"riseml.done": 1.0, "riseml.of": 1000.0}'
    assert body(lines[-1]) == '{"riseml.done": 1000.0, "riseml.of": 1000.0}'
    assert len(lines) < 500
    assert run(tmp_path, "import riseml\nriseml.progress(1, 2)\n", {"PATH": os.environ["PATH"]}) == ([], "")


def test_values_that_are_not_numbers_are_left_out_and_reported_once(tmp_path: Path) -> None:
    lines, errors = run(
        tmp_path,
        "import riseml, sys\n"
        "class Tensor:\n"
        "    def __float__(self): return 0.5\n"
        "class Broken:\n"
        "    def __float__(self): raise RuntimeError('x' * 5000)\n"
        "riseml.report(a='text', b=None, c=Broken(), d=10 ** 400, e=Tensor(), f=float('nan'), g=-float('inf'))\n"
        "riseml.report(step='x', loss=1)\n"
        "riseml.report(1, 2)\n",
    )
    assert [body(line) for line in lines] == ['{"e": 0.5, "f": NaN, "g": -Infinity}']
    assert errors.count("riseml: ") == 1
    assert len(errors) < 500


def test_names_keep_their_letters_and_two_names_are_never_one(tmp_path: Path) -> None:
    names = [
        "损失",
        "精度",
        "Ж",
        "β",
        "val loss",
        "val_loss",
        "1",
        "step ",
        'a "b"',
        "back\\\\slash",
        "{x}",
        "é",
        "e\u0301",
        "🙂",
    ]
    names = [name.replace("\\\\", "\\") for name in names]
    lines, errors = run(
        tmp_path, f"import riseml\nriseml.report({ {name: at for at, name in enumerate(names)}!r}, step=1)\n"
    )
    assert errors == ""
    (line,) = lines
    assert json.loads(body(line)) == {"step": 1, **{name: at for at, name in enumerate(names)}}


def test_names_that_no_metric_can_have_are_told_once_each(tmp_path: Path) -> None:
    program = (
        "import riseml\n"
        "for _ in range(3): riseml.report({'': 1, 'two\\nlines': 2, '\\ud800': 3, 'x' * 99: 4, 'x' * 98: 5, 7: 6})\n"
    )
    lines, errors = run(tmp_path, program)
    assert len(lines) == 3
    (first, second), (seven, six) = (
        list(json.loads(body(lines[0])).items())[:2],
        list(json.loads(body(lines[0])).items())[2],
    )
    assert (first[1], second[1], seven, six) == (4, 5, "7", 6)
    assert first[0] != second[0]
    assert {len(name) for name, _ in (first, second)} == {64}
    told = errors.splitlines()
    assert [line.count("is not a name of a metric") for line in told] == [1, 1, 1, 0, 0]
    assert all(f"has more than 64 characters: it is {name!r}" in errors for name, _ in (first, second))


def test_a_report_comes_behind_what_the_script_has_printed_and_stays_whole(tmp_path: Path) -> None:
    """Also from many threads, with long reports, without buffers, and where stdout is replaced or closed."""
    lines, errors = run(
        tmp_path,
        "import io, riseml, sys, threading\n"
        "sys.stdout.write('bar 3/10')\n"
        "riseml.report(step=1, loss=.5)\n"
        "report = lambda: [riseml.report(step=1, **{'metric%03d' % n: n / 3 for n in range(150)}) for _ in range(20)]\n"
        "threads = [threading.Thread(target=report) for _ in range(8)]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
        "sys.stdout = io.StringIO()\n"
        "riseml.report(step=2, loss=.5)\n"
        "sys.stdout.close()\n"
        "riseml.report(step=3, loss=.5)\n",
    )
    assert errors == ""
    assert lines[0] == 'bar 3/10\x1eriseml.report {"step": 1, "loss": 0.5}'
    found = [body(line) for line in lines[1:]]
    assert sum(line.count("metric") for line in found) == 8 * 20 * 150
    assert max(map(len, lines)) < 4096
    assert found[-2:] == ['{"step": 2, "loss": 0.5}', '{"step": 3, "loss": 0.5}']


@pytest.mark.parametrize("installed", [False, True])
def test_outside_of_a_job_it_does_nothing(tmp_path: Path, installed: bool) -> None:  # noqa: FBT001  # a parameter
    variables = {name: value for name, value in INSIDE.items() if name != "RISEML_JOB"}
    variables |= {"PYTHONPATH": str(PACKAGE)} if installed else {}
    program = (
        "import riseml\nriseml.report(step=1, loss='x')\nriseml.report_result(accuracy=1)\nprint(riseml.__file__)\n"
    )
    lines, errors = run(tmp_path, program, variables)
    assert errors == ""
    assert lines == [str(PACKAGE / "riseml/__init__.py" if installed else tmp_path / ".riseml/riseml.py")]


def test_the_installed_package_stays_what_it_is(tmp_path: Path) -> None:
    says = "print(riseml.__version__, riseml.base.errors.__name__)"
    program = f"import riseml, riseml.base.errors\nriseml.report(loss=1)\n{says}\n"
    lines, errors = run(tmp_path, program, {**INSIDE, "PYTHONPATH": str(PACKAGE)})
    assert errors == ""
    assert body(lines[0]) == '{"loss": 1.0}'
    assert lines[1].endswith(" riseml.base.errors")


@pytest.mark.parametrize(
    ("package", "said"),
    [("__version__ = 'old'\n", ""), ("raise OSError('broken')\n", "riseml: a report was left out: OSError('broken')")],
)
def test_a_package_without_reports_gets_them_and_a_broken_one_is_passed_over(
    tmp_path: Path, package: str, said: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "riseml.py").write_text(package)
    lines, errors = run(tmp_path, "import riseml\nriseml.report(loss=1)\n", {**INSIDE, "PYTHONPATH": str(other)})
    assert [body(line) for line in lines] == ['{"loss": 1.0}']
    assert errors.strip() == said


def test_it_is_written_for_python_3_6() -> None:
    ast.parse(read_program("media_reports"), feature_version=(3, 6))
    assert "__future__" not in read_program("media_reports")
    assert "strict=" not in read_program("media_reports"), "an argument of zip from Python 3.10 on"
