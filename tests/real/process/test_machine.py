"""What this machine gives, which executor is used, and whole experiments without Docker."""

from __future__ import annotations

import _ctypes
import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from riseml.base.consent import record_processes
from riseml.base.errors import UsageError
from riseml.base.names import LOCAL_HOST, THIS_MACHINE, HostName, JobName
from riseml.base.settings import ExecutorName, Settings, read_settings
from riseml.base.states import JobDuty
from riseml.control.placement.addresses import PORTS
from riseml.executors.kinds import HostOpener
from riseml.executors.pool import HostPool
from riseml.executors.this_machine import machine
from riseml.model import Experiment, Image, Job, Owner, Plan, World
from riseml.server.hosts import choose_executor
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.mode import record_executor
from riseml.spec.config.types import Resources
from tests.support.hosts import Machine, kill
from tests.support.rig import Rig, filter_entries, gang, single

NVML = """
from types import SimpleNamespace
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetUUID(handle): return f"GPU-{handle}"
def nvmlDeviceGetName(handle): return "Tesla T4"
def nvmlDeviceGetSerial(handle): raise NVMLError("not supported")
def nvmlSystemGetDriverVersion(): return "535.129.03"
def nvmlDeviceGetPciInfo(handle): return SimpleNamespace(busId=f"00000000:0{handle}:00.0")
def nvmlDeviceGetMemoryInfo(handle): return SimpleNamespace(used=2**30, total=15 * 2**30)
def nvmlDeviceGetUtilizationRates(handle): return SimpleNamespace(gpu=87)
def nvmlDeviceGetTemperature(handle, sensor): return 68
def nvmlDeviceGetPowerUsage(handle): return 61500
def nvmlDeviceGetEnforcedPowerLimit(handle): return 70000
def nvmlDeviceGetMigMode(handle): raise NVMLError("not supported")
"""


