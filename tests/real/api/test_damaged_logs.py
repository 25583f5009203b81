"""A log that was lost, zeroed or cannot be read: one line where lines are missing, or one sentence; no traceback."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import run_riseml
from tests.support.rig import Rig, single
from tests.support.waiting import DEADLINE


def find_log(rig: Rig) -> Path:
    """Return the file of the newest log, when the server has closed it."""
    return max((rig.home / "logs").glob("*.log"), key=lambda path: int(path.stem))


def test_a_damaged_log_is_a_line_or_a_sentence_for_every_reader(shared_rig: Rig) -> None:
    rig = shared_rig
    name = rig.submit(single("echo one; echo two; exit 3"))["id"]
    rig.wait_closed(name)
    path = find_log(rig)
    whole, ends = path.read_bytes(), path.with_suffix(".ends").read_bytes()

    def read(*, damaged: bytes | None) -> str:
        path.unlink()
        path.with_suffix(".ends").write_bytes(ends)
        if damaged is not None:
            path.write_bytes(damaged)
        (line,) = rig.lines(name, follow=False)
        assert line.removeprefix(f"{name}.train ") in [
            found["text"] for found in rig.get(f"/v1/experiments/{name}/lines")["lines"]
        ]
        done = run_riseml(["logs", name], rig.home, rig.environ(), DEADLINE)
        assert line.partition(" ")[2] in done.stdout
        return line

    assert "the log was lost, or never arrived" in read(damaged=None)
    assert f"the last {len(whole):,} bytes of this log are lost" in read(damaged=bytes(len(whole)))
    assert f"the last {len(whole):,} bytes of this log are lost" in read(damaged=b"")
    path.unlink()
    path.mkdir()
    with rig.client() as client:
        for route in ("logs", "lines"):
            refused = client.get(f"/v1/experiments/{name}/{route}")
            assert refused.status_code == 500
            assert f"{path} cannot be read: Is a directory" in refused.json()["error"]["message"]
    for words in (["logs", name], ["status", name], ["show", name], ["results"], ["explain", name]):
        done = run_riseml(words, rig.home, rig.environ(), DEADLINE)
        assert "Traceback" not in done.stdout + done.stderr, words
    done = run_riseml(["logs", name], rig.home, rig.environ(), DEADLINE)
    assert (done.returncode, "cannot be read: Is a directory" in done.stderr) == (1, True), done.stderr
    path.rmdir()
    path.write_bytes(whole)
    assert rig.lines(name, follow=False)[-2:] == [f"{name}.train one", f"{name}.train two"]
    assert "Traceback" not in (rig.home / "server.log").read_text()
