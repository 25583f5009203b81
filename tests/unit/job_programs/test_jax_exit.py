"""A process of JAX that fails or leaves ends at once, and one that has done its part waits for the others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from riseml import job_programs
from riseml.spec.config.loader import load_config
from tests.unit.frameworks.layouts import make_experiment, script

FILE = """
project: toaster
train:
  framework: jax
  jax: {distributed: {worker: 3}}
  resources: {cpus: 4, mem: 1GiB}
  run: python broken.py
"""
HOOKED = """
import atexit, sys, types
atexit.register(print, "waits for the others")
fake = types.ModuleType("jax._src.distributed")
fake.global_state = types.SimpleNamespace(client={client})
sys.modules["jax._src.distributed"] = fake
raise RuntimeError("broken")
"""


@pytest.mark.parametrize(("client", "said"), [("object()", ""), ("None", "waits for the others\n")])
def test_an_exception_ends_a_process_that_would_wait_for_the_others(tmp_path: Path, client: str, said: str) -> None:
    """With the image's own `sitecustomize` imported all the same."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import sys; print('own', file=sys.stderr)\n")
    (tmp_path / "broken.py").write_text(HOOKED.format(client=client))
    text = script(make_experiment(load_config(FILE)), "worker.1")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # Debian's Python has no `python` of its own
    environment = {"PATH": path, "PYTHONPATH": str(tmp_path / "own")}
    done = subprocess.run(
        ["/bin/sh", "-ec", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, said)
    assert done.stderr.startswith("own\nTraceback")
    assert "RuntimeError: broken" in done.stderr


LEAVING = """
import atexit, sys, threading, types
state = types.SimpleNamespace(client={client})
sys.modules["jax._src.distributed"] = types.SimpleNamespace(global_state=state)
atexit.register(lambda: print("waits for the others"))
try:
    sys.exit(7)
except SystemExit as caught:
    kept = caught
thread = threading.Thread(target=sys.exit, args=(8,))
thread.start()
thread.join()
def leave():
    try:
        {line}
    finally:
        print("cleans up")
leave()
"""


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit('sorry')", 1, "sorry\n"),
        ("exit(-1)", 255, ""),
        pytest.param(
            "raise SystemExit(4)",
            4,
            "",
            # `make test` runs this on 3.13, too; docs say what 3.11 lacks.
            marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 has no sys.monitoring"),
        ),
    ],
)
def test_a_process_that_leaves_with_an_exit_code_does_not_wait_for_the_others(
    tmp_path: Path, line: str, code: int, error: str
) -> None:
    done = leave(tmp_path, line, "object()")
    assert (done.returncode, done.stdout, done.stderr) == (code, "cleans up\n", error)
    alone = leave(tmp_path, line, "None")
    assert (alone.returncode, alone.stdout, alone.stderr) == (code, "cleans up\nwaits for the others\n", error)


@pytest.mark.parametrize("line", ["sys.exit(0)", "sys.exit()", "pass"])
def test_a_process_that_has_done_its_part_waits_for_the_others(tmp_path: Path, line: str) -> None:
    done = leave(tmp_path, line, "object()")
    assert (done.returncode, done.stdout, done.stderr) == (0, "cleans up\nwaits for the others\n", "")


def leave(folder: Path, line: str, client: str) -> subprocess.CompletedProcess[str]:
    """Run a script that ends with this line, with riseml's module. Before, it has caught one SystemExit."""
    (folder / "sitecustomize.py").write_text((Path(job_programs.__file__).parent / "jax_exit.py").read_text())
    (folder / "leaving.py").write_text(LEAVING.format(client=client, line=line))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}
    command = [sys.executable, "leaving.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
