"""PyTorch with Horovod over two hosts, with a killed rank: a minute of processor time, and not part of `make test`.

`python -m pytest tests/real/pool/slow_horovod.py` runs it; docs/testing.md says what it needs.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.real.frameworks.test_toaster import EXAMPLE
from tests.real.pool.conftest import PoolRig
from tests.real.pool.test_training import provide_data, provide_image, read_hosts, run_riseml

KILLED = """\
        if rank == 3 and epoch == 2 and os.environ["RISEML_ATTEMPT"] == "1":
            os.kill(os.getpid(), 9)
"""


def test_a_rank_of_horovod_is_killed_on_another_host_and_the_next_attempt_learns_on(
    pool_rig: PoolRig, engine_url: str, tmp_path: Path, horovod_pytorch_image: str
) -> None:
    """Two containers with two processes each; Horovod averages the gradients of PyTorch between the hosts."""
    pool_rig.post("/v1/pool/join")
    provide_data(pool_rig)
    provide_image(pool_rig.hosts[0].api, engine_url, horovod_pytorch_image)
    project = tmp_path / "horovod-digits"
    shutil.copytree(EXAMPLE.parent / "horovod-digits", project)
    script = project / "train_digits_torch.py"
    begin, loop, body = script.read_text().partition("    for epoch in range(first, args.epochs + 1):\n")
    assert loop
    script.write_text(begin + loop + KILLED + body)
    changes = ("--set", f"train.image={horovod_pytorch_image}", "--set", "train.resources.cpus=2", "-p", "epochs=6")
    said = run_riseml(pool_rig, project, "train", "-f", "pytorch.yml", *changes)
    hosts = read_hosts(pool_rig)
    assert set(hosts) == {"worker.1", "worker.2"}
    assert len(set(hosts.values())) == 2
    assert "riseml: rank 3 ended with exit code 137" in said
    assert not re.search(r"^1\.worker\.1 +FAILED", said, re.MULTILINE), "what follows from the cause is no cause"
    assert re.findall(r"\[0\] 4 processes, epoch (\d+) to 6", said) == ["1", "2"], "it goes on from the checkpoint"
    accuracies = dict(re.findall(r"\[\d\] rank (\d of 4): test accuracy: ([0-9.]+)", said))
    assert set(accuracies) == {f"{rank} of 4" for rank in range(4)}
    assert len(set(accuracies.values())) == 1, "every process has the same weights"
    assert min(map(float, accuracies.values())) >= 0.85
    pool_rig.wait_closed("1")
    pool_rig.check_nothing_left()
