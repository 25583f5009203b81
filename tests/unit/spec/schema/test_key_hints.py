"""Hints for unknown keys of riseml.yml: one letter wrong, the wrong place, and words of other tools."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from riseml.spec.config.loader import check_config
from riseml.spec.schema.contract import ANY_NAME, CONFIG_CONTRACT
from riseml.spec.schema.foreign_job_words import _PLACES, _SENTENCES
from riseml.spec.schema.foreign_words import translate_key
from riseml.spec.schema.key_hints import suggest_key
from riseml.spec.schema.near_words import squash
from riseml.spec.yaml.problems import KeyPath, format_key_path

PATHS = [path for path, _ in CONFIG_CONTRACT.walk() if not isinstance(path[-1], int)]
IDS = [format_key_path(path) for path in PATHS]
SECTIONS = sorted({path[:-1] for path in PATHS}, key=str)
KEYS = CONFIG_CONTRACT.places


@pytest.mark.parametrize(
    ("key", "keys", "meant"),
    [
        ("memory", ["cpus", "mem"], "mem"),
        ("Memory", ["cpus", "mem"], "mem"),
        ("cpu", ["cpus", "mem"], "cpus"),
        ("parametres", ["parameters", "env"], "parameters"),
        ("maxDuration", ["max_duration", "env"], "max_duration"),
        ("memory", ["cpus", "gpus"], None),
        ("volumes", ["roles", "env"], None),
        ("man", ["min", "max"], None),
        ("xyz", ["cpus", "mem"], None),
    ],
)
def test_a_key_is_suggested_where_one_alone_is_near(key: str, keys: list[str], meant: str | None) -> None:
    assert suggest_key(key, keys) == meant


def _write(path: KeyPath, key: str, others: str = "") -> str:
    """Return a riseml.yml with a key in the section at a path."""
    text = f"{{{key}: 1}}"
    for part in reversed(path):
        text = f"[{text}]" if isinstance(part, int) else f"{{{'x' if part == ANY_NAME else part}: {text}}}"
    return f"{text}\n{others}"


def _explain(path: KeyPath, key: str) -> str | None:
    """Return what is said about an unknown key; None when riseml knows it or does not reach it."""
    place = format_key_path(tuple("x" if part == ANY_NAME else part for part in (*path, key)))
    for problem in check_config(_write(path, key)).problems:
        if re.match(rf"riseml.yml:\d+:\d+ {re.escape(place)}: unknown key", str(problem)):
            return str(problem).partition("unknown key; ")[2]
    return None


def _misspell(key: str) -> Iterator[str]:
    for at in range(len(key)):
        yield key[:at] + key[at + 1 :]
        yield key[:at] + key[at] + key[at:]
        yield key[:at] + key[at + 1 : at + 2] + key[at] + key[at + 2 :]
        yield key[:at] + "q" + key[at + 1 :]


def _list_named(hint: str) -> set[str]:
    """Return the keys that a hint offers; none where it lists those that the section has."""
    return set(re.findall(r'did you mean "(\w+)"', hint))


@pytest.mark.parametrize("path", PATHS, ids=IDS)
def test_a_key_with_one_letter_wrong_is_named_or_none_is(path: KeyPath) -> None:
    *section, key = path
    words = {squash(word) for row in _PLACES for word in row[1].split()} | {
        squash(word) for row in _SENTENCES for word in row[1].split()
    }
    named = 0
    mistakes = [wrong for wrong in dict.fromkeys(_misspell(str(key))) if len(wrong) > 1 and wrong not in KEYS]
    mistakes = [wrong for wrong in mistakes if squash(wrong) not in words and not translate_key(wrong, tuple(section))]
    for wrong in mistakes:
        hint = _explain(tuple(section), wrong)
        if hint is not None:
            assert _list_named(hint) <= {key}, (wrong, hint)
            named += bool(_list_named(hint))
    assert named >= len(mistakes) / 2 or len(str(key)) < 4 or "parameters" in section, "most mistakes have a hint"


def _find_sections(hint: str) -> list[str]:
    """Return the sections that a hint names."""
    listed = re.search(r"it belongs (?:in )?(.*)$", hint)
    return re.split(r", | or ", listed[1]) if listed else []


@pytest.mark.parametrize("key", sorted(KEYS, key=str))
def test_a_key_in_the_wrong_place_is_sent_to_a_section_that_has_it(key: str) -> None:
    homes = {"at the top of the file" if not path else format_key_path(path).replace("[0]", "[]") for path in KEYS[key]}
    homes |= {home.replace(ANY_NAME, "x") for home in homes}
    sent = 0
    for section in SECTIONS:
        hint = None if section in KEYS[key] else _explain(section, key)
        if hint is None:
            continue
        sections = _find_sections(hint)
        assert set(sections) <= homes, (section, hint)
        sent += bool(sections)
        for named in _list_named(hint):
            places = {format_key_path(path) for path in KEYS[named]}
            assert format_key_path(section) in places or any(place in hint for place in places), (section, hint)
    assert sent or len(KEYS[key]) > 3


FOREIGN = """
tool        section                              key                          means
Kubeflow    .                                    apiVersion                   riseml import
Kubeflow    .                                    tfReplicaSpecs               riseml import
Kubeflow    train.tensorflow.distributed.worker  replicas                     worker: 3
Kubeflow    train                                backoffLimit                 train.retry
Kubeflow    train                                activeDeadlineSeconds        train.max_duration
Kubeflow    train                                terminationGracePeriodSeconds train.stop_grace
Kubeflow    train                                numNodes                     worker: 3
Kubeflow    train                                numProcPerNode               processes
Kubeflow    train.resources                      nvidia.com/gpu               train.resources.gpus
Kubeflow    train                                resourcesPerNode             train.resources
Kubeflow    train                                nodeSelector                 train.resources.labels
Kubeflow    train                                tolerations                  pool.yml
Kubeflow    train                                parallelTrialCount           train.concurrency
Kubeflow    train                                maxTrialCount                train.search.trials
Kubeflow    train                                priorityClassName            train.priority
dstack      train                                commands                     train.run
dstack      .                                    nodes                        worker: 3
dstack      .                                    python                       train.image
dstack      train.resources                      memory                       train.resources.mem
dstack      train                                ports                        riseml forward
dstack      train                                idle_duration                train.idle_timeout
dstack      train                                stop_duration                train.stop_grace
dstack      train                                spot_policy                  pool.yml
dstack      train                                fleets                       pool.yml
dstack      train                                volumes                      riseml docs files
dstack      train                                working_dir                  cd FOLDER
dstack      train                                schedule                     cron
dstack      .                                    ide                          riseml notebook
SkyPilot    .                                    setup                        train.install
SkyPilot    .                                    num_nodes                    worker: 3
SkyPilot    .                                    envs                         train.env
SkyPilot    .                                    secrets                      train
SkyPilot    .                                    file_mounts                  train.data
SkyPilot    .                                    workdir                      cd FOLDER
SkyPilot    train.resources                      accelerators                 train.resources.gpus
SkyPilot    train.resources                      use_spot                     pool.yml
SkyPilot    train.resources                      job_recovery                 train.retry
SkyPilot    train.resources                      region                       pool.yml
TorchX      train.roles.x                        entrypoint                   train.roles.x.run
TorchX      train.roles.x                        num_replicas                 worker: 3
TorchX      train.roles.x                        max_retries                  train.retry
TorchX      train.roles.x                        mounts                       riseml docs files
TorchX      train.roles.x                        port_map                     riseml forward
compose     .                                    services                     riseml import
compose     train                                command                      train.run
compose     train                                environment                  train.env
compose     train                                env_file                     train.env
compose     train                                depends_on                   train.roles.NAME.after
compose     train                                mem_limit                    train.resources.mem
compose     train                                restart                      train.retry
compose     train                                stop_grace_period            train.stop_grace
compose     train                                privileged                   riseml docs security
Determined  .                                    hyperparameters              train.parameters
Determined  .                                    searcher                     train.search
Determined  .                                    max_restarts                 train.retry
Determined  .                                    bind_mounts                  riseml docs files
Determined  .                                    checkpoint_storage           train.save
Determined  train.resources                      slots_per_trial              train.resources.gpus
Determined  train.search                         smaller_is_better            train.search.goal
Determined  train.search                         max_concurrent_trials        train.concurrency
Determined  train.resources                      resource_pool                pool.yml
Determined  train                                ps_count                     train.tensorflow.distributed.ps
W&B         .                                    program                      train.run
W&B         train.search                         run_cap                      train.search.trials
W&B         train.search                         early_terminate              train.search.stop
"""
ROWS = [line.split(None, 3) for line in FOREIGN.strip().splitlines()[1:]]


@pytest.mark.parametrize(("tool", "place", "key", "meant"), ROWS, ids=[" ".join(row[:3]) for row in ROWS])
def test_a_word_of_another_tool_leads_to_the_key_here_or_to_a_page(tool: str, place: str, key: str, meant: str) -> None:
    section = () if place == "." else tuple(place.split("."))
    hint = _explain(section, key)
    assert hint is not None
    *home, known = meant.split(".")
    if home and home[0] == "train":
        name = re.escape(known)
        inside = "" if tuple(home) == section else f" in {re.escape('.'.join(home))}"
        short = rf"it is `{name}`, {re.escape(inside.strip())}"
        assert re.match(rf'did you mean "{name}"{inside}\?|{short}', hint) or meant in hint, hint
    else:
        assert meant in hint


def test_the_table_has_words_of_each_tool() -> None:
    assert len(ROWS) >= 60
    assert {row[0] for row in ROWS} == {"Kubeflow", "dstack", "SkyPilot", "TorchX", "compose", "Determined", "W&B"}


def test_a_word_of_another_tool_is_no_key_here_and_means_one_that_is() -> None:
    words = [
        word for row in (*_PLACES, *((sentence, words) for sentence, words in _SENTENCES)) for word in row[1].split()
    ]
    assert len(set(words)) == len(words)
    assert {squash(word) for word in words} == set(words)
    assert not set(words) & {squash(key) for key in KEYS} - {"count"}, "a key would be explained as a foreign word"
    for place, _ in _PLACES:
        *section, key = place.split(".")
        assert tuple(section) in KEYS[key]


@pytest.mark.parametrize(
    ("framework", "said"),
    [
        ("pytorch", "in train.pytorch"),
        ("jax", "in train.jax"),
        (None, "in train.tensorflow, train.pytorch or train.jax"),
    ],
)
def test_a_framework_of_the_file_rules_out_the_sections_of_others(framework: str | None, said: str) -> None:
    line = f"framework: {framework}, " if framework else ""
    problems = check_config(f"project: x\ntrain: {{{line}run: a, distributed: {{worker: 2}}}}\n").problems
    hints = [str(problem) for problem in problems if "train.distributed" in str(problem)]
    assert hints == [f"riseml.yml:2:{17 + len(line)} train.distributed: unknown key; it belongs {said}"]
