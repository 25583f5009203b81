"""Jobs as processes: ends, trees and supervisors."""

from __future__ import annotations

import json
import subprocess
import tarfile
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from riseml.base.errors import EngineError, StoreError
from riseml.control.actions import Signal
from riseml.executors.base import HostSetup
from riseml.executors.process.job_folders import RESTARTED, ProcessJobFolders
from riseml.executors.supervision import supervisor
from riseml.files.archives.project_files import TarFiles
from riseml.model import LogCursor
from tests.real.process.conftest import SERVER, Bench, key, message, wait
from tests.support.archives import pack
from tests.support.hosts import kill
from tests.support.waiting import DEADLINE

CHILDREN = 50
FAMILY = f"""
import os, sys, time
for number in range({CHILDREN}):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:  # a grandchild in a session of its own, whose parent has ended
            os.environ.clear()
            signal = __import__("signal")
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with open(sys.argv[1], "ab", buffering=0) as file:
                file.write(b"%d\\n" % os.getpid())
            time.sleep(600)
        os._exit(0)
sys.exit(int(sys.argv[2])) if len(sys.argv) > 2 else time.sleep(600)
"""


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("kill -SEGV $$", 139),
        ("no-such-command", 127),
        ("exec /", 126),
        ("echo one; false; echo two", 1),
    ],
)
def test_exit_codes_are_those_of_a_shell(bench: Bench, script: str, code: int) -> None:
    found = bench.wait_end(bench.start(script))
    assert found.exit_code == code
    assert found.started
    assert found.started_at is not None
    assert found.finished_at is not None
    assert found.started_at <= found.finished_at


def family(bench: Bench, tmp_path: Path) -> tuple[str, Path]:
    """Return a command that starts many grandchildren, and the file where they write their pids."""
    (tmp_path / "family.py").write_text(FAMILY)
    return f"python {tmp_path / 'family.py'} {tmp_path / 'pids'}", tmp_path / "pids"


def pids(path: Path) -> list[int]:
    """Return the pids once all grandchildren run."""
    return wait(
        "every grandchild runs",
        lambda: found if path.exists() and len(found := [*map(int, path.read_text().split())]) == CHILDREN else None,
    )


def living(members: list[int]) -> list[int]:
    """Return the processes that have not ended; a zombie has ended."""
    found: list[int] = []
    for pid in members:
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found


def test_a_killed_job_leaves_none_of_fifty_grandchildren(bench: Bench, tmp_path: Path) -> None:
    command, path = family(bench, tmp_path)
    job = bench.start(command)
    members = pids(path)
    bench.executor.stop(job, Signal.KILL)
    assert bench.wait_end(job).exit_code == 137
    assert living(members) == []
    assert bench.left() == []


def test_a_job_that_ends_by_itself_leaves_none_of_fifty_grandchildren(bench: Bench, tmp_path: Path) -> None:
    command, path = family(bench, tmp_path)
    job = bench.start(f"{command} 3")
    assert bench.wait_end(job).exit_code == 3
    members = [int(pid) for pid in path.read_text().split()] if path.exists() else []
    assert living(members) == []
    assert bench.left() == []


def test_removing_a_running_job_ends_its_tree(bench: Bench, tmp_path: Path) -> None:
    command, path = family(bench, tmp_path)
    job = bench.start(command)
    members = pids(path)
    bench.executor.remove(job)
    assert living(members) == []
    assert bench.left() == []
    assert bench.look(job) is None
    bench.executor.remove(job)
    bench.executor.release(job.experiment)
    assert list(bench.executor.observe(frozenset()).networks) == []


def test_a_stopped_supervisor_does_not_save_its_job(bench: Bench) -> None:
    job = bench.start("sleep 600")
    supervisor = bench.machine.supervisor(bench.machine.find("train"))
    assert supervisor is not None
    supervisor.suspend()
    bench.executor.remove(job)
    assert bench.left() == []


def test_term_reaches_the_whole_tree(bench: Bench) -> None:
    child = "trap 'echo child; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    job = bench.start(f"trap 'wait; echo parent; exit 5' TERM; sh -c \"{child}\" & wait")
    bench.wait_output(job, b"ready")
    bench.executor.stop(job, Signal.TERM)
    assert bench.wait_end(job).exit_code == 5
    assert {b"ready", b"child", b"parent"} <= set(bench.output(job).split())


