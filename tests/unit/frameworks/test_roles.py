"""Roles of the user's own: what each job finds, as whole values and as laws for every gang; the wait of `after`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import hostname
from riseml.base.states import JobDuty
from riseml.model import Experiment
from riseml.planning.launch import bind_job, job_addresses, job_lines, job_variables
from riseml.spec.config.loader import load_config
from riseml.spec.config.types import Resources, RoleEnd, RoleSection, Spec, Train
from tests.unit.frameworks.layouts import gang, make_experiment, on_loopback, script

FILE = """
project: toaster
train:
  image: python:3.11
  run: python member.py
  resources: {cpus: 1, mem: 1GiB}
  finish_grace: 3s
  roles:
    actor: {count: 2, run: "python actor.py --to {{learner_address}} --as {{role_index}}", after: [learner]}
    learner: {ends: decides, resources: {mem: 2GiB, labels: {disk: fast}}}
    replay-buffer: {ends: serves, after: {learner: 6379}}
"""
CLUSTER = {
    "actor": ["actor-1:2222", "actor-2:2222"],
    "learner": ["learner:2222"],
    "replay-buffer": ["replay-buffer:2222"],
}
GOLDEN = {
    "learner": {
        **{"ROLE": "learner", "ROLE_INDEX": "0", "ROLE_COUNT": "1", "ROLE_HOST": "learner", "ROLE_PORT": "2222"},
        **{"ROLE_ADDRESS": "learner:2222", "ROLE_ADDRESSES": "learner:2222"},
        **{"WORKER_INDEX": "0", "TOTAL_WORKERS": "3"},
    },
    "actor.1": {
        **{"ROLE": "actor", "ROLE_INDEX": "0", "ROLE_COUNT": "2", "ROLE_HOST": "actor-1", "ROLE_PORT": "2222"},
        **{"ROLE_ADDRESS": "actor-1:2222", "ROLE_ADDRESSES": "actor-1:2222,actor-2:2222"},
        **{"WORKER_INDEX": "1", "TOTAL_WORKERS": "3"},
    },
    "actor.2": {
        **{"ROLE": "actor", "ROLE_INDEX": "1", "ROLE_COUNT": "2", "ROLE_HOST": "actor-2", "ROLE_PORT": "2222"},
        **{"ROLE_ADDRESS": "actor-2:2222", "ROLE_ADDRESSES": "actor-1:2222,actor-2:2222"},
        **{"WORKER_INDEX": "2", "TOTAL_WORKERS": "3"},
    },
    "replay-buffer": {
        **{"ROLE": "replay-buffer", "ROLE_INDEX": "0", "ROLE_COUNT": "1"},
        **{"ROLE_HOST": "replay-buffer", "ROLE_PORT": "2222", "TOTAL_WORKERS": "3"},
        **{"ROLE_ADDRESS": "replay-buffer:2222", "ROLE_ADDRESSES": "replay-buffer:2222"},
    },
}
FOR_ALL = {
    **{"ACTOR_ADDRESS": "actor-1:2222", "ACTOR_ADDRESSES": "actor-1:2222,actor-2:2222"},
    **{"ACTOR_HOST": "actor-1", "ACTOR_PORT": "2222"},
    **{"LEARNER_ADDRESS": "learner:2222", "LEARNER_ADDRESSES": "learner:2222"},
    **{"LEARNER_HOST": "learner", "LEARNER_PORT": "2222"},
    **{"REPLAY_BUFFER_ADDRESS": "replay-buffer:2222", "REPLAY_BUFFER_ADDRESSES": "replay-buffer:2222"},
    **{"REPLAY_BUFFER_HOST": "replay-buffer", "REPLAY_BUFFER_PORT": "2222"},
}
RISEML = {"OUTPUT_DIR", "DATA_DIR", "PROJECT_NAME", "EXPERIMENT_ID", "RISEML_JOB", "RISEML_ATTEMPT"}
COMMON = RISEML | {"PYTHONUNBUFFERED", "HOME", "USER", "LOGNAME", "TINI_KILL_PROCESS_GROUP", "CLUSTER_SPEC"}


def variables(experiment: Experiment) -> dict[str, dict[str, str]]:
    return {job.name: dict(job_variables(bind_job(experiment, job))) for job in gang(experiment)}


def test_each_job_finds_itself_and_the_others() -> None:
    experiment = make_experiment(load_config(FILE))
    found = variables(experiment)
    own = {name: {key: value for key, value in view.items() if key not in COMMON} for name, view in found.items()}
    assert own == {name: {**FOR_ALL, **golden} for name, golden in GOLDEN.items()}
    for name, golden in GOLDEN.items():
        task = {"type": golden["ROLE"], "index": int(golden["ROLE_INDEX"])}
        assert json.loads(found[name]["CLUSTER_SPEC"]) == {"cluster": CLUSTER, "task": task}


def test_roles_become_jobs_with_their_own_parts_resources_and_commands() -> None:
    experiment = make_experiment(load_config(FILE))
    assert [(job.name, job.part, job.resources.mem) for job in experiment.plan.jobs] == [
        ("learner", JobDuty.DECIDES, 2048),
        ("actor.1", JobDuty.HELPS, 1024),
        ("actor.2", JobDuty.HELPS, 1024),
        ("replay-buffer", JobDuty.SERVES, 1024),
    ]
    assert experiment.plan.jobs[0].resources.labels == (("disk", "fast"),)
    assert [job.grace for job in experiment.plan.jobs] == [0.0, 3.0, 3.0, 0.0]
    shown = {str(job.name): job_lines(bind_job(experiment, job)) for job in gang(experiment)}
    assert shown["learner"] == shown["replay-buffer"] == ("python member.py",)
    assert shown["actor.2"] == ("python actor.py --to learner:2222 --as 1",)


@pytest.mark.parametrize(
    ("roles", "ends"),
    [
        ("{a: {count: 1}, b: {count: 1}}", ["decides", "helps"]),
        ("{a: {count: 1}, b: {ends: decides}}", ["helps", "decides"]),
        ("{a: {ends: serves}, b: {count: 1}, c: {count: 1}}", ["serves", "decides", "helps"]),
        ("{a: {ends: decides}, b: {ends: decides}}", ["decides", "decides"]),
    ],
)
def test_the_first_role_decides_unless_the_file_says_otherwise(roles: str, ends: list[str]) -> None:
    spec = load_config(f"project: x\ntrain: {{image: a, run: r, roles: {roles}}}\n")
    assert [role.ends.value for role in spec.train.roles] == ends


def test_a_count_of_one_is_numbered_and_no_count_is_not() -> None:
    experiment = make_experiment(
        load_config("project: x\ntrain: {image: a, run: r, roles: {a: {count: 1}, b: {run: s}}}")
    )
    assert [job.name for job in gang(experiment)] == ["a.1", "b"]


@pytest.mark.parametrize("empty", ["{}", "", "~"])
def test_a_role_may_take_everything_from_train(empty: str) -> None:
    roles = f"\n    a: {empty}\n    b: {{count: 2}}\n"
    spec = load_config(f"project: x\ntrain:\n  image: a\n  run: r\n  resources: {{cpus: 2}}\n  roles:{roles}")
    assert [(role.name, role.run, role.count, role.resources.cpus) for role in spec.train.roles] == [
        ("a", ("r",), None, 2.0),
        ("b", ("r",), 2, 2.0),
    ]


def test_the_index_of_a_worker_leads_to_its_own_address() -> None:
    """The roles that decide are the first workers, wherever the file has them."""
    experiment = make_experiment(
        load_config(
            "project: x\ntrain: {image: a, run: '{{worker_index}} {{worker_hosts}} {{ps_hosts}}', roles: "
            "{actor: {count: 2}, store: {count: 2, ends: serves}, learner: {ends: decides}}}"
        )
    )
    workers, servers = "learner:2222,actor-1:2222,actor-2:2222", "store-1:2222,store-2:2222"
    assert {str(job.name): job_lines(bind_job(experiment, job)) for job in gang(experiment)} == {
        "learner": (f"0 {workers} {servers}",),
        "actor.1": (f"1 {workers} {servers}",),
        "actor.2": (f"2 {workers} {servers}",),
        "store.1": (f"'' {workers} {servers}",),
        "store.2": (f"'' {workers} {servers}",),
    }


NAMES = st.from_regex(r"[a-z]([a-z-]{0,8}[a-z])?", fullmatch=True).filter(lambda name: name != "role")
ROLES = st.lists(
    st.tuples(NAMES, st.none() | st.integers(1, 12), st.sampled_from(RoleEnd)),
    min_size=1,
    max_size=6,
    unique_by=lambda role: role[0].replace("-", "_"),
)


@given(ROLES)
def test_all_jobs_agree(rows: list[tuple[str, int | None, RoleEnd]]) -> None:
    sections = tuple(RoleSection(name, ("r",), count, Resources(), ends) for name, count, ends in rows)
    experiment = make_experiment(Spec("t", Train((), image="x", roles=sections)))
    for placed in (experiment, on_loopback(experiment)):
        check_agreement(placed)
        check_hosts(placed)


def check_agreement(experiment: Experiment) -> None:
    """One cluster for all; each address is in it once, and each job finds its own at its task, and its port by name."""
    views, addresses = variables(experiment), job_addresses(experiment)
    clusters = [json.loads(view["CLUSTER_SPEC"])["cluster"] for view in views.values()]
    assert all(cluster == clusters[0] for cluster in clusters)
    assert sorted(one for group in clusters[0].values() for one in group) == sorted(addresses.values())
    tasks = set()
    for name, view in views.items():
        task = json.loads(view["CLUSTER_SPEC"])["task"]
        tasks.add((task["type"], task["index"]))
        mine = clusters[0][task["type"]]
        assert mine[task["index"]] == view["ROLE_ADDRESS"] == f"{view['ROLE_HOST']}:{view['ROLE_PORT']}"
        assert view["ROLE_ADDRESS"] == addresses[next(job.name for job in gang(experiment) if job.name == name)]
        assert (view["ROLE"], view["ROLE_INDEX"], view["ROLE_COUNT"]) == (
            task["type"],
            str(task["index"]),
            str(len(mine)),
        )
        check_peers(view, clusters[0])
    assert len(tasks) == len(views)
    workers = [view["WORKER_INDEX"] for view in views.values() if "WORKER_INDEX" in view]
    assert sorted(map(int, workers)) == list(range(len(workers)))
    assert {view["TOTAL_WORKERS"] for view in views.values()} == {str(len(workers))}


def check_hosts(experiment: Experiment) -> None:
    """Each worker finds its own address at its index, and the servers are all others."""
    addresses = job_addresses(experiment)
    for job in gang(experiment):
        values = bind_job(experiment, job).binding.placeholders
        workers, servers = (values[key].split(",") if values[key] else [] for key in ("worker_hosts", "ps_hosts"))
        assert sorted([*workers, *servers]) == sorted(addresses.values())
        assert values["num_workers"] == str(len(workers))
        if values["worker_index"]:
            assert workers[int(values["worker_index"])] == addresses[job.name]
        else:
            assert addresses[job.name] in servers


def check_peers(view: Mapping[str, str], cluster: Mapping[str, list[str]]) -> None:
    for role, addresses in cluster.items():
        name = role.upper().replace("-", "_")
        assert view[f"{name}_ADDRESSES"] == ",".join(addresses)
        assert view[f"{name}_ADDRESS"] == addresses[0] == f"{view[f'{name}_HOST']}:{view[f'{name}_PORT']}"


def test_job_names_and_host_names_are_unique() -> None:
    spec = load_config("project: x\ntrain: {image: a, run: r, roles: {a: {count: 2}, a-b: {count: 2}, ab: {run: s}}}")
    names = [job.name for job in gang(make_experiment(spec))]
    assert len({hostname(name) for name in names}) == len(names) == 5


def test_only_a_role_with_after_waits() -> None:
    experiment = make_experiment(load_config(FILE))
    assert script(experiment, "learner") == "python member.py"
    assert script(experiment, "actor.1").endswith("\npython actor.py --to learner:2222 --as 0")
    assert 'echo "$LEARNER_ADDRESSES"' in script(experiment, "actor.1")
    assert 'riseml_wait "${riseml_host%\\]}" 6379 learner' in script(experiment, "replay-buffer")


def test_a_long_wait_is_reported_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`idle_timeout` takes every line for a sign of life: a wait that says it again and again would never end."""
    tries = iter(range(2000))

    def connect(*_: object) -> socket.socket:
        if next(tries) < 1500:
            raise ConnectionRefusedError(111, "Connection refused")
        return socket.socket()

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["-c", "learner", "2222"])
    words = shlex.split(script(make_experiment(load_config(WAITING)), "b"), comments=False)
    exec(words[words.index("-c") + 1])
    assert capsys.readouterr().out == "riseml: still waiting for learner:2222: [Errno 111] Connection refused\n"
    assert next(tries) == 1501