@pytest.fixture
def gpus(tmp_path: Path) -> str:
    """A folder for PYTHONPATH and LD_LIBRARY_PATH with a driver, and with an NVML that knows two GPUs."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "pynvml.py").write_text(NVML)
    (tmp_path / "modules" / "libnvidia-ml.so.1").symlink_to(_ctypes.__file__)  # a library that can be opened
    return str(tmp_path / "modules")


def test_a_job_gets_its_gpus_and_no_others(tmp_path: Path, gpus: str) -> None:
    show = 'echo "[$CUDA_VISIBLE_DEVICES]"'
    with Rig(tmp_path / "home", None, PYTHONPATH=gpus, LD_LIBRARY_PATH=gpus) as rig:
        rig.submit(single(show, resources={"cpus": 0.1, "mem": "64MiB", "gpus": 2}))
        rig.submit(single(show))
        assert rig.lines("1.train") == ["1.train [0,1]"]
        assert rig.lines("2.train") == ["2.train []"]
        rig.wait_closed("2")
        rig.submit(single("sleep 600", resources={"cpus": 0.1, "mem": "64MiB", "gpus": 1, "gpu": "t4"}))
        rig.wait_state("3", "RUNNING")
        (first, second) = rig.get("/v1/gpus")["gpus"]
        assert (first["name"], first["percent"], first["power"], first["jobs"]) == ("Tesla T4", 87, 61.5, ["3.train"])
        assert (second["bus"], second["jobs"]) == ("00000000:01:00.0", [])
        assert rig.get("/v1/gpus", of="3")["gpus"] == [first]
        other = {"resources": {"cpus": 0.1, "mem": "64MiB", "gpus": 1, "gpu": "a100"}}
        refused = rig.post("/v1/experiments", rig.submission(single("true", **other)))
        assert refused.status_code == 403
        assert "2 gpus (Tesla T4 (15360 MiB))" in refused.json()["error"]["message"]
        assert rig.post("/v1/experiments/3/kill").status_code == 200
        rig.wait_closed("3")


def first_port(server: str) -> int:
    """Return the port that the first job of a server would get."""
    return min(frozenset(PORTS) - machine.find_busy_ports(server))


def test_ports_in_use_are_busy() -> None:
    server = f"server {os.getpid()}"  # two runs at once try different ports
    free = first_port(server)
    with socket.socket() as door:
        door.bind(("127.0.0.1", free))
        door.listen()
        assert free in machine.find_busy_ports(server)
    with socket.socket(socket.AF_INET6) as door:
        door.bind(("::1", free))
        door.listen()
        assert free in machine.find_busy_ports(server)


def test_servers_begin_in_different_parts_of_the_range() -> None:
    assert len({first_port(f"server {number}") for number in range(50)}) > 5


def test_two_experiments_at_once_never_share_a_port(process_rig: Rig) -> None:
    rig = process_rig
    for _ in range(2):
        rig.submit(
            gang({job: 'echo "$TF_CONFIG"; exec sleep 600' for job in ("master", "worker.1", "worker.2", "ps.1")})
        )
    used: list[set[str]] = []
    for name in ("1", "2"):
        rig.wait_state(name, "RUNNING")
        (text,) = rig.wait("TF_CONFIG is printed", partial(rig.lines, f"{name}.master", follow=False))
        cluster = json.loads(text.partition(" ")[2])["cluster"]
        used.append({address for addresses in cluster.values() for address in addresses})
    assert len(used[0]) == len(used[1]) == 4
    assert used[0].isdisjoint(used[1])
    for name in ("1", "2"):
        rig.post(f"/v1/experiments/{name}/kill")
    for name in ("1", "2"):
        rig.wait_closed(name)


def test_a_full_machine_makes_experiments_wait(process_rig: Rig) -> None:
    rig = process_rig
    (host,) = rig.get("/v1/system")["hosts"]
    rig.submit(single("sleep 600", resources={"cpus": host["cpus"], "mem": "64MiB"}))
    rig.wait_state("1", "RUNNING")
    rig.submit(single("true", resources={"cpus": 1, "mem": "64MiB"}))
    found = rig.wait("it waits for room", lambda: e if (e := rig.experiment("2"))["reason"] == "NEXT" else None)
    assert found["state"] == "PENDING"
    rig.post("/v1/experiments/1/kill")
    assert rig.wait_closed("2")["state"] == "FINISHED"


def test_a_killed_supervisor_fails_its_experiment(process_rig: Rig) -> None:
    rig, host = process_rig, process_rig.host
    assert isinstance(host, Machine), "a rig without Docker"
    rig.submit(gang({"worker.1": "(setsid sleep 600 &); exec sleep 600"}, stop_grace=1))
    rig.wait_state("1", "RUNNING")
    kill(int(str(host.state("worker.1")["pid"])))
    found = rig.wait_closed("1")
    assert (found["state"], found["reason"], found["cause"]) == ("FAILED", "SIGNAL", "worker.1")
    assert "137 (SIGKILL)" in found["message"]
    assert host.processes(rig.server_id()) == []


def test_a_restart_of_the_machine_is_reported_and_retried(process_rig: Rig) -> None:
    rig, host = process_rig, process_rig.host
    assert isinstance(host, Machine), "a rig without Docker"
    rig.submit(single('[ "$RISEML_ATTEMPT" = 2 ] || exec sleep 600', retry={"max": 1, "on": ["host-lost"]}))
    rig.wait_state("1", "RUNNING")
    rig.kill()
    supervisor = host.supervisor(host.find("train"))
    assert supervisor is not None
    supervisor.kill()
    path = host.find("train") / "state.json"
    path.write_text(json.dumps({**host.state("train"), "boot": "the one before"}))
    rig.start()
    found = rig.wait_closed("1")
    assert found["state"] == "FINISHED"
    assert {job["attempt"] for job in found["jobs"]} == {1, 2}
    (entry,) = [entry for entry in filter_entries(rig.logs("1"), "state") if entry["reason"] == "RETRY"]
    assert entry["message"] == "the machine was restarted while it ran"


def test_placeholders_and_variables_name_real_folders(process_rig: Rig) -> None:
    rig = process_rig
    (rig.home / "data").mkdir()
    (rig.home / "data" / "digits").write_text("1 2 3")
    rig.submit(single('cat {{data_dir}}/digits "$DATA_DIR/digits" > {{output_dir}}/copy; echo $HOME'))
    found = rig.wait_closed("1")
    assert Path(found["output"], "copy").read_text() == "1 2 31 2 3"
    assert rig.lines("1.train") == [f"1.train {Path.home()}"]


def test_editing_while_training_changes_nothing(process_rig: Rig) -> None:
    """A job may change its copy; another attempt and another experiment see what was submitted."""
    rig = process_rig
    config = single(["cat note.txt; echo edited > note.txt", '[ "$RISEML_ATTEMPT" = 2 ]'], retry=1)
    for name in ("1", "2"):
        rig.submit(config, {"note.txt": "first\n"})
        rig.wait_closed(name)
        lines = [line for line in rig.lines(f"{name}.train") if " riseml: " not in line]  # they name note.txt
        assert lines == [f"{name}.train first"] * 2


def experiment_on(host: HostName | None) -> World:
    """Return a world with an experiment that is placed on a host; None: it has no place yet."""
    job = Job(JobName("train"), JobDuty.DECIDES, Resources(1, 1, 0), host=host)
    plan = Plan("p", Image("plain"), (), "plain")
    return World((Experiment(1, Owner("ann", 1, 1), 1, "p", plan, (job,), datetime(2026, 1, 1, tzinfo=UTC)),))


NOTHING = World(())


@pytest.mark.parametrize(
    ("executor", "world", "agreed", "chosen"),
    [
        ("docker", NOTHING, True, "docker"),
        ("process", NOTHING, False, "process"),
        (None, NOTHING, True, "process"),
        (None, NOTHING, False, "docker"),
        (None, experiment_on(LOCAL_HOST), True, "docker"),
        (None, experiment_on(THIS_MACHINE), False, "process"),
        (None, experiment_on(HostName("gpu1")), True, "docker"),  # of a pool.yml that is gone
        ("docker", experiment_on(THIS_MACHINE), True, "docker"),
    ],
)
def test_the_server_chooses_an_executor_without_an_engine(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    executor: ExecutorName | None,
    world: World,
    chosen: str,
    *,
    agreed: bool,
) -> None:
    nowhere = f"unix://{tmp_path}/none.sock"
    monkeypatch.setattr(choose_executor, "DEFAULT_ENGINE", nowhere)
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", engine=nowhere, executor=executor)
    if agreed:
        record_processes(tmp_path)
    found = choose_on_machine(settings, world)
    falls = executor is None and world == NOTHING
    assert found.name == chosen
    assert bool(found.note) == (falls and agreed)
    assert found.undecided == (falls and not agreed)
    named = replace(settings, engine=f"{nowhere}2")
    assert not falls or choose_on_machine(named, world).name == "docker"


def choose_on_machine(settings: Settings, world: World) -> choose_executor.LocalChoice:
    return choose_executor.choose_executor(settings, world, HostOpener(settings, "server"))


@pytest.mark.parametrize("accepted", ["docker", "process"])
def test_what_waits_runs_as_it_was_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, accepted: str) -> None:
    nowhere = f"unix://{tmp_path}/none.sock"
    monkeypatch.setattr(choose_executor, "DEFAULT_ENGINE", nowhere)
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", engine=nowhere)
    if accepted == "docker":
        record_processes(tmp_path)
    record_executor(tmp_path, accepted)
    assert choose_on_machine(settings, experiment_on(None)).name == accepted
    chosen = replace(settings, executor="process")
    if accepted == "docker":
        with pytest.raises(UsageError, match="accepted for containers"):
            choose_executor.check_waiting(chosen, experiment_on(None))
    else:
        choose_executor.check_waiting(chosen, experiment_on(None))
    choose_executor.check_waiting(chosen, NOTHING)
    other = "process" if accepted == "docker" else "docker"
    assert choose_on_machine(settings, NOTHING).name == other


def test_processes_that_the_user_chooses_later_take_over_a_server_that_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pool.yml that goes away leaves a queue that was accepted for containers: it does not fall to processes."""
    nowhere = f"unix://{tmp_path}/none.sock"
    monkeypatch.setattr(choose_executor, "DEFAULT_ENGINE", nowhere)
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", engine=nowhere)
    settings.pool_file.write_text("hosts: [{name: gpu1, url: 'ssh://gpu1'}]")
    hosts = HostSet(settings, "server", HostPool((), 1.0, lambda *_: None))
    hosts.open_hosts(NOTHING)
    assert (hosts.executor_name, hosts.find_missing_engine()) == ("docker", "")
    settings.pool_file.unlink()
    assert [one.name for one in hosts.refresh(NOTHING)] == [LOCAL_HOST]
    assert (hosts.executor_name, hosts.is_outdated()) == ("docker", False)
    assert hosts.find_missing_engine() == f"{nowhere}: No such file or directory"
    record_processes(tmp_path)
    assert hosts.is_outdated()
    assert [one.name for one in hosts.refresh(NOTHING)] == [THIS_MACHINE]
    assert (hosts.executor_name, hosts.find_missing_engine(), hosts.is_outdated()) == ("process", "", False)
    assert hosts.notice.startswith(f"No Docker Engine answers here ({nowhere}: No such file")
    hosts.close()


def test_the_server_chooses_docker_with_an_engine(
    engine_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(choose_executor, "DEFAULT_ENGINE", engine_url)
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", engine=engine_url)
    assert choose_on_machine(settings, NOTHING).name == "docker"


def test_an_unknown_executor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="RISEML_EXECUTOR is 'podman'"):
        read_settings({"RISEML_HOME": str(tmp_path), "RISEML_EXECUTOR": "podman"})


def test_the_server_reports_its_executor(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig("home")
    rig.start()
    assert rig.get("/v1/server")["executor"] == ("docker" if rig.host.contained else "process")
