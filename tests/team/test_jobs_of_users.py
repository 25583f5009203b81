"""Sentences 14, 15, 17, 18, 19 and 25 of what a server for a team proves: users of one server against each other."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from riseml.base.errors import Refused
from riseml.base.settings import Settings
from riseml.executors.docker import labels
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.manifest import digest_manifest
from riseml.model import Caller
from riseml.server.app import make_application
from riseml.server.hosts.checkup import check_pool
from tests.support.archives import END, craft_member, find_digest, pack
from tests.support.ports import find_free_port
from tests.support.rig import BASE
from tests.support.stores import make_new_store
from tests.team.user_scene import (
    ANN,
    BOSS,
    EVA,
    NOBODY,
    PAUL,
    ROOT,
    UserScene,
    describe,
    frame,
    frame_list,
    make_submission,
    open_user_scene,
)

IMAGES = "images: ['python:*', 'riseml-test/*']\n"
SECRET = "the idea of paul"
SETUID = (
    'cp /bin/dash "$OUTPUT_DIR/sh"; chmod 6755 "$OUTPUT_DIR/sh"; id -u; id -g; id -G; echo mine > "$OUTPUT_DIR/x"; '
    "cat /data/* /data/*/* 2>/dev/null || :; ls /data; "
    "for folder in /data /data/user /data/team; do touch $folder/y 2>/dev/null && echo wrote; done; :"
)
VISION = "id -u; ls /data; cat /data/project/vision/e; ls /data/project"


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that every user of this machine may enter."""
    with tempfile.TemporaryDirectory(prefix="riseml-team-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserScene]:
    """A server without an engine: it answers, and starts nothing."""
    with open_user_scene(tmp_path_factory.mktemp("quiet") / "home", None, IMAGES) as scene:
        yield scene


def say(answer: httpx.Response) -> str:
    """The answer, with the digest that it repeats left out."""
    return f"{answer.status_code} {answer.text}"


def test_sentence_14_the_digest_of_a_project_is_computed_and_what_is_stored_stays(quiet: UserScene) -> None:
    archive = pack({"a": "one"})
    other = pack({"a": "two"})
    digest = find_digest(archive)
    refused = quiet.ask(PAUL, "PUT", f"/snapshots/{digest}", content=other)
    assert refused.status_code == 400, refused.text
    assert quiet.ask(PAUL, "HEAD", f"/snapshots/{digest}").status_code == 404
    assert quiet.ask(PAUL, "PUT", f"/snapshots/{digest}", content=archive).status_code == 201
    stored = quiet.ask(PAUL, "GET", f"/snapshots/{digest}").content
    assert quiet.ask(PAUL, "PUT", f"/snapshots/{digest}", content=other).status_code == 400
    assert quiet.ask(ANN, "PUT", f"/snapshots/{digest}", content=other).status_code == 400
    entries = (ArchiveEntry("a", EntryKind.FILE, 3, content="0" * 64),)
    listed = quiet.ask(PAUL, "PUT", f"/snapshots/{digest}/manifest", content=frame_list(entries))
    assert listed.status_code == 400
    assert "were sent as" in listed.text
    assert quiet.ask(PAUL, "GET", f"/snapshots/{digest}").content == stored


def test_sentence_15_a_projects_files_are_usable_by_who_sent_them_or_its_project_alone(quiet: UserScene) -> None:
    config = describe("alone", "true")
    files = {"riseml.yml": config, "idea.txt": SECRET}
    digest = quiet.send_project(PAUL, files)
    absent = "0" * 64
    submission = make_submission(config, digest)
    for method, path, body in (
        ("HEAD", "/snapshots/{}", None),
        ("GET", "/snapshots/{}", None),
        ("POST", "/plans", {**submission, "snapshot": "{}"}),
        ("POST", "/experiments", {**submission, "snapshot": "{}"}),
        ("POST", "/experiments/check", {**submission, "snapshot": "{}"}),
        ("POST", "/reruns/check", {"code": "{}"}),
    ):
        answers = []
        for one in (digest, absent):
            filled = None if body is None else json.loads(json.dumps(body).replace('"{}"', f'"{one}"'))
            answer = quiet.ask(ANN, method, path.replace("{}", one), filled)
            answers.append(say(answer).replace(one[:12], "DIGEST"))
        assert answers[0] == answers[1], f"{method} {path}"
    assert quiet.ask(PAUL, "HEAD", f"/snapshots/{digest}").status_code == 200


@pytest.mark.parametrize("text", [SECRET, "nobody has written this"])
def test_sentence_15_what_the_server_has_of_others_counts_as_missing(quiet: UserScene, text: str) -> None:
    quiet.send_project(PAUL, {"riseml.yml": "x", "idea.txt": SECRET})
    archive = pack({"idea.txt": text})
    content = hashlib.sha256(text.encode()).hexdigest()
    for size in (1, len(text)):  # a wrong size tells no more than a right one
        entries = (ArchiveEntry("idea.txt", EntryKind.FILE, size, content=content),)
        digest = digest_manifest(entries)
        answer = quiet.ask(ANN, "PUT", f"/snapshots/{digest}/manifest", content=frame_list(entries))
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"missing": [content]}
    digest = find_digest(archive)
    wrong = quiet.ask(ANN, "POST", f"/snapshots/{digest}/contents", content=frame(b"a guess"))
    assert wrong.json() == {"missing": [content]}
    assert quiet.ask(ANN, "HEAD", f"/snapshots/{digest}").status_code == 404
    right = quiet.ask(ANN, "POST", f"/snapshots/{digest}/contents", content=frame(text.encode()))
    assert right.json() == {"missing": []}
    assert quiet.ask(ANN, "HEAD", f"/snapshots/{digest}").status_code == 200


