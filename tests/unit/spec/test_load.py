"""What a valid file means: values, units and defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.states import State
from riseml.spec.config.loader import Overrides, check_config, load_config
from riseml.spec.config.types import (
    ChiefKey,
    Distributed,
    Distribution,
    EnvVariable,
    Goal,
    Horovod,
    MetricCondition,
    NotifySection,
    Parameter,
    Relation,
    Resources,
    Retry,
    RetryOn,
    RetryScope,
    Scale,
    SearchMethod,
    SearchSection,
    StopMethod,
    StopRule,
    TensorFlow,
    Train,
)
from riseml.spec.scalars.quantities import parse_duration, parse_memory
from riseml.spec.scalars.texts import BadText
from riseml.spec.yaml.problems import Severity
from tests.unit.spec.examples import DISTRIBUTED, EXAMPLES

ROOT = Path(__file__).parents[3]
HEAD = "project: x\ntrain:\n  image: a\n"


def _train(name: str) -> Train:
    return load_config(EXAMPLES[name]).train


def _parameter(text: str) -> tuple[str, ...]:
    return load_config(f"{HEAD}  run: t {{{{p}}}}\n  parameters: {{p: {text}}}\n").train.parameters[0].values


def _tensorflow(text: str) -> TensorFlow:
    found = load_config(
        f"project: x\ntrain:\n  framework: tensorflow\n  run: a\n  tensorflow: {text}\n"
    ).train.tensorflow
    assert found is not None
    return found


def _cluster(text: str) -> Distributed:
    found = _tensorflow(f"{{distributed: {text}}}").distributed
    assert found is not None
    return found


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_every_documented_form_has_no_problem(text: str) -> None:
    assert check_config(text).problems == ()


@pytest.mark.parametrize("file", sorted((ROOT / "examples").rglob("*.yml")), ids=lambda file: file.name)
def test_the_examples_have_no_problem(file: Path) -> None:
    assert check_config(file.read_bytes(), file.name).problems == ()


def test_the_distributed_seed_is_read() -> None:
    spec = load_config(DISTRIBUTED, overrides=Overrides((("num-layers", "4"), ("learning-rate", "0.01"))))
    assert spec.project == "ai-toaster"
    assert spec.train.run == (
        "python train_model.py --num-layers {{ num-layers }} --learning-rate {{ learning-rate }}"
        " --training-data /data/my-project",
    )
    everywhere = Resources(2.0, 16384, 4)
    cluster = Distributed(3, 2, ChiefKey.MASTER, everywhere, everywhere, Resources(2.0, 16384, 0))
    assert spec.train.tensorflow == TensorFlow("1.2.1-gpu", distributed=cluster)
    assert spec.train.parameters == (Parameter("num-layers", ("4",)), Parameter("learning-rate", ("0.01",)))


def test_undefined_parameters_of_the_seed_are_located() -> None:
    found = check_config(DISTRIBUTED).problems
    assert [(one.line, one.column, one.problem) for one in found] == [
        (19, 40, 'there is no parameter "num-layers"'),
        (20, 43, 'there is no parameter "learning-rate"'),
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("  run: |\n    a\n    b\n", "a\nb"),
        ("  run: |\n    a \\\n      --b\n", "a \\\n  --b"),
        ("  run: >-\n    a \\\n    --b\n", "a  --b"),
        ("  run: >-\n    a\n\n      --b\n", "a\n\n  --b"),
        ("  run: >-\n    for i in 1; do\n      echo $i\n    done\n", "for i in 1; do\n  echo $i\ndone"),
        ("  run: python a \\\n    --b c\\ d\n", "python a  --b c\\ d"),
        ("  run: 'a \\ b'\n", "a \\ b"),
    ],
    ids=["literal", "literal with backslash", "folded with backslash", "blank line", "shell block", "plain", "quoted"],
)
def test_folded_lines_of_a_command_become_one_command(lines: str, expected: str) -> None:
    assert load_config(HEAD + lines).train.run == (expected,)


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        *(("16GiB", 16384), ("512M", 512), ("16G", 16384), ("4096MB", 4096), ("16 GB", 16384), ("16g", 16384)),
        *(("16384", 16384), ("64", 64), ("63", 64512), ("4", 4096), (".5", 512), ("1.5GiB", 1536), ("2T", 2097152)),
        *(("9000k", 9), ("512Mi", 512), ("0.5", 512), ("500MB", 500), ("500MiB", 500), ("1GB", 1024), ("16gib", 16384)),
    ],
)
def test_memory_is_read_in_mib(text: str, mib: int) -> None:
    assert parse_memory(text) == mib
    assert load_config(f"{HEAD}  run: b\n  resources: {{mem: {text}}}\n").train.resources.mem == mib


MEMORY_KEYS = pytest.mark.parametrize("key", ["resources: {mem: %s}", "limits: {mem: %s}", "shm_size: %s"])


@MEMORY_KEYS
@pytest.mark.parametrize("text", ["4", "63", ".5"])
def test_a_number_without_a_unit_below_64_is_gib_with_a_warning(key: str, text: str) -> None:
    checked = check_config(f"{HEAD}  run: b\n  {key % text}\n")
    (warning,) = checked.problems
    assert checked.spec is not None
    assert warning.severity is Severity.WARNING
    assert warning.problem == f"{text} has no unit and is read as {text} GiB"
    assert warning.hint == f"write {text}GiB, or {text}MiB"


@MEMORY_KEYS
@pytest.mark.parametrize("text", ["64", "16384", "63GiB", "63M"])
def test_other_amounts_of_memory_have_no_warning(key: str, text: str) -> None:
    assert check_config(f"{HEAD}  run: b\n  {key % text}\n").problems == ()


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "0", "16Gb", "16 Gb", "16Mib", "1e3", "1,5G", "16 G iB", "\u0661G", "9" * 50]
)
def test_other_texts_are_not_memory(text: str) -> None:
    with pytest.raises(BadText):
        parse_memory(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [*(("90", 90), ("30s", 30), ("10m", 600), ("2h", 7200), ("1d", 86400), ("1h30m", 5400), ("1.5h", 5400), ("0", 0))],
)
def test_durations_are_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert load_config(f"{HEAD}  run: b\n  stop_grace: {text}\n").train.policy.stop_grace == seconds


@pytest.mark.parametrize("text", ["", "x", "-1", "1w", "22:22", "1H", "s", "11y", "4000d", "1 m s"])
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(BadText):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.1", ("0.1",)),
        ("[1e-6, 1.10, 012, yes, 22:22, null, ~]", ("1e-6", "1.10", "012", "yes", "22:22", "null", "~")),
        ('["", "a b", \'$x; rm\']', ("", "a b", "$x; rm")),
        ("{range: {min: 2, max: 6, step: 1}}", ("2", "3", "4", "5", "6")),
        ("{range: {min: 0.1, max: 0.5, step: .1}}", ("0.1", "0.2", "0.3", "0.4", "0.5")),
        ("{range: {min: 1e-6, max: 3e-6, step: 1e-6}}", ("1e-6", "2e-6", "3e-6")),
        ("{range: {min: -1, max: 1, step: 0.5}}", ("-1.0", "-0.5", "0.0", "0.5", "1.0")),
        ("{range: {min: 1, max: 1, step: 1}}", ("1",)),
        ("{range: {min: 100, max: 1e3, step: 450}}", ("100", "550", "1000")),
    ],
)
def test_values_of_a_parameter_stay_as_written(text: str, values: tuple[str, ...]) -> None:
    assert _parameter(text) == values


def test_a_version_stays_as_written() -> None:
    assert _tensorflow("{version: 1.10}") == TensorFlow("1.10")
    assert _tensorflow("{version: 2}").version == "2"


def test_defaults_are_noted() -> None:
    spec = load_config(EXAMPLES["the smallest"])
    assert spec.train == Train(run=("python t.py",), image="python:3.11")
    assert spec.notes == (
        "train.resources.cpus is not set: each job is sure to get 1 core",
        "train.resources.mem is not set: each job is sure to get 1024 MiB of memory",
    )
    assert load_config(EXAMPLES["framework without its section"]).notes[2:] == (
        "train.tensorflow.version is not set: it is 2.21.0",
    )
    assert load_config(EXAMPLES["image with install"]).notes == ()


def test_resources_of_roles_come_from_train_key_by_key() -> None:
    found = _train("all roles").tensorflow
    assert found is not None
    assert found.tensorboard
    assert found.distributed == Distributed(
        workers=3,
        ps=2,
        chief=ChiefKey.CHIEF,
        master_resources=Resources(2.0, 8192, 1),
        worker_resources=Resources(2.0, 4096, 2),
        ps_resources=Resources(2.0, 16384, 0),
        evaluator_resources=Resources(1.0, 4096, 1),
    )


@pytest.mark.parametrize(
    ("section", "chief"),
    [
        ("{distributed: {worker: 2}}", ChiefKey.CHIEF),
        ("{version: 2.21.0-gpu, distributed: {worker: 2}}", ChiefKey.CHIEF),
        ("{version: latest, distributed: {worker: 2}}", ChiefKey.CHIEF),
        ("{version: 1.15, distributed: {worker: 2}}", ChiefKey.MASTER),
        ("{version: 0.12.1, distributed: {worker: 2}}", ChiefKey.MASTER),
        ("{version: 1.15, distributed: {worker: 2, chief: chief}}", ChiefKey.CHIEF),
        ("{distributed: {worker: 2, chief: worker}}", ChiefKey.WORKER),
    ],
)
def test_the_key_of_the_first_worker_follows_the_version(section: str, chief: ChiefKey) -> None:
    found = _tensorflow(section).distributed
    assert found is not None
    assert found.chief is chief


def test_an_official_image_gives_the_version() -> None:
    text = "project: x\ntrain: {framework: tensorflow, image: 'tensorflow/tensorflow:1.5.0', run: a, tensorflow: "
    found = load_config(text + "{distributed: {worker: 2}}}\n").train.tensorflow
    assert found is not None
    assert (found.version, found.distributed and found.distributed.chief) == ("1.5.0", ChiefKey.MASTER)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("{ps: 2}", (1, 2)),
        ("{worker: 3}", (3, 0)),
        ("{worker: {count: 3}, ps: {resources: {gpus: 0}}}", (3, 1)),
        ("{worker: 2, ps: {count: 0}}", (2, 0)),
    ],
)
def test_counts_of_workers_and_ps(text: str, counts: tuple[int, int]) -> None:
    found = _cluster(text)
    assert (found.workers, found.ps) == counts


def test_without_a_master_the_first_worker_is_like_the_others() -> None:
    found = _cluster("{worker: {count: 2, resources: {gpus: 1}}, chief: worker}")
    assert found.master_resources == found.worker_resources == Resources(gpus=1)
    assert _cluster("{worker: 2, evaluator: true}").evaluator_resources == Resources()
    assert _cluster("{worker: 2, evaluator: false}").evaluator_resources is None


def test_every_form_of_horovod_is_read() -> None:
    assert _tensorflow("{horovod: {workers: 2}}").horovod == Horovod(2, 1)
    assert _tensorflow("{horovod: {workers: {count: 2, processes: 4}}}").horovod == Horovod(2, 4)
    assert _tensorflow("{horovod: {workers: {count: 2}, processes: 4}}").horovod == Horovod(2, 4)
    assert _tensorflow("{horovod: {workers: 2, processes: 4}}").horovod == Horovod(2, 4)
    assert _tensorflow("{horovod: {count: 3, processes: 2}}").horovod == Horovod(3, 2)


@pytest.mark.parametrize("number", ["0.95", "5", "-1", "0.9500001", "1234567", "1234568", "1e-07", "0.1234567891"])
def test_a_condition_keeps_all_digits_of_its_value(number: str) -> None:
    """Its text is the key under which the server remembers that it was met."""
    condition = MetricCondition("loss", Relation.BELOW, float(number))
    assert float(str(condition).removeprefix("loss < ")) == float(number)
    assert str(MetricCondition("accuracy", Relation.ABOVE, 0.95)) == "accuracy > 0.95"


def test_the_remaining_keys_are_read() -> None:
    train = _train("all the rest")
    assert train.env == tuple(EnvVariable(*pair) for pair in [("A", "1"), ("B", "x y"), ("C", "yes"), ("D", "")])
    assert train.policy.retry == Retry(2, frozenset({RetryOn.HOST_LOST, RetryOn.OUT_OF_MEMORY}), RetryScope.ROLE)
    assert (train.policy.max_duration, train.policy.stop_grace, train.policy.priority) == (86400, 0, -5)
    assert train.finish_grace == 5400
    reached = (MetricCondition("accuracy", Relation.ABOVE, 0.95), MetricCondition("loss", Relation.AT_MOST, 0.001))
    assert train.policy.notify == NotifySection((State.FAILED, State.FINISHED), reached, ("team",))
    listed = _train("env as a list").env
    assert listed == (EnvVariable("TOKEN", None), EnvVariable("MODE", "fast"), EnvVariable("EMPTY", ""))
    assert load_config(f"{HEAD}  run: b\n  retry: 2\n").train.policy.retry == Retry(2)
    assert _train("image with install").install == ("apt-get -y update", "pip install -r requirements.txt")
    assert _train("anchors").install == _train("anchors").run == ("b",)


def test_defaults_never_exceed_the_limits_of_the_file() -> None:
    train = load_config(f"{HEAD}  run: b\n  limits: {{cpus: 0.5, mem: 256M}}\n").train
    assert (train.resources.cpus, train.resources.mem) == (0.5, 256)


@pytest.mark.parametrize(
    "image",
    ["a", "python:3.11", "my/tf:2", "localhost:5000/a/b:Tag", "registry.example.org/x_y/z--w", f"a@sha256:{'0' * 64}"],
)
def test_images_are_read(image: str) -> None:
    assert load_config(f"project: x\ntrain: {{image: '{image}', run: b}}\n").train.image == image


@pytest.mark.parametrize(
    "image", ["a b", "Python:3.11", "a//b", "a:", "-a", "a@sha256:12", "http://a/b", "a:b:c", "a_"]
)
def test_other_texts_are_not_images(image: str) -> None:
    (problem,) = check_config(f"project: x\ntrain: {{image: '{image}', run: b}}\n").problems
    assert problem.problem == f'"{image}" is not an image'


def test_labels_of_a_role_replace_those_of_train() -> None:
    found = load_config(
        """\