def test_a_repeated_start_runs_the_job_once(bench: Bench, tmp_path: Path) -> None:
    launch = bench.launch(f"echo once >> {tmp_path / 'count'}; sleep 600")
    bench.executor.prepare(HostSetup(1))
    threads = [threading.Thread(target=bench.executor.start, args=(launch, None)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Bench(bench.home).executor.start(launch, None)
    wait("it runs", lambda: (tmp_path / "count").exists() and (tmp_path / "count").read_text())
    bench.executor.stop(launch.key, Signal.KILL)
    bench.wait_end(launch.key)
    bench.executor.start(launch, None)
    assert (tmp_path / "count").read_text() == "once\n"
    assert bench.left() == []


def test_an_interrupted_start_is_started_again(bench: Bench) -> None:
    bench.executor.prepare(HostSetup(1))
    (bench.machine.root / "1" / "train-a1" / "code.half").mkdir(parents=True)
    assert bench.look(key()) is None
    assert bench.wait_end(bench.start("exit 0")).exit_code == 0


def test_a_command_that_cannot_be_executed_did_not_start(bench: Bench) -> None:
    launch = bench.launch("")
    order = bench.executor._make_order(launch, bench.machine.root / "1" / "train-a1")
    bench.executor.prepare(HostSetup(1))
    (bench.machine.root / "1" / "train-a1" / "code").mkdir(parents=True)
    order["command"] = ["/no/such/program"]
    word = subprocess.run(
        supervisor.make_command("train"),
        input=json.dumps(order).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    assert word.stdout == b"started"
    found = bench.look(key())
    assert found is not None
    assert (found.started, found.error) == (False, "No such file or directory: /no/such/program")


def test_the_job_of_a_killed_supervisor_ends(bench: Bench, tmp_path: Path) -> None:
    job = bench.start("(setsid sleep 600 &); (setsid sleep 600 &); echo ready; sleep 600")
    bench.wait_output(job, b"ready")
    supervisor = bench.machine.supervisor(bench.machine.find("train"))
    assert supervisor is not None
    kill(supervisor.pid)
    found = bench.wait_end(job)
    assert (found.started, found.exit_code, found.error) == (True, 137, "")
    assert bench.left() == []
    assert bench.output(job) == b"ready\n"
    assert bench.look(job) == found, "the end is written"


def test_the_end_of_a_killed_supervisor_is_a_change(bench: Bench) -> None:
    job = bench.start("sleep 600")
    assert bench.look(job) is not None
    news = bench.executor.changes()
    heard = threading.Event()

    def listen() -> None:
        next(news)
        heard.set()

    threading.Thread(target=listen, daemon=True).start()
    kill(int(str(bench.machine.state("train")["pid"])))
    assert heard.wait(DEADLINE)


def test_the_end_of_a_job_is_a_change(bench: Bench, tmp_path: Path) -> None:
    bench.start(f"until [ -e {tmp_path / 'go'} ]; do sleep 0.05; done")
    news = bench.executor.changes()
    heard = threading.Event()

    def listen() -> None:
        for _ in news:
            if bench.machine.state("train").get("exit_code") == 0:
                heard.set()
                return

    threading.Thread(target=listen, daemon=True).start()
    (tmp_path / "go").touch()
    assert heard.wait(DEADLINE)


@pytest.mark.parametrize("field", ["start", "boot"])
def test_a_process_with_a_recycled_pid_gets_no_signal(bench: Bench, field: str) -> None:
    """The pid of the record belongs to a living process that is not the supervisor."""
    with subprocess.Popen(["sleep", "600"]) as innocent:
        own = supervisor.read_stat(innocent.pid)
        assert own is not None
        state = {
            "server": SERVER,
            "marker": f"{SERVER}/1/train/1",
            "pid": innocent.pid,
            "start": own[2],
            "boot": supervisor.read_boot_id(),
            "started_at": 1.0,
        }
        state[field] = {"start": own[2] - 1, "boot": "another"}[field]
        folder = bench.machine.root / "1" / "train-a1"
        folder.mkdir(parents=True)
        (folder / "state.json").write_text(json.dumps(state))
        for signal_ in Signal:
            bench.executor.stop(key(), signal_)
        found = bench.look(key())
        assert found is not None
        assert (found.exit_code, found.error) == (137, RESTARTED if field == "boot" else "")
        bench.executor.remove(key())
        assert innocent.poll() is None
        innocent.kill()


def test_the_incomplete_record_of_a_power_cut_is_removed(bench: Bench) -> None:
    folder = bench.machine.root / "1" / "train-a1"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text("")
    assert Bench(bench.home).look(key()) is None
    assert not folder.exists()


def test_another_servers_jobs_in_this_home_are_ended(bench: Bench) -> None:
    bench.start("sleep 600")
    ProcessJobFolders(bench.machine.root, "another").sweep_leftovers()
    assert bench.left() == []
    assert bench.look(key()) is None


def test_an_interrupted_removal_is_finished(bench: Bench) -> None:
    bench.start("sleep 600")
    place = bench.machine.root / ".trash" / "half"
    place.mkdir()
    (bench.machine.root / "1").rename(place / "1")
    ProcessJobFolders(bench.machine.root, SERVER).sweep_leftovers()
    assert bench.left() == []
    assert list((bench.machine.root / ".trash").iterdir()) == []


def test_folders_that_a_job_made_read_only_are_removed(bench: Bench) -> None:
    job = bench.start("mkdir -p a/b; touch a/b/c; ln -s /etc a/b/link; chmod 500 a/b a")
    bench.wait_end(job)
    bench.executor.remove(job)
    assert list((bench.machine.root / "1").iterdir()) == []
    assert Path("/etc/passwd").exists()


def test_each_job_has_a_copy_of_the_project(bench: Bench, tmp_path: Path) -> None:
    code = tmp_path / "code.tar"
    code.write_bytes(pack({"note.txt": "first", "run.sh": "#!/bin/sh\ncat note.txt"}))
    one = bench.start("echo changed > note.txt; ./run.sh", "master", TarFiles(code))
    bench.wait_end(one)
    two = bench.start("./run.sh", "ps.1", TarFiles(code))
    bench.wait_end(two)
    assert bench.output(one) == b"changed\n"
    assert bench.output(two) == b"first"
    with tarfile.open(code) as tar:
        assert tar.getmember("note.txt").size == 5


def test_a_job_is_in_its_environment_and_sees_little_of_the_server(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "x")
    job = bench.start("echo $VIRTUAL_ENV; command -v python; echo $TOKEN$SECRET_OF_THE_SERVER; pwd", TOKEN="t")
    bench.wait_end(job)
    folder, python, token, workdir = bench.output(job).decode().split()
    assert python == f"{folder}/bin/python"
    assert Path(folder).parent == bench.home / "environments"
    assert token == "t"
    assert Path(workdir).parent.name == "train-a1"
    assert not any("t\n" in path.read_text() for path in bench.machine.find("train").glob("*.json"))


def test_the_kernel_kills_jobs_before_supervisors(bench: Bench) -> None:
    job = bench.start("cat /proc/self/oom_score_adj; cat /proc/$PPID/oom_score_adj")
    bench.wait_end(job)
    mine, supervisors = map(int, bench.output(job).split())
    assert mine == max(500, supervisors)
    assert supervisors == int(Path("/proc/self/oom_score_adj").read_text())


def test_a_removed_environment_fails_the_start(bench: Bench) -> None:
    (bench.home / "environments").unlink()
    with pytest.raises(EngineError) as error:
        bench.start("exit 0")
    assert "environment of the experiment was removed" in message(error)


def test_samples_measure_the_whole_tree(bench: Bench) -> None:
    busy = "python -c 'data = bytearray(80 << 20)\nprint(1, flush=True)\nwhile True: pass'"
    job = bench.start(f"{busy} & {busy} & wait")
    wait("both are busy", lambda: bench.output(job) == b"1\n1\n")
    samples = bench.executor.sample(job)
    sample = wait("what they use is seen", lambda: found if (found := next(samples)).cpu > 1 else None)
    assert sample.mem_used > 2 * (80 << 20)
    assert sample.mem_total >= sample.mem_used
    bench.executor.stop(job, Signal.KILL)
    list(samples)  # the end of the job ends them


def test_a_follower_gets_every_line_and_the_end(bench: Bench) -> None:
    job = bench.start("i=0; while [ $i -lt 500 ]; do echo line $i; echo err $i >&2; i=$((i+1)); done; printf end")
    frames = [frame for batch in bench.executor.read_log(job, LogCursor(), follow=True) for frame in batch]
    assert b"".join(frame.data for frame in frames if frame.stream == 2).count(b"\n") == 500
    out = b"".join(frame.data for frame in frames if frame.stream == 1)
    assert out == b"".join(b"line %d\n" % number for number in range(500)) + b"end"


def test_a_job_has_default_signals_and_three_descriptors(bench: Bench) -> None:
    script = "import os, signal; print(signal.getsignal(signal.SIGHUP).name, len(os.listdir('/proc/self/fd')))"
    job = bench.start(f'python -c "{script}"')
    bench.wait_end(job)
    assert bench.output(job) == b"SIG_DFL 4\n"


def test_a_job_whose_server_has_lost_its_claim_does_not_start(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise StoreError("another server has taken over")

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="another server has taken over"):
        patch.setattr(bench.executor, "_check_start", refuse)
        bench.start("echo one")
    assert bench.look(key("train")) is None
    bench.wait_end(bench.start("echo one"))
    assert bench.output(key("train")) == b"one\n"
