"""The section `slurm` of a pool.yml, and what does not go with it."""

from __future__ import annotations

import pytest

from riseml.spec.pool.loader import check_pool, load_pool
from riseml.spec.pool.types import CacheSpec, EngineKind, PoolSpec, SlurmSpec

FULL = """\
engine: slurm
slurm:
  folder: /shared/riseml/
  partition: gpu
  account: ml-lab
  qos: normal
  constraint: "a100&ib"
  reservation: course
  time_limit: 24h
  setup: [module load cuda/12.4, "export A=1"]
  prefix: [apptainer, exec, /shared/a.sif]
  options: [--nice=100, "--exclude=n[1-3]"]
  step_options: [--container-image=reg#a/b, --exclusive]
  python: /usr/bin/python3
  gpu_packages: true
  login: ssh://ann@login1:2222/
  known_hosts: /keys/known
storage: {output: /shared/out}
"""


def test_every_key_is_read() -> None:
    assert load_pool(FULL, "pool.yml") == PoolSpec(
        (),
        output="/shared/out",
        data="/shared/riseml/data",
        data_cache=CacheSpec(folder="/shared/riseml/data-cache"),
        engine=EngineKind.SLURM,
        slurm=SlurmSpec(
            "/shared/riseml",
            "gpu",
            "ml-lab",
            "normal",
            "a100&ib",
            "course",
            24 * 3600.0,
            ("module load cuda/12.4", "export A=1"),
            ("apptainer", "exec", "/shared/a.sif"),
            ("--nice=100", "--exclude=n[1-3]"),
            ("--container-image=reg#a/b", "--exclusive"),
            "/usr/bin/python3",
            gpu_packages=True,
            login="ssh://ann@login1:2222",
            known_hosts="/keys/known",
        ),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("engine: slurm\n", "slurm: is missing"),
        ("engine: slurm\nslurm: {partition: gpu}\n", "slurm.folder: is missing"),
        ("slurm: {folder: /r/s}\n", "slurm: is only for a Slurm cluster"),
        ("engine: slurm\nslurm: {folder: /r/s}\nhosts: [{name: a, url: ssh://a}]\n", "hosts: is only for Docker hosts"),
        ("engine: slurm\nslurm: {folder: /r/s}\nnetwork: host\n", "network: is only for Docker hosts"),
        ("engine: slurm\nslurm: {folder: /r/s}\nstorage: {data: {volume: d1}}\n", "storage.data: is a Docker volume"),
        ("engine: slurm\nslurm: {folder: relative}\n", "slurm.folder: "),
        ("engine: slurm\nslurm: {folder: '/a b'}\n", "slurm.folder: "),
        ("engine: slurm\nslurm: {folder: /r/s, partition: '--uid=0'}\n", "slurm.partition: "),
        ("engine: slurm\nslurm: {folder: /r/s, account: 'a b'}\n", "slurm.account: "),
        ("engine: slurm\nslurm: {folder: /r/s, login: tcp://a:1}\n", "slurm.login: "),
        ("engine: slurm\nslurm: {folder: /r/s, login: ssh://a/run/s}\n", "slurm.login: is not where ssh logs in"),
        ("engine: slurm\nslurm: {folder: /r/s, login: 'ssh://-oX=y'}\n", "slurm.login: "),
        ("engine: slurm\nslurm: {folder: /r/s, known_hosts: k}\n", "slurm.known_hosts: is only for ssh"),
        ("engine: slurm\nslurm: {folder: /r/s, time_limit: soon}\n", "slurm.time_limit: "),
        ("engine: slurm\nslurm: {folder: /r/s, options: [-N1]}\n", "slurm.options[0]: "),
        ("engine: slurm\nslurm: {folder: /r/s, options: ['--nice=1 --uid=0']}\n", "slurm.options[0]: "),
        ("engine: slurm\nslurm: {folder: /r/s, options: [--nice, --part=a]}\n", "slurm.options[1]: is made from `part"),
        ("engine: slurm\nslurm: {folder: /r/s, options: [--mem=1G]}\n", "slurm.options[0]: is made from the reso"),
        ("engine: slurm\nslurm: {folder: /r/s, step_options: [--output=/a]}\n", "slurm.step_options[0]: is set by r"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(text: str, problem: str) -> None:
    checked = check_pool(text, "pool.yml")
    assert checked.spec is None
    assert any(f"{one.path}: {one.problem}".startswith(problem) for one in checked.problems), checked.problems
