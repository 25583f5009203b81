"""The shell of a script: bash where it is there, and what is the same in both shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from riseml.job_programs.group_shell import wait_for_group
from riseml.job_programs.script_shell import BASH_COUNTERS, NO_BASH, make_shell_command
from tests.support.waiting import DEADLINE

WITH_BASH = {"PATH": os.defpath}
BASH_WORDS = """\
if [[ 1 == 1 ]]; then echo test; fi
for i in {1..3}; do echo -n $i; done; echo
words=(a "b c"); echo ${#words[@]}
cat <<< here
echo 'echo sourced' >file; source ./file
{ echo out; echo err >&2; } &> both
cat both"""
BASH_READS = "test\n123\n2\nhere\nsourced\nout\nerr\n"


@pytest.fixture
def without_bash(tmp_path: Path) -> dict[str, str]:
    """Make a PATH with some programs and without bash."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cat", "tee", "sh", "env", "head"):
        (folder / name).symlink_to(os.path.realpath(shutil.which(name) or ""))
    return {"PATH": str(folder)}


def run(command: tuple[str, ...], environ: dict[str, str], folder: Path) -> tuple[int, str, str]:
    """Run a command in a group of its own, as the init of a container does."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environ, cwd=folder, stdout=pipe, stderr=pipe, text=True, process_group=0
    ) as one:
        output, errors = one.communicate(timeout=DEADLINE)
    return one.returncode, output, errors


@pytest.mark.parametrize("shell", ["auto", "bash"])
def test_where_bash_is_there_words_of_bash_mean_what_their_writer_meant(shell: str, tmp_path: Path) -> None:
    """As a process, and in the group of a container."""
    command = make_shell_command(shell, BASH_WORDS)
    for one in (command, wait_for_group(command)):
        assert run(one, WITH_BASH, tmp_path) == (0, BASH_READS, "")


@pytest.mark.parametrize(("shell", "code"), [("auto", 3), ("bash", 3), ("sh", 0)])
def test_a_pipe_has_the_exit_code_of_the_command_that_failed(shell: str, code: int, tmp_path: Path) -> None:
    found = run(make_shell_command(shell, "sh -c 'echo one; exit 3' | tee log"), WITH_BASH, tmp_path)
    assert found == (code, "one\n", "")


def test_without_bash_sh_reads_the_lines_as_it_always_has(tmp_path: Path, without_bash: dict[str, str]) -> None:
    assert run(make_shell_command("auto", "echo a; false | tee log"), without_bash, tmp_path) == (0, "a\n", "")
    assert run(make_shell_command("auto", "echo a; false; echo b"), without_bash, tmp_path) == (1, "a\n", "")
    command = make_shell_command("auto", "echo a | cat", notice="riseml: careful")
    assert run(command, without_bash, tmp_path) == (0, "a\n", "riseml: careful\n")
    assert run(command, WITH_BASH, tmp_path) == (0, "a\n", "")


def test_a_missing_bash_that_was_asked_for_is_named(tmp_path: Path, without_bash: dict[str, str]) -> None:
    assert run(make_shell_command("bash", "echo a"), without_bash, tmp_path) == (127, "", f"{NO_BASH}\n")


def test_a_bash_elsewhere_on_the_path_is_found(tmp_path: Path, without_bash: dict[str, str]) -> None:
    (Path(without_bash["PATH"]) / "bash").symlink_to(os.path.realpath(shutil.which("bash") or ""))
    assert run(make_shell_command("bash", "[[ a == a ]] && echo yes"), without_bash, tmp_path) == (0, "yes\n", "")


@pytest.mark.parametrize("shell", ["auto", "bash", "sh"])
def test_the_shell_takes_the_place_of_the_process_that_found_it(shell: str, tmp_path: Path) -> None:
    """So a signal for the job reaches the shell of the script, and no further process runs beside it."""
    with subprocess.Popen(make_shell_command(shell, "echo $$"), env=WITH_BASH, stdout=subprocess.PIPE) as process:
        assert process.communicate(timeout=DEADLINE)[0] == f"{process.pid}\n".encode()


@pytest.mark.parametrize("shell", ["auto", "bash", "sh"])
def test_the_file_of_bash_env_changes_no_script_and_reaches_its_programs(shell: str, tmp_path: Path) -> None:
    profile = tmp_path / "it's a profile"
    profile.write_text("echo profile")
    environ = {**WITH_BASH, "BASH_ENV": str(profile)}
    script = 'echo "$BASH_ENV"; env | grep BASH_ENV; bash -c "echo child"'
    code, output, errors = run(make_shell_command(shell, script), environ, tmp_path)
    assert (code, output, errors) == (0, f"{profile}\nBASH_ENV={profile}\nprofile\nchild\n", "")


@pytest.mark.parametrize("shell", ["auto", "bash", "sh"])
def test_parameters_with_names_that_bash_counts_in_keep_their_values(shell: str, tmp_path: Path) -> None:
    kept = {name: f"{name} isn't '7'" for name in BASH_COUNTERS}
    names = sorted(BASH_COUNTERS)
    script = "\n".join(f'echo "${name}"; env | grep ^{name}=' for name in names)
    code, output, errors = run(make_shell_command(shell, script, variables=kept), {**WITH_BASH, **kept}, tmp_path)
    assert (code, errors) == (0, "")
    assert output.splitlines() == [text for name in names for text in (kept[name], f"{name}={kept[name]}")]


def test_a_job_reports_which_shell_it_has(tmp_path: Path, without_bash: dict[str, str]) -> None:
    command = make_shell_command("auto", "echo begin", announces=True)
    for environ, number in ((WITH_BASH, 2), (without_bash, 1)):
        report = f'\x1eriseml.report {{"riseml.shell": {number}}}\n'
        assert run(command, environ, tmp_path) == (0, f"{report}begin\n", "")
