"""Every command, in process, with the fake server."""

from __future__ import annotations

import errno
import json
import os
import resource
from pathlib import Path

import pytest

from riseml import __version__
from riseml.cli.main import make_app
from riseml.frameworks import registry
from riseml.frameworks.plain import Plain
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import HOSTS, FakeServer

VERBS = [
    "init",
    "validate",
    "train",
    "status",
    "show",
    "logs",
    "monitor",
    "kill",
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


def test_the_help_of_train_says_its_exit_codes(riseml: Riseml, capsys: pytest.CaptureFixture[str]) -> None:
    """`test_the_exit_code_says_how_the_experiment_ended` proves them."""
    riseml("train", "-h")
    shown = " ".join(capsys.readouterr().out.split())
    assert "The exit code is 0 when it finished, 1 when it failed, 130 when it was killed." in shown


def test_no_argument_shows_the_help(riseml: Riseml, capsys: pytest.CaptureFixture[str]) -> None:
    assert riseml().code == 0
    assert "Exit codes: 0 done" in capsys.readouterr().out


@pytest.mark.parametrize("group", ["server", "system"])
def test_a_group_alone_shows_its_help(riseml: Riseml, capsys: pytest.CaptureFixture[str], group: str) -> None:
    assert riseml(group).code == 0
    assert capsys.readouterr().out.startswith(f"Usage: riseml {group} ")


def test_the_version(riseml: Riseml) -> None:
    assert riseml("--version").out == f"riseml {__version__}\n"


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
        ("server fly", 2, "no such command"),
    ],
)
def test_wrong_input_is_one_clear_message(riseml: Riseml, words: str, code: int, said: str) -> None:
    result = riseml(*words.split(" "))
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("error: ")
    assert said in result.err
    assert len(result.err.splitlines()) <= 2


@pytest.mark.parametrize(
    "url", ["toaster", "http://", "http://:80", "http://a b", "http://[::1", "http://host:99999", "ftp://host"]
)
def test_a_server_address_that_is_not_a_url_is_refused(riseml: Riseml, url: str) -> None:
    result = riseml("status", environ={"RISEML_SERVER": url})
    assert (result.code, result.out) == (2, "")
    assert "RISEML_SERVER is " in result.err
    assert "https://riseml.example.org:8443" in result.err


