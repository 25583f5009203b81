"""The GPUs of a host, read through a real engine whose runtime `nvidia` is a fake: it adds an nvidia-smi that prints
what a driver prints. No GPU was there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.pool.conftest import PoolRig
from tests.real.pool.engines import EngineHost
from tests.real.pool.test_commands import ask
from tests.support.rig import single
from tests.unit.executors.gpus.test_nvidia_smi import A100

RUNTIME = r"""#!/bin/sh
# What the nvidia runtime does, as far as riseml sees it: a container that asks for GPUs gets nvidia-smi.
bundle=; before=
for word in "$@"; do
  case "$before" in --bundle|-b) bundle=$word ;; esac
  before=$word
done
if [ -n "$bundle" ] && grep -q NVIDIA_VISIBLE_DEVICES=all "$bundle/config.json"; then
  root=$(sed -n 's/.*"root":{"path":"\([^"]*\)".*/\1/p' "$bundle/config.json")
  mkdir -p "$root/usr/bin" && cp "$(dirname "$0")/nvidia-smi" "$root/usr/bin/nvidia-smi"
fi
exec runc "$@"
"""


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _print_text(text: str) -> str:
    return f"#!/bin/sh\ncat <<'END'\n{text}END\n"


@pytest.fixture
def gpu_host(engines: tuple[EngineHost, ...]) -> Iterator[EngineHost]:
    """h1, whose engine has a runtime `nvidia` and whose driver knows two A100."""
    host = engines[0]
    _write_script(host.folder / "nvidia-runtime", RUNTIME)
    _write_script(host.folder / "nvidia-smi", _print_text(A100))
    host.stop()
    host.clients.clear()
    host.arguments = (f"--add-runtime=nvidia={host.folder}/nvidia-runtime",)
    host.start()
    yield host
    host.stop()
    host.clients.clear()
    host.arguments = ()
    host.start()


def test_a_host_knows_its_gpus(gpu_host: EngineHost, engines: tuple[EngineHost, ...], tmp_path: Path) -> None:
    with PoolRig(tmp_path / "home", engines, tmp_path) as rig:
        rig.write_pool("h1", storage={"output": str(tmp_path)})
        rig.wait("h1 has GPUs", lambda: rig.get("/v1/pool")["hosts"][0]["gpus"] == 2)
        shown = ask(rig, "system", "info", "-g")
        assert shown.count("NVIDIA A100-SXM4-40GB") == 2
        assert "535.129.03" in shown
        assert "1322520054321" in shown
        assert "80.0 GiB" in ask(rig, "system", "info")
        used = ask(rig, "monitor", "--gpu", "--once")
        assert "97 %" in used
        assert "391/400 W" in used
        assert "00000000:0F:00.0" in used
        assert "2 x NVIDIA A100-SXM4-40GB (40.0 GiB), driver 535.129.03" in ask(rig, "pool", "check")
        assert not [row for row in gpu_host.api.containers(all=True) if "gpus" in row["Names"][0]]

        rig.write_pool("h2", storage={"output": str(tmp_path)})
        tried = ask(rig, "pool", "add", "h1", gpu_host.url, "--insecure", "--dry-run")
        assert "2 x NVIDIA A100-SXM4-40GB" in tried
        assert "and 2 GPUs." in tried
        rig.write_pool("h1", storage={"output": str(tmp_path)})
        big = {"resources": {"cpus": 0.1, "mem": "32MiB", "gpus": 1, "gpu": "a100", "gpu_mem": "80GiB"}}
        rig.wait("h1 has GPUs again", lambda: rig.get("/v1/pool")["hosts"][0]["gpus"] == 2)
        refused = rig.post("/v1/experiments", rig.submission(single("true", **big)))
        assert refused.status_code == 403
        assert "(a100 with 81920 MiB or more); host h1 has" in refused.json()["error"]["message"]
        planned = rig.post("/v1/plans", rig.submission(single("true", resources={"gpus": 2, "gpu": "a100"})))
        (job,) = planned.json()["experiments"][0]["jobs"]
        assert (job["host"], job["gpus"], job["gpu"]) == ("h1", 2, "a100")

        (gpu_host.folder / "nvidia-smi").write_text(_print_text("Failed to initialize NVML: Unknown Error\n"))
        rig.wait("the reading is old", lambda: "Unknown Error" in ask(rig, "system", "info", "-g"))
        found = json.loads(ask(rig, "monitor", "--gpu", "--json", "--once"))
        assert found["gpus"] == []
        assert found["troubles"][0]["host"] == "h1"

        rig.write_pool("h1", storage={"output": str(tmp_path)}, hosts={"h1": {"gpus": []}})
        rig.wait("its GPUs are not for jobs", lambda: rig.get("/v1/pool")["hosts"][0]["gpus"] == 0)
        refused = rig.post("/v1/experiments", rig.submission(single("true", resources={"gpus": 1})))
        assert refused.status_code == 403
