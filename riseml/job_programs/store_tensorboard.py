"""Starts TensorBoard on logs in S3.

Where TensorFlow is installed, TensorBoard reads files through it, and TensorFlow no longer knows s3://. Without it,
TensorBoard reads s3:// with boto3. So this program hides TensorFlow from TensorBoard, which then also starts faster.

    python3 -c PROGRAM '{"urls": ["s3://runs/logs"], "names": "4", "level": "error"}' "$found" --logdir s3://runs/logs
"""

from __future__ import annotations

# ruff: noqa: E402 - every import follows the line that hides the modules of the project, in whose folder this may run
import sys

sys.path[:] = [folder for folder in sys.path if folder]

import json
import os
import types
from importlib import import_module

_NO_LOGS = 66  # `base.states.NO_LOGS`
_SCHEME = "s3://"
_MARK = "tfevents"
_PATIENCE = 10  # seconds for a connection, and for an answer


def main(order: str, elsewhere: str, *arguments: str) -> None:
    """Run TensorBoard until it is ended.

    Args:
        order: JSON: the addresses that must have logs, the names of their experiments, and the level of the line that
            says that there are none; with `note` TensorBoard waits for logs.
        found: not empty: there are logs elsewhere.
        arguments: of TensorBoard.
    """
    fields = json.loads(order)
    has_logs = [_has_logs(url) for url in fields["urls"]]
    if fields["urls"] and not elsewhere and not any(has_logs):
        level = fields["level"]
        places = ", ".join(fields["urls"])
        _print_line(
            f"{level}: there are no files of TensorBoard (*{_MARK}*) in {places}, where {fields['names']} has its logs"
        )
        if level == "error":
            sys.exit(_NO_LOGS)
    sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
    sys.argv = ["tensorboard", *arguments]
    sys.exit(import_module("tensorboard.main").run_main())


def _has_logs(url: str) -> bool:
    """Return whether there is a file of TensorBoard below an address; end the program when it cannot be read."""
    boto = import_module("boto3")
    botocore = import_module("botocore")
    import_module("botocore.config")
    import_module("botocore.exceptions")
    settings = botocore.config.Config(
        connect_timeout=_PATIENCE, read_timeout=_PATIENCE, retries={"max_attempts": 2, "mode": "standard"}
    )
    bucket, _, path = url[len(_SCHEME) :].partition("/")
    try:
        client = boto.client("s3", endpoint_url=os.environ.get("S3_ENDPOINT"), config=settings)
        pages = client.get_paginator("list_objects").paginate(Bucket=bucket, Prefix=path)
        return any(_MARK in entry["Key"] for page in pages for entry in page.get("Contents", ()))
    except botocore.exceptions.ClientError as error:
        trouble = f"the store answers {error.response['Error']['Code']}"
    except botocore.exceptions.NoCredentialsError:
        trouble = "there are no keys; `train.store` gives a job those of a store"
    except botocore.exceptions.BotoCoreError as error:
        trouble = f"the store does not answer ({type(error).__name__})"
    _print_line(f"error: {url} cannot be read: {trouble}")
    sys.exit(_NO_LOGS)


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
