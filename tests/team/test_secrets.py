"""Sentences 20 and 21: secrets are write-only and sealed, jobs get them, and no log or message shows them."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from riseml.executors.docker.labels import SERVER
from tests.support.rig import GO, Rig, single

VALUE = "hf_canary/8f3a1c+secret"
FILE = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w\nsecond\n"
ENCODED = base64.b64encode(VALUE.encode()).decode()
PRINTS = r"""printf 'value %s\n' "$HF_TOKEN"
printf 'cut %.6s' "$HF_TOKEN"; sleep 0.3; printf '%s end\n' "${HF_TOKEN#hf_can}"
printf 'base64 '; printf %s "$HF_TOKEN" | base64 -w0; echo
printf 'behind '; printf 'xx%s' "$HF_TOKEN" | base64 -w0; echo
cat "$RISEML_SECRETS/token"
stat -c 'file %a %u' "$RISEML_SECRETS/token"
stat -f -c 'on %T' "$RISEML_SECRETS/token"
for form in "s,/,%2F,; s,[+],%2B," "s,/,%2f,; s,[+],%2b,"; do
  printf %s "$HF_TOKEN" | sed "$form" | sed "s/^/url /" >&2
  echo >&2
done
"""


def _set(rig: Rig, name: str, value: str, **project: str) -> dict[str, object]:
    with rig.client() as client:
        answer = client.put(f"/v1/secrets/{name}", json={"value": value}, params=project)
    assert answer.status_code == 200, answer.text
    shown: dict[str, object] = answer.json()
    return shown


def _config(run: str, **keys: object) -> str:
    env = {"HF_TOKEN": {"secret": "hf"}, "MODE": "fast"}
    return single(run, env=env, secrets=[{"name": "key", "file": "token"}], **keys)


def docker_client(rig: Rig) -> docker.APIClient:
    """Return a client of the engine of a rig."""
    return docker.APIClient(str(rig.engine))


def _read_home(rig: Rig) -> Iterator[tuple[Path, bytes]]:
    """Yield all files of the home, except those in which an executor has the output of a job before it is stored."""
    for folder, _, names in os.walk(rig.home):
        for path in (Path(folder, name) for name in names):
            if path.is_file() and "processes" not in path.relative_to(rig.home).parts:
                yield path, path.read_bytes()


def test_sentence_20_secrets_are_write_only_sealed_referenced_and_erased(rig: Rig) -> None:
    run = f"""{GO}; [ "$HF_TOKEN" != second ] || echo it is new; wc -c <"$RISEML_SECRETS/token"; false"""
    submission = rig.submission(_config(run, retry=1))
    refused = rig.wait("the host answers", lambda: _find_refusal(rig, submission))
    assert refused["message"] == "the secret hf is not set"
    assert "riseml secret set hf" in refused["hint"]
    shown = [_set(rig, "hf", "of the project", project="toaster"), _set(rig, "hf", VALUE), _set(rig, "key", FILE)]
    assert [row["owner_kind"] for row in shown] == ["project", "user", "user"]
    leaking = {**submission, "config": single(f"echo {VALUE}", env={"HF_TOKEN": {"secret": "hf"}})}
    assert "has the value of the secret hf in it" in rig.post("/v1/experiments", leaking).text
    assert rig.post("/v1/experiments", submission).status_code == 201
    rig.wait_state("1", "RUNNING")
    assert "HF_TOKEN" in rig.get("/v1/experiments/1/environment")["jobs"]["train"]["hidden"]
    if rig.engine is not None:
        (container,) = docker_client(rig).containers(filters={"label": f"{SERVER}={rig.server_id()}"})
        inspected = json.dumps(docker_client(rig).inspect_container(container))
        assert "MIIEvQ" not in inspected
        assert "/run/riseml/secrets" in inspected
    answers = json.dumps([rig.get(f"/v1/{path}") for path in ("secrets", "experiments/1", "experiments/1/capsule")])
    assert VALUE not in answers
    assert "MIIEvQ" not in answers
    rig.kill()
    rig.start()
    assert rig.post("/v1/server/key").status_code == 204
    _set(rig, "hf", "second")
    rig.go_file("1").touch()
    rig.wait_closed("1")
    lines = rig.lines("1.train")
    assert lines.count(f"1.train {len(FILE)}") == 2, lines
    assert "1.train it is new" in lines, "the second attempt has the newest value"
    values = (VALUE.encode(), b"MIIEvQIBADAN", ENCODED.encode())
    assert [path for path, content in _read_home(rig) if any(value in content for value in values)] == []
    with sqlite3.connect(rig.home / "riseml.db") as store:
        assert store.execute("SELECT count(*) FROM run_secrets").fetchone() == (0,)
    store.close()
    used = {(row["name"], row["owner_kind"]): row["used_at"] is not None for row in rig.get("/v1/secrets")["secrets"]}
    assert used == {("hf", "user"): True, ("hf", "project"): False, ("key", "user"): True}
    with rig.client() as client:
        assert client.delete("/v1/secrets/key").json()["name"] == "key"
        assert client.get("/v1/secrets/hf").status_code == 405


def _find_refusal(rig: Rig, submission: dict[str, Any]) -> dict[str, str] | None:
    answer = rig.post("/v1/experiments", submission)
    error: dict[str, str] = answer.json()["error"]
    return None if answer.status_code == 503 else error


def test_sentence_21_known_secrets_are_masked_in_logs_messages_and_notes(rig: Rig) -> None:
    _set(rig, "hf", VALUE)
    _set(rig, "key", FILE)
    rig.submit(_config(PRINTS + GO))
    rig.submit(single(["/no/such/$HF_TOKEN"], env=["TOKEN"]), environment={"TOKEN": "passed-on-canary"})
    rig.wait(
        "it has printed",
        lambda: any(line.endswith("-canary") or "url" in line for line in rig.lines("1.train", follow=False)),
    )
    note = rig.post("/v1/experiments/1/annotation", {"note": f"the token is {VALUE}"}).json()
    assert note["note"] == "the token is ***"
    rig.go_file("1").touch()
    rig.wait_closed("1")
    lines = [line.partition(" ")[2] for line in rig.lines("1.train")]
    assert lines.index("value ***") < lines.index("cut *** end")
    assert "base64 ***" in lines
    assert any(line.startswith("behind ") and "***" in line for line in lines)
    assert lines.count("***") == 3, "the last line of the file has six bytes"
    assert f"file 600 {os.getuid()}" in lines
    assert "on tmpfs" in lines
    assert lines.count("url ***") == 2
    rig.wait_closed("2")
    secrets = (VALUE.encode(), ENCODED[:20].encode(), b"MIIEvQ", b"passed-on-canary")
    for path, content in _read_home(rig):
        assert not any(value in content for value in secrets), path


@pytest.mark.parametrize("moment", ["before", "after"])
def test_sentence_21_holds_when_the_server_is_killed_inside_a_value(moment: str, process_rig: Rig) -> None:
    """The line is cut in the value, and another stream prints meanwhile: what was held back is read again."""
    rig = process_rig
    _set(rig, "hf", VALUE)
    wait = 'until [ -e "$OUTPUT_DIR/next" ]; do sleep 0.1; done'
    prints = f"""printf 'cut %.6s' "$T"; sleep 0.5; echo beside >&2; {wait}; printf '%s end\n' "${{T#hf_can}}"; {GO}"""
    rig.submit(single(prints, env={"T": {"secret": "hf"}}))
    rig.wait("the other stream is stored", lambda: "1.train beside" in rig.lines("1.train", follow=False))
    following = Path(rig.experiment("1")["output"], "next")
    if moment == "before":
        following.touch()
    rig.kill()
    following.touch()
    rig.start()
    rig.go_file("1").touch()
    rig.wait_closed("1")
    assert sorted(rig.lines("1.train")) == ["1.train beside", "1.train cut *** end"]
    log = (rig.home / "logs" / "1.log").read_bytes()
    assert b"hf_can" not in log
    assert b"8f3a1c" not in log