WAITING = """
project: t
train:
  image: a
  run: [echo first, echo second]
  roles:
    a: {count: 2}
    b: {after: [a]}
"""


@pytest.fixture
def listeners() -> Iterator[list[socket.socket]]:
    found = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    yield found
    for one in found:
        one.close()


@pytest.mark.parametrize("tool", ["python3", "bash", ""])
def test_the_wait_ends_when_every_job_answers(tool: str, listeners: list[socket.socket], tmp_path: Path) -> None:
    """With each of the programs that an image may have, and with none of them."""
    for name in [*([tool] if tool else []), "tr", "sleep"]:
        (tmp_path / name).symlink_to(
            os.path.realpath(sys.executable if name == "python3" else shutil.which(name) or "")
        )
    ports = [one.getsockname()[1] for one in listeners]
    peers = ",".join(f"127.0.0.1:{port}" for port in ports)
    done = subprocess.run(
        ["/bin/sh", "-ec", script(make_experiment(load_config(WAITING)), "b")],
        env={"PATH": str(tmp_path), "A_ADDRESSES": peers},
        capture_output=True,
        text=True,
        check=False,
    )
    waits = [f"riseml: waiting until a answers at 127.0.0.1:{port}" for port in ports]
    if not tool:
        assert (done.returncode, done.stdout.splitlines()) == (127, waits[:1])
        assert done.stderr == "riseml: `after` needs python3 or bash, and this image has neither\n"
    else:
        assert (done.returncode, done.stderr, done.stdout.splitlines()) == (
            0,
            "",
            [*waits, "riseml: everything that this job waited for answers", "first", "second"],
        )
        for one in listeners:
            one.settimeout(0)
            one.accept()[0].close()
