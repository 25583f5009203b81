"""The command line itself: help, errors as messages, what is imported, and the end of the process."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from riseml import __version__
from riseml.cli.main import make_app
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.programs import run_program

VERBS = [
    "init",
    "validate",
    "train",
    "status",
    "show",
    "logs",
    "monitor",
    "kill",
    "search",
    "server",
    "system",
    "server stop",
    "system info",
    "pool add",
    "pool remove",
]


@pytest.mark.parametrize("verb", ["", *VERBS])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help(riseml: Riseml, capsys: pytest.CaptureFixture[str], verb: str, option: str) -> None:
    assert riseml(*verb.split(), option).code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: {' '.join(['riseml', *verb.split()])} ")
    assert "─" not in shown


def test_no_argument_shows_the_help(riseml: Riseml, capsys: pytest.CaptureFixture[str]) -> None:
    assert riseml().code == 0
    assert "Exit codes: 0 done" in capsys.readouterr().out


@pytest.mark.parametrize("group", ["server", "system"])
def test_a_group_alone_shows_its_help(riseml: Riseml, capsys: pytest.CaptureFixture[str], group: str) -> None:
    assert riseml(group).code == 0
    assert capsys.readouterr().out.startswith(f"Usage: riseml {group} ")


@pytest.mark.parametrize("words", ["", "train", "pool", "pool add", "server"])
def test_the_word_help_is_the_option(riseml: Riseml, capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert riseml("help", *words.split()).code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: {' '.join(['riseml', *words.split()])} ")
    assert riseml(*words.split(), "--help").code == 0
    assert capsys.readouterr().out == shown


def test_the_version(riseml: Riseml) -> None:
    """A repository has its commit where git answers; tests/real/package has the commit of a wheel."""
    shown = riseml("--version").out
    assert re.fullmatch(rf"riseml {re.escape(__version__)}( \(commit [0-9a-f]{{12}}\))?\n", shown), shown


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("stats", 2, "no such command"),
        ("status --nope", 2, "no such option"),
        ("status 4x", 2, "'4x' is not an experiment ID"),
        ("status 9", 3, "there is no experiment 9"),
        ("logs 9", 3, "there is no experiment 9"),
        ("logs 4 --tail -3", 2, "--tail"),
        ("logs 4 --tail many", 2, "--tail"),
        ("logs 4 -n many", 2, "'many' is not a whole number"),
        ("logs 4 -n -3", 2, "-3 is not in the range 0 to 10,000,000"),
        ("logs 4 -n", 2, "option '-n' requires an argument"),
        ("server logs -n -1", 2, "-1 is not in the range 0 to 10,000,000"),
        ("server logs -n many", 2, "'many' is not a whole number"),
        ("server logs -n", 2, "option '-n' requires an argument"),
        ("logs 4 --tail 99999999999", 2, "--tail"),
        ("logs 4 --since yesterday", 2, "--since 'yesterday' is not a time"),
        ("logs 4 --since 999999d", 2, "--since '999999d' is beyond the calendar"),
        ("logs 4 --since 9999-12-31T23:59:59-14:00", 2, "is beyond the calendar"),
        ("logs 4 --since ", 2, "--since '' is not a time"),
        ("status ", 2, "'' is not an experiment ID"),
        ("status 1.train.99999999999999999999", 2, "is not an experiment ID"),
        ("logs 4 --tail ", 2, "'' is not a whole number"),
        ("validate -f ", 2, "it is empty; give the path of a riseml.yml"),
        ("train -f ", 2, "it is empty"),
        ("init -f ", 2, "it is empty"),
        ("pool drain ", 2, "'' is not the name of a host"),
        ("pool resume a/b", 2, "'a/b' is not the name of a host"),
        ("pool trust ..", 2, "'..' is not the name of a host"),
        ("monitor ../etc", 2, "is not an experiment ID"),
        ("kill 9", 3, "there is no experiment 9"),
        ("kill 4;rm", 2, "is not an experiment ID"),
        ("train -p lr", 2, "-p 'lr' is not a pair"),
        ("train -p", 2, "`riseml train -h`"),
        ("monitor --gpu=3", 2, "`riseml monitor -h`"),
        ("server stop now", 2, "`riseml server stop -h`"),
        ("train --set =1", 2, "--set '=1' is not a pair"),
        ("train -f gone.yml", 3, "there is no file gone.yml"),
        ("validate -f gone.yml", 3, "there is no file gone.yml"),
        ("system test --mem x", 2, "--mem x is not an amount of memory"),
        ("system test --request-mem 63MiB", 2, "--mem 63MiB is not an amount of memory"),
        ("system test --rounds -1", 2, "--rounds"),
        ("system test --rounds many", 2, "--rounds"),
        ("system test --rounds 1001", 2, "--rounds"),
        ("system test --stress 0", 2, "--stress"),
        ("system test --stress x", 2, "--stress"),
        ("system test --stress 7200", 2, "--stress"),
        ("system test --request-cpus 0", 2, "--cpus"),
        ("system test --mem 1MiB", 2, "--mem 1MiB is not an amount of memory"),
        ("system test --mem -5GiB", 2, "--mem -5GiB is not an amount of memory"),
        ("system clean --foreign zz", 2, "--foreign 'zz' is not a server"),
        ("system clean --days 7", 2, "--days says how long --images are kept"),
        ("system clean --outputs --older 1s --project ", 2, "--project is empty"),
        ("system clean --outputs --project x --larger ", 2, "--larger is empty"),
        ("system clean --older ", 2, "--older, --larger and --project choose outputs"),
        (f"ls {'x' * 300}", 4, "File name too long"),
        (f"validate -f {'x' * 300}", 4, "File name too long"),
        (f"checkout {'x' * 300} there", 4, "File name too long"),
        ("results --where a\udcfcb=1", 2, "a\\xfcb=1 is not UTF-8 text"),
        ("--version status", 2, "--version stands alone"),
        ("keep x/y", 2, "'x/y' is not an experiment ID"),
        ("keep ", 2, "'' is not an experiment ID"),
        ("notebook ", 2, "'' is not an experiment ID"),
        ("train  --trials 2", 2, "'' is not an experiment ID"),
        ("notebook 9 --gpus 1 -p lr=1", 2, "--gpus and -p: a notebook that runs keeps what it has"),
        ("notebook 9 --idle-timeout 2h", 2, "--idle-timeout: a notebook that runs keeps"),
        ("show 4 --saved -w", 2, "-w shows changes"),
        ("status 4 -a", 2, "-a and --last are for the list"),
        ("status 4 -n 5", 2, "-a and --last are for the list"),
        ("pool add gpu1 ssh://gpu1 --cpus 0", 2, "--cpus 0 leaves no core for jobs"),
        ("validate -f /dev/null", 3, "/dev/null is not a regular file"),
        ("validate -f /proc", 3, "there is no riseml.yml in /proc"),
        ("train extra", 2, "an ID and --trials go together: they add trials to a set"),
        ("init", 4, "riseml.yml is already there"),
        ("init -f new.yml -n a/b", 2, "--project-name 'a/b' is not a project name"),
        ("init -f new.yml -n ", 2, "--project-name '' is not a project name"),
        ("init -f new.yml -n -x", 2, "--project-name '-x' is not a project name"),
        ("init --config-file ", 2, "it is empty"),
        ("train --config-file gone.yml", 3, "there is no file gone.yml"),
        ("status -n -1", 2, "-n"),
        ("server fly", 2, "no such command"),
        ("help fly", 2, "no such command 'fly'"),
        ("help pool fly", 2, "no such command 'fly'"),
        ("help train now", 2, "train has no command 'now'"),
        ("help pool add gpu1", 2, "pool add has no command 'gpu1'"),
        ("web --port 70000", 2, "70000 is not in the range 1 to 65535"),
        ("results -n -1", 2, "-1 is less than 0"),
        ("system test --cpus 0", 2, "0.0 is less than 0.01"),
        ("system test --cpus many", 2, "'many' is not a number"),
    ],
)
def test_wrong_input_is_one_clear_message(riseml: Riseml, words: str, code: int, said: str) -> None:
    result = riseml(*words.split(" "))
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("error: ")
    assert said in result.err
    assert len(result.err.splitlines()) <= 2


@pytest.mark.parametrize("verb", ["validate", "train", "logs", "kill"])
def test_outside_of_a_project_the_hint_names_the_next_step(riseml: Riseml, tmp_path: Path, verb: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = riseml(verb, where=empty)
    assert (result.code, result.out) == (3, "")
    assert f"there is no riseml.yml in {empty}" in result.err
    assert "hint: " in result.err


@pytest.mark.parametrize(
    ("words", "code", "name", "location"),
    [
        ("status 99", 3, "NotFound", None),
        ("status --fly", 2, "UsageError", None),
        ("--json --server", 2, "UsageError", None),
        ("help", 2, "UsageError", None),
        ("logs 1/2", 2, "UsageError", None),
        ("train", 2, "SpecError", ["riseml.yml", 5, 3, "train.rum"]),
        ("env -f riseml.yml", 2, "SpecError", ["riseml.yml", 5, 3, "train.rum"]),
    ],
)
def test_with_json_an_error_is_json_on_the_last_line_of_standard_error(
    riseml: Riseml, folder: Path, words: str, code: int, name: str, location: list[object] | None
) -> None:
    config = folder / "riseml.yml"
    config.write_text(config.read_text().replace("run:", "rum:"))
    result = riseml(*words.split(), "--json")
    error = json.loads(result.err.splitlines()[-1])["error"]
    assert (result.code, result.out, error["exit_code"], error["code"]) == (code, "", code, name)
    assert error["cause"] and (error["fix"] or name == "NotFound"), error
    assert (error["location"] and list(error["location"].values())) == location
    assert bool(error["problems"]) == (location is not None)
    plain = riseml(*[word for word in words.split() if word != "--json"])
    assert '{"error"' not in plain.err


@pytest.mark.parametrize(("number", "hint"), [(errno.ENOSPC, "free some space"), (errno.EACCES, "who may use it")])
def test_a_path_that_cannot_be_used_is_named(
    riseml: Riseml, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    def fail(*_: object) -> object:
        raise OSError(number, os.strerror(number), "/srv/x")

    monkeypatch.setattr("riseml.submission.config_source.find_project", fail)
    result = riseml("validate")
    assert (result.code, f"error: /srv/x: {os.strerror(number)}\n" in result.err, hint in result.err) == (4, True, True)


def test_users_see_no_traceback(riseml: Riseml, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise ZeroDivisionError("oops\nmore")

    monkeypatch.setattr("riseml.files.project.folder.find_project", fail)
    monkeypatch.setattr("riseml.submission.config_source.find_project", fail)
    result = riseml("validate")
    assert (result.code, result.err.splitlines()[0]) == (1, "error: riseml itself failed: ZeroDivisionError: oops")
    assert "--debug" in result.err
    with pytest.raises(ZeroDivisionError):
        riseml("validate", "--debug")


def test_only_the_named_command_is_built() -> None:
    """Typer builds every command that it is given, and to import them costs each command some milliseconds."""
    assert [one.name for one in make_app(["status", "4"]).registered_commands] == ["status"]
    chosen = make_app(["pool", "add"])
    assert ([one.name for one in chosen.registered_groups], chosen.registered_commands) == (["pool"], [])
    count = len(make_app([]).registered_commands)
    assert [len(make_app([verb]).registered_commands) for verb in ("statsu", "completion")] == [count] * 2
    listed = make_app(["-h"])
    assert (listed.registered_commands, listed.registered_groups) == ([], []), "its list is made of the table"


@pytest.mark.parametrize("words", ["--help", "status", "logs -h", "monitor --help", "train --help"])
def test_a_command_that_draws_nothing_does_not_import_rich(words: str, tmp_path: os.PathLike[str]) -> None:
    code = "import sys; from riseml.cli.main import execute; execute(sys.argv[1:]); print(*sys.modules)"
    home = os.fspath(tmp_path)
    environ = {**os.environ, "RISEML_HOME": home, "RISEML_SERVER": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()], env=environ, capture_output=True, text=True, check=True, cwd=home
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "riseml" in loaded
    assert loaded & {"rich", "pydantic", "pygments"} == set()


def test_everything_is_printed_before_the_end() -> None:
    text = "import sys\nprint('out', end='')\nsys.stderr.write('err')\nleave_process(3)\nprint('never')"
    assert run_program(text) == (3, "out", "err")


def test_what_was_registered_for_the_end_is_done() -> None:
    assert run_program("import atexit\natexit.register(print, 'done')\nleave_process(0)") == (0, "done\n", "")


def test_a_thread_that_has_to_end_is_waited_for() -> None:
    text = """
import threading
go = threading.Event()
threading.Thread(target=lambda: (go.wait(60), print("thread"))).start()
threading.Thread(target=lambda: (threading.main_thread().join(0.01), go.set()), daemon=True).start()
leave_process(1)
"""
    assert run_program(text) == (1, "thread\n", "")


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_missing_stream_is_not_an_error(closed: str) -> None:
    assert run_program(f"import sys\nsys.{closed} = None\nleave_process(4)")[0] == 4