@pytest.mark.parametrize("verb", ["validate", "train", "logs", "kill"])
def test_outside_of_a_project_the_hint_names_the_next_step(riseml: Riseml, tmp_path: Path, verb: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = riseml(verb, where=empty)
    assert (result.code, result.out) == (3, "")
    assert f"there is no riseml.yml in {empty}" in result.err
    assert "hint: " in result.err


# --- init, validate ---


def test_init_writes_a_file_that_is_valid(riseml: Riseml, tmp_path: Path) -> None:
    place = tmp_path / "My toaster!"
    place.mkdir()
    result = riseml("init", where=place)
    assert (result.code, result.err) == (0, "")
    said = (
        "Wrote riseml.yml for project My-toaster. `riseml train` runs it as it is; then put your program into `run`.\n"
    )
    assert result.out == said
    valid = riseml("validate", where=place)
    assert (valid.code, valid.err) == (0, "")


def test_init_leaves_no_part_of_a_file_on_a_full_disk(riseml: Riseml, tmp_path: Path) -> None:
    place = tmp_path / "toaster"
    place.mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        result = riseml("init", where=place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (result.code, result.out) == (4, "")
    assert result.err.startswith("error: cannot write riseml.yml: ")
    assert list(place.iterdir()) == []


def test_validate_says_that_train_would_refuse_a_framework(
    riseml: Riseml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "FRAMEWORKS", (Plain(),))
    train = "framework: tensorflow, tensorflow: {horovod: {workers: 2}}, image: x, run: y"
    (tmp_path / "riseml.yml").write_text(f"project: p\ntrain: {{{train}}}\n")
    result = riseml("validate", where=tmp_path)
    assert result.code == 0
    assert "cannot run the framework 'horovod'" in result.err


def test_validate_describes_a_valid_file(riseml: Riseml) -> None:
    result = riseml("validate")
    assert result.code == 0
    assert result.out.startswith("riseml.yml is valid: project ai-toaster, 1 job (train)")
    assert json.loads(riseml("validate", "--json").out) == []


def test_validate_lists_the_jobs_of_every_combination(riseml: Riseml, folder: Path) -> None:
    roles = "{learner: {count: 1}, actor: {count: '{{n}}', resources: {gpus: '{{g}}'}}}"
    (folder / "riseml.yml").write_text(
        f"project: p\ntrain: {{image: x, run: a, roles: {roles}, parameters: {{n: [1, 2], g: 1}}}}\n"
    )
    assert riseml("validate").out.splitlines() == [
        "riseml.yml is valid: project p, 2 experiments, 1 at the same time",
        "  n=1: 2 jobs (learner.1, actor.1), 2 cpus, 2 GiB, 1 gpus",
        "  n=2: 3 jobs (learner.1, actor.1, actor.2), 3 cpus, 3 GiB, 2 gpus",
    ]


def test_validate_shows_every_problem_with_its_line(riseml: Riseml, folder: Path) -> None:
    (folder / "riseml.yml").write_text("project: a\ntrain:\n  image: x\n  rum: python x.py\n  concurrency: many\n")
    result = riseml("validate")
    assert (result.code, result.out) == (2, "")
    assert "    4 |   rum: python x.py\n      |   ^\n" in result.err
    assert "riseml.yml:5:" in result.err
    shapes = riseml("validate", "--json")
    assert shapes.code == 2
    assert {"file", "line", "column", "path", "problem", "hint", "severity"} == set(json.loads(shapes.out)[0])


def test_validate_needs_no_server(riseml: Riseml, fake_server: FakeServer) -> None:
    riseml("validate")
    assert fake_server.asked == []


# --- train ---


def test_the_server_is_shown(riseml: Riseml) -> None:
    assert f"Server: riseml {__version__}, process 7" in riseml("server", "status").out
    assert json.loads(riseml("server", "status", "--json").out)["pid"] == 7


def test_server_status_and_stop_start_no_server(riseml: Riseml, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    result = riseml("server", "status", environ={"RISEML_HOME": home})
    assert result.code == 5
    assert "no riseml server runs" in result.err
    assert riseml("server", "stop", environ={"RISEML_HOME": home}).out == f"No riseml server runs for {home}.\n"
    assert not (tmp_path / "home").exists()


def test_the_system_is_shown(riseml: Riseml) -> None:
    short, long = riseml("system", "info").out, riseml("system", "info", "-l").out
    assert short.splitlines()[1].split() == ["local", "up", "0.5/2", "1.0/16.0", "GiB", "0/0"]
    assert "Docker 20.10.24" in long
    assert json.loads(riseml("system", "info", "--json").out)["hosts"][0]["name"] == "local"


def test_a_team_server_that_does_not_answer_is_named(riseml: Riseml) -> None:
    result = riseml("status", environ={"RISEML_SERVER": "http://127.0.0.1:1"})
    assert result.code == 5
    assert "http://127.0.0.1:1" in result.err
    assert "RISEML_SERVER" in result.err


@pytest.mark.parametrize(("number", "hint"), [(errno.ENOSPC, "free some space"), (errno.EACCES, "who may use it")])
def test_a_path_that_cannot_be_used_is_named(
    riseml: Riseml, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    def fail(*_: object) -> object:
        raise OSError(number, os.strerror(number), "/srv/x")

    monkeypatch.setattr("riseml.cli.config_source.find_project", fail)
    result = riseml("validate")
    assert (result.code, f"error: /srv/x: {os.strerror(number)}\n" in result.err, hint in result.err) == (4, True, True)


def test_users_see_no_traceback(riseml: Riseml, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise ZeroDivisionError("oops\nmore")

    monkeypatch.setattr("riseml.files.project.folder.find_project", fail)
    monkeypatch.setattr("riseml.cli.config_source.find_project", fail)
    result = riseml("validate")
    assert (result.code, result.err.splitlines()[0]) == (1, "error: riseml itself failed: ZeroDivisionError: oops")
    assert "--debug" in result.err
    with pytest.raises(ZeroDivisionError):
        riseml("validate", "--debug")


def test_a_silent_and_drained_host_shows_both_states(riseml: Riseml, fake_server: FakeServer) -> None:
    silent = {**HOSTS[0], "state": "silent", "drained": True, "message": "no way there", "mem_mib": 0}
    fake_server.answers["GET /system"] = (200, {"server": fake_server.server, "hosts": [silent]})
    result = riseml("system", "info")
    assert "silent, drained" in result.out
    assert result.err == "warning: local: no way there\n"


ADDED = {
    "name": "gpu1",
    "state": "added",
    "file": "/home/me/.riseml/pool.yml",
    "entry": "  - name: gpu1\n    url: ssh://me@gpu1\n",
    "keys": None,
    "engine": "Docker 26.1.5",
    "cpus": 64.0,
    "mem_mib": 262_144,
    "gpus": 0,
    "findings": [{"host": "gpu1", "topic": "clock", "outcome": "ok", "message": "within 0 s of this server's clock"}],
    "members": [{"host": "gpu1", "membership": "joined"}],
}
KEYS = {
    "host": "gpu1",
    "known_hosts": "/home/me/.riseml/known_hosts",
    "keys": [{"kind": "ED25519", "fingerprint": "SHA256:abc", "pinned": "no"}],
}


def test_pool_add_says_what_it_found_and_did(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /pool/hosts"] = (200, ADDED)
    shown = riseml("pool", "add", "gpu1", "ssh://me@gpu1").out
    assert "gpu1: Docker 26.1.5, 64 cores, 256.0 GiB of memory." in shown
    assert "gpu1 joined the swarm." in shown
    assert "gpu1 is in /home/me/.riseml/pool.yml and takes jobs:\n  - name: gpu1\n    url: ssh://me@gpu1\n" in shown


def test_pool_add_refuses_an_unknown_key_without_a_terminal(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /pool/hosts"] = (200, {**ADDED, "state": "untrusted", "keys": KEYS})
    for options in ((), ("--json",)):
        refused = riseml("pool", "add", "gpu1", "ssh://me@gpu1", *options)
        assert (refused.code, refused.out) == (4, "")
        assert "the host key of gpu1 is not pinned, and no user can compare it here: nothing was added" in refused.err
        assert "`--host-key SHA256:abc`" in refused.err


def test_pool_remove_says_what_stays(riseml: Riseml, fake_server: FakeServer) -> None:
    removed = {
        "name": "gpu1",
        "removed": True,
        "file": "/home/me/.riseml/pool.yml",
        "jobs": ["4.train"],
        "answers": True,
        "containers": 1,
        "networks": 0,
        "environments": 3,
        "size": 3 * 2**30,
        "swarm": "manager",
        "departure": "left",
        "output": "/mnt/\x1b[2Joutput",
        "shared_output": False,
        "known_hosts": "/home/me/.riseml/known_hosts",
    }
    fake_server.answers["POST /pool/hosts/gpu1/remove"] = (200, removed)
    shown = riseml("pool", "remove", "gpu1", "--force").out
    assert "1 job there counts as lost soon." in shown
    assert "3 environments of riseml, 3" in shown
    assert "It has left the swarm." in shown
    assert "\x1b" not in shown


RECOVERY = {
    "leader": "gpu1",
    "keeps_swarm": True,
    "lost": ["gpu2", "gpu3"],
    "breaks": ["4", "anna.7"],
    "done": False,
    "members": [],
}


def test_pool_recover_says_what_it_costs_before_a_yes(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /pool/recover"] = (200, RECOVERY)
    for options in ((), ("--json",)):
        refused = riseml("pool", "recover", *options)
        assert (refused.code, refused.out) == (4, "")
        assert "the jobs of these experiments lose the network between them: 4, anna.7" in refused.err
        assert "managers that do not answer (gpu2, gpu3) lose their votes" in refused.err
        assert "`--yes` agrees" in refused.err
    assert all("dry_run=true" in one for one in fake_server.asked if "recover" in one)
    done = [{"host": "gpu1", "membership": "recovered"}, {"host": "gpu2", "membership": "silent"}]
    fake_server.answers["POST /pool/recover"] = (200, {**RECOVERY, "done": True, "members": done})
    shown = riseml("pool", "recover", "--yes").out
    assert "gpu1  manages the swarm alone, until others answer" in shown
    fake_server.answers["POST /pool/recover"] = (200, {**RECOVERY, "keeps_swarm": False})
    assert "the members leave the swarm and make a new one" in riseml("pool", "recover").err


def test_only_the_named_command_is_built() -> None:
    """Typer builds every command that it is given, and to import them costs each command some milliseconds."""
    assert [one.name for one in make_app(["status", "4"]).registered_commands] == ["status"]
    chosen = make_app(["pool", "add"])
    assert ([one.name for one in chosen.registered_groups], chosen.registered_commands) == (["pool"], [])
    count = len(make_app([]).registered_commands)
    assert [len(make_app([verb]).registered_commands) for verb in ("statsu", "completion")] == [count] * 2
    listed = make_app(["-h"])
    assert (len(listed.registered_commands), listed.registered_groups) == (count + 3, []), "names and summaries alone"


def test_import_writes_a_riseml_yml_over_no_other_one(riseml: Riseml, folder: Path) -> None:
    assert riseml("import", "nothing.yaml").code == 3
    job = {"replicas": 1, "template": {"spec": {"containers": [{"image": "x", "command": ["true"]}]}}}
    manifest = {"kind": "PyTorchJob", "metadata": {"name": "x"}, "spec": {"pytorchReplicaSpecs": {"Master": job}}}
    (folder / "job.yaml").write_text(json.dumps(manifest))
    assert riseml("import", "job.yaml").code == 4, "there is a riseml.yml"
    made = riseml("import", "job.yaml", "-f", "new.yml")
    assert (made.code, made.out) == (0, "Wrote new.yml for project x. `riseml train` runs it.\n"), made.err
    assert riseml("validate", "-f", "new.yml").code == 0