def test_sentence_16_an_archive_is_written_anew_from_checked_fields(quiet: UserScene) -> None:
    """`tests/exploits/test_archive_readers.py` compares three readers of thousands of hostile archives."""
    odd = {"mode": b"0006755\0", "uid": b"0000000\0", "gid": b"0000000\0", "uname": b"root", "gname": b"root"}
    archive = craft_member(b"tool", b"#!/bin/sh\n", **odd) + END
    digest = find_digest(archive)
    assert quiet.ask(PAUL, "PUT", f"/snapshots/{digest}", content=archive).status_code == 201
    with tarfile.open(fileobj=io.BytesIO(quiet.ask(PAUL, "GET", f"/snapshots/{digest}").content)) as tar:
        (member,) = tar.getmembers()
    assert (member.name, member.mode, member.uname, member.gname) == ("tool", 0o755, "", "")


@pytest.mark.parametrize(("caller", "words"), [(NOBODY, "nobody has said under which uid"), (ROOT, "is not for users")])
def test_sentence_13_jobs_run_for_users_with_ids_of_people(quiet: UserScene, caller: Caller, words: str) -> None:
    answer = quiet.submit(caller, describe("alone", "true"))
    assert answer.status_code == 403, answer.text
    assert words in answer.json()["error"]["message"]
    assert "server.yml" in answer.json()["error"]["hint"]


@pytest.mark.parametrize(
    ("settings", "allow"),
    [
        ({"executor": "process"}, "process"),
        ({"engine": "tcp://127.0.0.1:2375"}, "plaintext"),
        ({"build_network": "host"}, "host-network"),
        ({"executor": "slurm"}, ""),
    ],
)
def test_sentence_19_a_teams_server_does_not_start_with_what_its_admin_has_not_allowed(
    settings: dict[str, str], allow: str, tmp_path: Path
) -> None:
    (tmp_path / "riseml.db").write_bytes(make_new_store())
    made = Settings(tmp_path, tmp_path / "output", tmp_path / "data", **settings)  # type: ignore[arg-type]  # of the test
    (tmp_path / "server.yml").write_text(f"listen: 127.0.0.1:{find_free_port()}\n")
    with pytest.raises(Refused) as refused:
        make_application(made, threading.Event())
    assert (f"allow: [{allow}]" if allow else "`riseml --server local train --executor slurm`") in (
        refused.value.hint or ""
    )


def test_sentence_19_a_submission_does_not_choose_processes(quiet: UserScene) -> None:
    config = describe("alone", "true")
    digest = quiet.send_project(PAUL, {"riseml.yml": config})
    answer = quiet.ask(PAUL, "POST", "/experiments", {**make_submission(config, digest), "executor": "process"})
    assert answer.status_code == 403, answer.text
    assert "the admin chooses what runs jobs" in answer.json()["error"]["hint"]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("busybox:1.36", "not among those that this server's admin allows"),
        ("evil.example.org/python:3.12", "not among those"),
        ("4f2a", "is an ID, or the beginning of one"),
        ("riseml/code:4f2a", "one that riseml makes"),
    ],
)
def test_sentence_25_an_image_is_on_the_admins_list(quiet: UserScene, image: str, words: str) -> None:
    for path in ("/plans", "/experiments", "/experiments/check"):
        config = describe("alone", "true", image=image)
        digest = quiet.send_project(PAUL, {"riseml.yml": config})
        answer = quiet.ask(PAUL, "POST", path, {**make_submission(config, digest), "pull": True})
        assert answer.status_code == 403, answer.text
        assert words in answer.json()["error"]["message"]


