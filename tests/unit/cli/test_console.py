"""The command as a process of its own: pipes, signals, what it imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import DEADLINE
from tests.unit.cli.fake_server import FakeServer, end, line, make_experiment, state

RISEML = (sys.executable, "-c", "from riseml.cli.main import run; run()")
HEAVY = (
    "riseml.server",
    "riseml.store",
    "riseml.executors",
    "riseml.control",
    "riseml.planning",
    "fastapi",
    "sqlalchemy",
)


def _environ(fake_server: FakeServer, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RISEML_", "DOCKER_"))}
    return kept | {"RISEML_HOME": str(fake_server.home)} | more


@contextmanager
def _start(words: list[str], folder: Path, environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*RISEML, *words],
        cwd=folder,
        env=environ,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _run(words: list[str], folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [*RISEML, *words]
    return subprocess.run(
        command,
        cwd=folder,
        env=environ,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=DEADLINE,
    )


def test_a_pipe_gets_plain_text(fake_server: FakeServer, folder: Path) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [state("FAILED", 1), line("\x1b[31mred\x1b[0m é 日本", 2), end()]
    result = _run(["logs", "4"], folder, _environ(fake_server))
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert "master   | red é 日本\n" in result.stdout


def test_variables_force_and_forbid_colours(fake_server: FakeServer, folder: Path) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [line("x", 1), end()]
    assert "\x1b[36mmaster" in _run(["logs", "4"], folder, _environ(fake_server, FORCE_COLOR="1")).stdout
    environ = _environ(fake_server, FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b" not in _run(["logs", "4"], folder, environ).stdout


def test_an_ascii_terminal_shows_other_characters_escaped(fake_server: FakeServer, folder: Path) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [line("é\ud800", 1), end()]
    result = _run(["logs", "4"], folder, _environ(fake_server, PYTHONIOENCODING="ascii", LC_ALL="C"))
    assert result.returncode == 0
    assert "\\xe9" in result.stdout


def test_ctrl_c_detaches(fake_server: FakeServer, folder: Path) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [line("hello", 1)]
    fake_server.hold = True
    with _start(["train"], folder, _environ(fake_server)) as process:
        assert process.stdout is not None
        while "hello" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert "Experiment 4 will continue in background. Type `riseml logs 4`" in said
    assert "Traceback" not in said


def test_a_closed_pipe_is_not_an_error(fake_server: FakeServer, folder: Path) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [line("x" * 1000, number) for number in range(2000)]
    fake_server.entries.append(end())
    with _start(["logs", "4"], folder, _environ(fake_server)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(DEADLINE) == 0


def test_a_closed_output_is_not_an_error(fake_server: FakeServer, folder: Path) -> None:
    command = " ".join(f"'{word}'" for word in (*RISEML, "status")) + " >&-"
    result = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=_environ(fake_server),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("words", [["--help"], ["status"], ["logs", "4"], ["validate"]], ids=" ".join)
def test_a_thin_client_imports_no_part_of_the_server(fake_server: FakeServer, folder: Path, words: list[str]) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [end()]
    modules = _list_modules(fake_server, folder, words)
    assert [name for name in modules if name.startswith((*HEAVY, "docker"))] == []
    if words != ["validate"]:
        assert not {"jsonschema", "yaml", "rich", "packaging.version", "pygments", "hashlib", "tempfile"} & modules
    if words in (["--help"], ["validate"]):
        assert "httpx" not in modules
    else:
        assert [name for name in modules if name.startswith(("riseml.analysis", "riseml.spec.config"))] == []


def test_training_a_file_again_imports_neither_its_parser_nor_git(fake_server: FakeServer, folder: Path) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [end()]
    assert "yaml" in _list_modules(fake_server, folder, ["train", "-d"])
    modules = _list_modules(fake_server, folder, ["train", "-d"])
    absent = {
        "yaml",
        "decimal",
        "tempfile",
        "riseml.spec.config",
        "riseml.job_programs",
        "riseml.files.project.git_state",
    }
    assert modules & absent == set()


def _list_modules(fake_server: FakeServer, folder: Path, words: list[str]) -> set[str]:
    """Run a command that succeeds; return the modules that it has imported."""
    program = (
        "import sys, json\nfrom riseml.cli.main import execute\n"
        f"code = execute({words!r})\nprint(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=_environ(fake_server),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    code, modules = json.loads(result.stderr.splitlines()[-1])
    assert code == 0
    return set(modules)


@pytest.mark.parametrize("words", ["status", "logs 4", "logs 4 --json", "train", "--version", "status -h", "-h"])
def test_a_full_output_is_one_clear_error(fake_server: FakeServer, folder: Path, words: str) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.entries = [line("hello", 1), end()]
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*RISEML, *words.split()],
            cwd=folder,
            env=_environ(fake_server),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=DEADLINE,
        )
    assert result.returncode == 4
    said = "the output cannot be written: No space left on device"
    if "--json" in words:
        assert json.loads(result.stderr)["error"]["cause"] == said
    else:
        assert result.stderr.startswith(f"error: {said}\nhint: ")
        assert len(result.stderr.splitlines()) == 2


def test_a_full_standard_error_does_not_change_the_exit_code(fake_server: FakeServer, folder: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [*RISEML, "status", "7"]
        environ = _environ(fake_server)
        result = subprocess.run(command, cwd=folder, env=environ, stderr=full, check=False, timeout=DEADLINE)
    assert result.returncode == 3


@pytest.mark.parametrize("words", ["init", "init -f other.yml", "train", "validate"])
def test_a_removed_working_directory_is_an_error(fake_server: FakeServer, tmp_path: Path, words: str) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    program = f"import os; os.rmdir({str(place)!r}); from riseml.cli.main import run; run()"
    command = [sys.executable, "-c", program, *words.split()]
    environ = _environ(fake_server, PWD=str(place))
    result = subprocess.run(
        command, cwd=place, env=environ, capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert result.returncode in (3, 4)
    assert result.stderr.startswith("error: ")
    assert not place.exists()
    assert not Path("/riseml.yml").exists()
    assert not Path("/other.yml").exists()
