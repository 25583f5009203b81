"""TensorBoard on logs in S3: whether there are any, and that it starts without TensorFlow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.base.states import NO_LOGS
from riseml.job_programs import read_program
from tests.support.waiting import DEADLINE

MODULES = {
    "tensorboard/__init__.py": "",
    "tensorboard/main.py": """
import sys
def run_main():
    print(*sys.argv, "tensorboard.compat.notf" in sys.modules)
    return 7
""",
    "botocore/__init__.py": "",
    "botocore/config.py": "def Config(**_): pass",
    "botocore/exceptions.py": """
class BotoCoreError(Exception): pass
class NoCredentialsError(BotoCoreError): pass
class EndpointConnectionError(BotoCoreError): pass
class ClientError(Exception):
    response = {"Error": {"Code": "NoSuchBucket"}}
""",
    "boto3.py": """
from botocore.exceptions import *
class Bucket:
    def get_paginator(self, _): return self
    def paginate(self, Bucket, Prefix):
        if Bucket == "refuses": raise ClientError
        if Bucket == "without-keys": raise NoCredentialsError
        if Bucket == "away": raise EndpointConnectionError
        return [{}, {"Contents": [{"Key": Prefix + "/" + ("events.out.tfevents.1" if Bucket == "logs" else "model")}]}]
def client(*_, **__): return Bucket()
""",
}


def run(folder: Path, *urls: str, elsewhere: str = "", level: str = "error") -> subprocess.CompletedProcess[str]:
    """Run the program as its job does, with stand-ins for the libraries."""
    for name, text in MODULES.items():
        (folder / "libraries" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "libraries" / name).write_text(text)
    for name in ("boto3", "json", "types"):
        (folder / f"{name}.py").write_text("raise SystemExit('a module of the project')")
    order = json.dumps({"urls": urls, "names": "4", "level": level})
    command = [sys.executable, "-c", read_program("store_tensorboard"), order, elsewhere, "--logdir", "x"]
    variables = {"PYTHONPATH": str(folder / "libraries")}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=DEADLINE)


@pytest.mark.parametrize(
    ("urls", "elsewhere"),
    [(["s3://logs/4"], ""), (["s3://empty/4", "s3://logs/4"], ""), (["s3://empty/4"], "yes"), ([], "")],
)
def test_it_starts_where_there_are_logs_and_hides_tensorflow(tmp_path: Path, urls: list[str], elsewhere: str) -> None:
    done = run(tmp_path, *urls, elsewhere=elsewhere)
    assert (done.returncode, done.stdout, done.stderr) == (7, "tensorboard --logdir x True\n", "")


def test_without_logs_it_ends_or_waits_for_them(tmp_path: Path) -> None:
    said = "there are no files of TensorBoard (*tfevents*) in s3://empty/4, s3://empty/5, where 4 has its logs\n"
    ended = run(tmp_path, "s3://empty/4", "s3://empty/5")
    assert (ended.returncode, ended.stdout, ended.stderr) == (NO_LOGS, "", f"error: {said}")
    waiting = run(tmp_path, "s3://empty/4", "s3://empty/5", level="note")
    assert (waiting.returncode, waiting.stderr) == (7, f"note: {said}")


@pytest.mark.parametrize(
    ("bucket", "trouble"),
    [
        ("refuses", "the store answers NoSuchBucket"),
        ("without-keys", "there are no keys; `train.store` gives a job those of a store"),
        ("away", "the store does not answer (EndpointConnectionError)"),
    ],
)
def test_a_store_that_cannot_be_read_is_one_sentence(tmp_path: Path, bucket: str, trouble: str) -> None:
    done = run(tmp_path, f"s3://{bucket}/4")
    assert (done.returncode, done.stderr) == (NO_LOGS, f"error: s3://{bucket}/4 cannot be read: {trouble}\n")