def test_sentence_25_a_tag_is_not_said_to_be_another_image(quiet: UserScene) -> None:
    config = describe("alone", "true", image=BASE)
    digest = quiet.send_project(PAUL, {"riseml.yml": config})
    pinned = [{"image": BASE, "digest": "sha256:" + "a" * 64}]
    answer = quiet.ask(PAUL, "POST", "/experiments", {**make_submission(config, digest), "pinned": pinned})
    assert answer.status_code == 403, answer.text
    assert "which no registry gives" in answer.json()["error"]["message"]


FOREIGN = [
    ("GET", "/experiments/{}"),
    ("GET", "/experiments/{}/logs"),
    ("GET", "/experiments/{}/capsule"),
    ("GET", "/experiments/{}/saved"),
    ("POST", "/experiments/{}/output/remove"),
    ("POST", "/experiments/{}/kill"),
    ("GET", "/files?root=output&of={}"),
    ("GET", "/files/content?root=output&of={}&path=x"),
    ("POST", "/files/remove?root=output&of={}&path=x"),
    ("POST", "/tensorboards"),
]


@pytest.fixture(scope="module")
def busy(open_folder: Path, engine_url: str) -> Iterator[UserScene]:
    """A server on an engine. Paul has run experiment 1, and eva 1 of the team project."""
    with open_user_scene(open_folder / "home", engine_url, IMAGES) as scene:
        for caller, path, text in (
            (PAUL, "user/p", "of paul\n"),
            (ANN, "user/a", "of ann\n"),
            (BOSS, "team/t", "of all\n"),
            (EVA, "project/vision/e", "of vision\n"),
        ):
            write_data(scene, caller, path, text)
        large = {"big.bin": "x" * (2 << 20), "idea.txt": SECRET}  # large enough for a layer of its own
        assert scene.submit(PAUL, describe("alone", SETUID), large).status_code == 201
        assert scene.submit(EVA, describe("vision", VISION)).status_code == 201
        for caller in (PAUL, EVA):
            ended = scene.wait_end(caller, "1")
            assert ended["state"] == "FINISHED", (ended["message"], read_lines(scene, caller, "1"))
        yield scene


def write_data(scene: UserScene, caller: Caller, path: str, text: str) -> httpx.Response:
    content = text.encode()
    query = f"root=data&path={path}&upload={'0' * 16}&size={len(content)}"
    return scene.ask(caller, "PUT", f"/files/content?{query}", content=content + hashlib.sha256(content).digest())


def read_lines(scene: UserScene, caller: Caller, name: str) -> list[str]:
    rows = [json.loads(row) for row in scene.ask(caller, "GET", f"/experiments/{name}/logs").text.splitlines() if row]
    return [row["text"] for row in rows if row.get("type") == "line"]


def test_sentence_17_outputs_belong_to_their_user_alone(busy: UserScene, open_folder: Path) -> None:
    output = open_folder / "output" / "paul" / "alone" / "1"
    for folder in (output, output.parent, output.parent.parent):
        status = folder.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (2001, 3000, 0o700), folder
    for path in output.rglob("*"):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (2001, 3000), path
    lines = read_lines(busy, PAUL, "1")
    assert lines[:3] == ["2001", "3000", "3000"], "its uid, its gid, and no other group"
    reading = subprocess.run(["cat", output / "x"], user=2002, group=2002, extra_groups=[], capture_output=True)
    assert reading.returncode != 0


def test_sentence_18_a_setuid_file_of_a_job_serves_no_other_user(busy: UserScene, open_folder: Path) -> None:
    shell = open_folder / "output/paul/alone/1/sh"
    assert shell.is_file()
    with pytest.raises(PermissionError):
        subprocess.run([shell, "-p", "-c", "id"], user=2002, group=2002, extra_groups=[], check=False)
    assert busy.home.exists()


def test_a_job_reads_the_data_of_its_user_and_no_other(busy: UserScene) -> None:
    lines = read_lines(busy, PAUL, "1")
    assert lines.count("of paul") == 2, "as /data/p, where a server for one user has it, and as /data/user/p"
    assert lines.count("of all") == 1
    assert "of ann" not in lines
    assert "wrote" not in lines
    assert lines[-3:] == ["p", "team", "user"]
    assert read_lines(busy, EVA, "1")[-5:] == ["project", "team", "user", "of vision", "vision"]
    listing = busy.ask(PAUL, "GET", "/files?root=data&deep=true").json()
    assert [entry["path"] for entry in listing["entries"]] == ["p"], "what jobs find mounted there is not of paul"
    for name in ("team", "project", "user"):
        refused = write_data(busy, PAUL, f"user/{name}/x", "of paul")
        assert (refused.status_code, "choose another name" in refused.text) == (400, True), refused.text