project: x
train:
  framework: tensorflow
  resources: {gpus: 1, labels: {rack: 7, gpu: a100}}
  tensorflow:
    distributed:
      worker: 2
      ps: {count: 1, resources: {gpus: 0, labels: {}}}
      evaluator: {resources: {labels: {gpu: t4}}}
  run: t
"""
    ).train.tensorflow
    assert found is not None
    assert found.distributed is not None
    assert found.distributed.worker_resources.labels == (("gpu", "a100"), ("rack", "7"))
    assert found.distributed.ps_resources.labels == ()
    assert found.distributed.evaluator_resources is not None
    assert found.distributed.evaluator_resources.labels == (("gpu", "t4"),)


def test_a_search_has_its_distributions_and_its_rule_of_stopping() -> None:
    text = """\
project: x
train:
  image: python:3.11
  run: t {{lr}} {{units}} {{layers}}
  parameters: {lr: {log: {min: 1e-5, max: 0.1}}, units: {int: {min: 16, max: 64, step: 16}}, layers: [2, 3]}
  search: {method: tpe, trials: 40, metric: val/acc, goal: maximize, seed: 7, stop: {method: asha}, max_failed: 0}
"""
    train = load_config(text).train
    lr, units, layers = train.parameters
    assert (lr.values, lr.distribution) == ((), Distribution(Scale.LOG, 1e-5, 0.1))
    assert units.distribution == Distribution(Scale.INT, 16.0, 64.0, 16.0)
    assert (layers.values, layers.distribution) == (("2", "3"), None)
    stop = StopRule(StopMethod.ASHA, after=1, factor=3)
    assert train.search == SearchSection(SearchMethod.TPE, "val/acc", Goal.MAXIMIZE, 40, 7, stop, 0)


def test_a_grid_search_tries_each_combination_once() -> None:
    text = "project: x\ntrain: {image: a, run: t, parameters: {a: [1, 2], b: [1, 2, 3]}, search: {SEARCH}}\n"
    whole = text.replace("SEARCH", "method: grid, metric: loss, goal: minimize")
    search = load_config(whole).train.search
    assert search is not None and search.trials == 6
    part = load_config(whole.replace("grid,", "grid, trials: 4,")).train.search
    assert part is not None and part.trials == 4


def test_a_distribution_decides_no_count() -> None:
    text = """\
project: x
train:
  framework: tensorflow
  tensorflow: {distributed: {worker: "{{w}}"}}
  run: t
  parameters: {w: {int: {min: 1, max: 3}}}
  search: {method: tpe, trials: 4, metric: m, goal: maximize}
"""
    (problem,) = check_config(text).problems
    assert "is a distribution, and counts and resources need values that are known" in problem.problem
    assert check_config(text.replace("{int: {min: 1, max: 3}}", "[1, 2]")).problems == ()


def test_options_that_fix_every_parameter_leave_no_search() -> None:
    text = """\
project: x
train:
  image: python:3.11
  run: t {{lr}} {{units}}
  parameters: {lr: {log: {min: 1e-5, max: 0.1}}, units: 16}
  search: {method: tpe, trials: 40, metric: accuracy, goal: maximize}
"""
    checked = check_config(text, overrides=Overrides((("lr", "0.01"),)))
    assert checked.spec is not None and checked.spec.train.search is None
    assert [problem.problem for problem in checked.problems] == [
        "every parameter has one value, so that one experiment runs without a search"
    ]