def test_data_is_read_and_written_by_its_own(busy: UserScene) -> None:
    assert b"of paul" in busy.ask(PAUL, "GET", "/files/content?root=data&path=user/p").content
    for path in ("user/p", "p", "users/paul/p", "../paul/p", "user/../../paul/p", "projects/vision/v"):
        answer = busy.ask(ANN, "GET", f"/files/content?root=data&path={path}")
        assert answer.status_code in (400, 404), answer.text
        assert b"of paul" not in answer.content
    assert write_data(busy, ANN, "team/t", "of ann").status_code == 403
    assert write_data(busy, PAUL, "project/vision/v", "of vision").status_code == 200
    assert b"of vision" in busy.ask(EVA, "GET", "/files/content?root=data&path=project/vision/v").content
    foreign = busy.ask(ANN, "GET", "/files/content?root=data&path=project/vision/v")
    absent = busy.ask(ANN, "GET", "/files/content?root=data&path=project/speech/v")
    assert say(foreign).replace("vision", "") == say(absent).replace("speech", "")


def test_a_capsule_has_the_names_of_its_users_data_alone(busy: UserScene, open_folder: Path) -> None:
    data = open_folder / "data"
    own, shared = (busy.ask(user, "GET", "/experiments/1/capsule").json()["capsule"]["data"] for user in (PAUL, EVA))
    assert own == {"folder": f"{data}/users/paul", "entries": ["p"]}
    assert shared == {"folder": f"{data}/users/eva", "entries": None}, "its project sees it, and not the data of eva"
    for names, lost in ((["a"], ""), (["a", "p"], "p"), (["users", "projects", "../paul"], "users, projects")):
        missing = busy.ask(ANN, "POST", "/reruns/check", {"data": names}).json()["missing"]
        assert [row["message"].rpartition(" lacks ")[2] for row in missing] == ([lost] if lost else [])


@pytest.mark.parametrize(("method", "path"), FOREIGN)
def test_what_is_of_another_user_is_as_what_does_not_exist(busy: UserScene, method: str, path: str) -> None:
    answers = []
    for name in ("paul.1", "paul.7"):
        body = {"experiments": [name]} if path == "/tensorboards" else None
        answers.append(say(busy.ask(ANN, method, path.replace("{}", name), body)).replace(name, ""))
    assert answers[0] == answers[1]
    assert answers[0].startswith("404")


def test_the_files_of_a_team_project_are_for_its_members(busy: UserScene) -> None:
    digest = find_digest(pack({"riseml.yml": describe("vision", VISION)}))
    assert busy.ask(PAUL, "HEAD", f"/snapshots/{digest}").status_code == 200, "eva has given it to vision"
    assert busy.ask(ANN, "HEAD", f"/snapshots/{digest}").status_code == 404


def test_no_image_of_another_users_code_is_run(busy: UserScene) -> None:
    """Ann names the image with paul's code by its ID, by the beginning of that, and by its name."""
    mine = {"label": f"{labels.SERVER}={busy.application.services.info.id}"}
    rows = busy.hosts[0].api.images(name="riseml/code", filters=mine)
    assert rows, "paul's project has a layer"
    for row in rows:
        identity = row["Id"].removeprefix("sha256:")
        for image in (row["Id"], identity, identity[:12], *row["RepoTags"]):
            answer = busy.submit(ANN, describe("alone", "cat /code/idea.txt", image=image))
            assert answer.status_code == 403, answer.text


def test_a_board_over_the_output_of_another_member_is_refused(busy: UserScene) -> None:
    answer = busy.ask(PAUL, "POST", "/tensorboards", {"experiments": ["eva.1"]})
    assert answer.status_code == 403, answer.text
    assert "belongs to eva" in answer.json()["error"]["message"]


def test_environments_are_not_shared_when_they_could_be_poisoned(busy: UserScene) -> None:
    config = describe("alone", "cat /made", install=["date +%s%N > /made"])
    for caller in (PAUL, ANN):
        assert busy.submit(caller, config).status_code == 201
    paul, ann = (busy.wait_end(caller, name) for caller, name in ((PAUL, "2"), (ANN, "1")))
    assert (paul["state"], ann["state"]) == ("FINISHED", "FINISHED")
    assert read_lines(busy, PAUL, "2")[-1] != read_lines(busy, ANN, "1")[-1]


def test_sentence_25_pool_check_has_what_jobs_reach_as_an_error(busy: UserScene) -> None:
    findings = check_pool(busy.application.services.hosts)
    reach = {row["outcome"] for row in findings if row["topic"] == "reach"}
    assert reach
    assert "note" not in reach
