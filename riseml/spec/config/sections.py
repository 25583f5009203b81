"""The sections of riseml.yml that have a few keys each: data, inputs, metrics, notify, save, and of the frameworks.

The warnings of `shell: sh` are here, too.
"""

from __future__ import annotations

import math
import re
import warnings

from riseml.base.metric_names import STEP, is_metric_name
from riseml.base.states import TERMINAL, State
from riseml.spec.config.command_lines import read_lines, read_shell
from riseml.spec.config.horovod_section import read_horovod
from riseml.spec.config.process_group import read_process_group, runs_command
from riseml.spec.config.role_resources import read_resources
from riseml.spec.config.types import (
    JAX,
    ChiefKey,
    DataSource,
    Distributed,
    Goal,
    InputSource,
    MetricCondition,
    NanRule,
    NotifySection,
    OnSection,
    ProcessGroup,
    PyTorch,
    Relation,
    Resources,
    SaveSection,
    Shell,
    StalledRule,
    TensorBoard,
    TensorFlow,
)
from riseml.spec.scalars.bash_words import find_bash_words
from riseml.spec.scalars.data_url import OBJECT_STORES, parse_data_url
from riseml.spec.scalars.globs import parse_glob, refuse_alternatives
from riseml.spec.scalars.input_url import parse_input_url
from riseml.spec.scalars.placeholders import variable_name
from riseml.spec.scalars.texts import NO_METRIC_NAME, BadText, quote_text
from riseml.spec.yaml.document import ScalarNode, find_word_position
from riseml.spec.yaml.problems import KeyPath, Severity, make_problem
from riseml.spec.yaml.values import SourceFile, read_section

_TRAIN: KeyPath = ("train",)
_DATA: KeyPath = ("train", "data")
_INPUTS: KeyPath = ("train", "inputs")
_METRICS: KeyPath = ("train", "metrics")
_NOTIFY: KeyPath = ("train", "notify")
_ON: KeyPath = ("train", "on")
_SAVE: KeyPath = ("train", "save")
_TENSORFLOW: KeyPath = ("train", "tensorflow")
_TENSORBOARD: KeyPath = (*_TENSORFLOW, "tensorboard")
_TENSORFLOW_DISTRIBUTED: KeyPath = (*_TENSORFLOW, "distributed")
_PYTORCH: KeyPath = ("train", "pytorch")
_PYTORCH_DISTRIBUTED: KeyPath = (*_PYTORCH, "distributed")
_JAX: KeyPath = ("train", "jax")
_SHELL_KEYS: tuple[KeyPath, ...] = (("run",), ("install",), ("image", "install"))

_SHORTEST_INTERVAL = 1.0  # seconds between two copies
_METRIC_CONDITION = re.compile(r"(.*\S) *(>=|<=|>|<) *(\S+)")
_WHOLE_BUCKET = re.compile(r"s3://[^/]*/*")
_TENSORFLOW_IMAGE = re.compile(r"(?:.*/)?tensorflow/tensorflow:([0-9][A-Za-z0-9_.-]*)")
_PROCESS_LAUNCHERS = re.compile(r"torchrun|torch\.distributed|accelerate|deepspeed|mpirun|multiprocessing|spawn")
_PYTHON_COMMAND = re.compile(r"\bpython[0-9.]*\b")
_MOST_SHELL_WARNINGS = 20  # warnings of one file


def read_data(file: SourceFile) -> tuple[DataSource, ...]:
    """Return the entries of `data`, which are fetched before the jobs start, in the order of the file; problems go to
    `file`.
    """
    sources: dict[str, DataSource] = {}
    for entry in file.items_at(_DATA):
        source = file.read((*entry, "from"), str)
        folder = file.read((*entry, "to"), str)
        if source is None or folder is None:
            continue
        try:
            url = parse_data_url(source)
        except BadText as bad:
            file.refuse((*entry, "from"), bad.problem, bad.hint)
            continue
        if folder in sources:
            problem = f"{sources[folder].url} has the same folder"
            file.refuse((*entry, "to"), problem, "give each entry a folder of its own")
            continue
        sources[folder] = DataSource(str(url), folder)
    return tuple(sources.values())


def read_inputs(file: SourceFile) -> tuple[InputSource, ...]:
    """Return the outputs of other experiments that the jobs read, in the order of the file; problems go to `file`."""
    sources: dict[str, InputSource] = {}
    for path, address in file.items_at(_INPUTS).items():
        name = str(path[-1])
        try:
            url = parse_input_url(str(address))
        except BadText as bad:
            file.refuse(path, bad.problem, bad.hint)
            continue
        variable = variable_name(name)
        if variable in sources:
            problem = f"{sources[variable].name} has the same variable, RISEML_INPUT_{variable}"
            file.refuse_key(path, problem, "give each input a name of its own")
            continue
        sources[variable] = InputSource(name, str(url))
    return tuple(sources.values())


def read_metrics(file: SourceFile) -> tuple[tuple[str, str], ...]:
    """Return the names of `metrics` and the patterns that find them in lines of output, in the order of the file;
    problems go to `file`.

    How long a pattern takes is not checked here: the server bounds the time that it takes for each line.
    """
    patterns: list[tuple[str, str]] = []
    for path, pattern in file.items_at(_METRICS).items():
        name = str(path[-1])
        problem, hint = _find_pattern_problem(pattern)
        if name != STEP and not is_metric_name(name):
            problem, hint = NO_METRIC_NAME
            file.refuse_key(path, problem.format(quote_text(name)), hint)
        elif problem:
            file.refuse(path, problem, hint)
        else:
            patterns.append((name, pattern))
    return tuple(patterns)


def _find_pattern_problem(pattern: str) -> tuple[str, str]:
    """Return what is wrong with a pattern, and what to do; two empty texts when nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FutureWarning: a later Python reads the pattern differently
            groups = re.compile(pattern).groups
    except re.error as error:
        return f"is not a regular expression: {error.msg}", "put a \\ before a character that stands for itself"
    except (OverflowError, RecursionError):
        return "is not a regular expression that Python can use", "write a shorter one"
    if groups == 0:
        return "has no group", "put the part that is the value in brackets, such as ([0-9.]+)"
    if groups > 1:
        return f"has {groups} groups", "put only the value in brackets; write (?:...) for other groups"
    return "", ""


def read_notify(file: SourceFile) -> NotifySection | None:
    """Return the `notify` section; None when the file has none, or when it is unusable. Problems go to `file`.

    The section says which events of an experiment are sent to webhooks. It names no address.
    """
    if not isinstance(file.value_at(_NOTIFY), dict):
        return None
    ends: list[State] = []
    reached: list[MetricCondition] = []
    remarks = False
    for path, text in file.items_at((*_NOTIFY, "on")).items():
        if text.upper() in {state.value for state in TERMINAL}:
            ends.append(State(text.upper()))
        elif text == "remark":
            remarks = True
        elif (condition := _read_condition(file, path, text)) is not None:
            reached.append(condition)
    names = file.items_at((*_NOTIFY, "to")).values()
    return NotifySection(
        tuple(dict.fromkeys(ends)), tuple(dict.fromkeys(reached)), tuple(dict.fromkeys(names)), remarks
    )


def _read_condition(file: SourceFile, path: KeyPath, text: str) -> MetricCondition | None:
    match = _METRIC_CONDITION.fullmatch(text.strip())
    if match is None:
        return None  # the schema has refused it
    if not is_metric_name(match[1]):
        problem, hint = NO_METRIC_NAME
        file.refuse(path, problem.format(quote_text(match[1])), hint)
        return None
    value = float(match[3])
    if not math.isfinite(value):
        file.refuse(path, f"{match[3]} is too large", "no metric reaches it")
        return None
    return MetricCondition(match[1], Relation(match[2]), value)


def read_on(file: SourceFile) -> OnSection:
    """Return the `on` section: what follows from metrics while the jobs run. Problems go to `file`."""
    names = file.items_at((*_ON, "metrics"))
    stalled = (*_ON, "stalled")
    metric = file.read((*stalled, "metric"), str)
    goal = file.read((*stalled, "goal"), Goal)
    patience = file.read((*stalled, "patience"), int)
    for place, name in {**names, **({(*stalled, "metric"): metric} if metric else {})}.items():
        if not is_metric_name(name):
            problem, hint = NO_METRIC_NAME
            file.refuse(place, problem.format(quote_text(name)), hint)
    rule = StalledRule(metric, goal, patience) if metric and goal and patience else None
    section = read_section(file, _ON, OnSection, metrics=tuple(dict.fromkeys(names.values())), stalled=rule)
    if section.metrics and section.nan is NanRule.REMARK:
        file.warn((*_ON, "metrics"), "`nan: remark` has no use for it", "write `nan: stop` or `nan: fail`")
    return section


def read_save(file: SourceFile) -> SaveSection | None:
    """Return the `save` section, where the output goes and how often; None when the file has none. Problems go to
    `file`.
    """
    to = file.value_at((*_SAVE, "to"))
    only = read_path_patterns(file, (*_SAVE, "only"))
    every = file.read((*_SAVE, "every"), float)
    if every is not None and every < _SHORTEST_INTERVAL:
        file.refuse((*_SAVE, "every"), "must be one second or more", "write for example `every: 5m`")
    if not isinstance(to, str):
        return None
    try:
        url = parse_data_url(to)
    except BadText as bad:
        file.refuse((*_SAVE, "to"), bad.problem, bad.hint)
        return None
    if url.scheme not in OBJECT_STORES:
        problem = f"outputs are saved in object stores, and {url.scheme.value}:// is not one"
        file.refuse((*_SAVE, "to"), problem, "write s3://bucket/folder, gs://bucket/folder or az://container/folder")
        return None
    return read_section(file, _SAVE, SaveSection, to=str(url), only=only)


def read_path_patterns(file: SourceFile, key: KeyPath) -> tuple[str, ...]:
    """Return the patterns of paths in a list; problems go to `file`."""
    patterns: list[str] = []
    for path, text in file.items_at(key).items():
        try:
            refuse_alternatives(text)
            parse_glob(text)
        except BadText as bad:
            file.refuse(path, bad.problem, bad.hint)
        else:
            patterns.append(text)
    return tuple(patterns)


def read_tensorflow(file: SourceFile, image: str | None, base: Resources) -> TensorFlow | None:
    """Return the `tensorflow` section; None when the file has none.

    Args:
        file: the file; problems go there.
        image: `train.image`, which replaces the image of TensorFlow.
        base: `train.resources`, the default of every role.
    """
    if file.value_at(_TENSORFLOW) is None:
        return None
    official = _TENSORFLOW_IMAGE.fullmatch(image or "")
    version = file.value_at((*_TENSORFLOW, "version")) or (official[1] if official else TensorFlow().version)
    return TensorFlow(
        version=version,
        tensorboard=_read_tensorboard(file),
        distributed=_read_tensorflow_distributed(file, version, base),
        horovod=read_horovod(file, _TENSORFLOW, image, base),
    )


def _read_tensorboard(file: SourceFile) -> TensorBoard | None:
    written = file.value_at(_TENSORBOARD)
    if not isinstance(written, dict):
        return TensorBoard() if written in (True, "true") else None
    section = read_section(file, _TENSORBOARD, TensorBoard)
    logdir = section.logdir
    if ".." in logdir.split("/"):
        file.refuse_key((*_TENSORBOARD, "logdir"), "leads out of OUTPUT_DIR", "write a folder below it, such as `logs`")
    if _WHOLE_BUCKET.fullmatch(logdir):
        hint = f"write a folder of it, such as `{logdir.rstrip('/')}/logs`"
        file.refuse_key((*_TENSORBOARD, "logdir"), "is a whole bucket, which TensorBoard does not read", hint)
    return section


def _read_tensorflow_distributed(file: SourceFile, version: str, base: Resources) -> Distributed | None:
    if not file.value_at(_TENSORFLOW_DISTRIBUTED):
        return None
    chief = _choose_chief(file, version)
    workers = _read_role_resources(file, "worker", base)
    master_path = (*_TENSORFLOW_DISTRIBUTED, "master")
    if chief is ChiefKey.WORKER and file.value_at(master_path) is not None:
        file.warn(master_path, "`chief: worker` has no master", "these resources go to worker.1")
    # with `chief: worker` the first worker has the resources of the other workers
    master = read_resources(file, (*master_path, "resources"), workers if chief is ChiefKey.WORKER else base)
    evaluator = file.value_at((*_TENSORFLOW_DISTRIBUTED, "evaluator"))
    return Distributed(
        workers=_read_role_count(file, "worker", 1),
        ps=_read_role_count(file, "ps", 0),
        chief=chief,
        master_resources=master,
        worker_resources=workers,
        ps_resources=_read_role_resources(file, "ps", base),
        evaluator_resources=_read_role_resources(file, "evaluator", base) if evaluator else None,
    )


def _read_role_resources(file: SourceFile, role: str, base: Resources) -> Resources:
    return read_resources(file, (*_TENSORFLOW_DISTRIBUTED, role, "resources"), base)


def _read_role_count(file: SourceFile, role: str, default: int) -> int:
    value = file.value_at((*_TENSORFLOW_DISTRIBUTED, role))
    if isinstance(value, dict):
        value = file.value_at((*_TENSORFLOW_DISTRIBUTED, role, "count")) or (0 if value.get("count") == 0 else 1)
    return default if value is None else int(value)


def _choose_chief(file: SourceFile, version: str) -> ChiefKey:
    path = (*_TENSORFLOW_DISTRIBUTED, "chief")
    old = re.match(r"[01](?![0-9])", version) is not None
    written = file.value_at(path)
    if written is None:
        return ChiefKey.MASTER if old else ChiefKey.CHIEF
    if written == "master" and not old:
        file.warn(
            path, f"TensorFlow {version} does not accept `master` in TF_CONFIG", "write `chief: chief`, or remove it"
        )
    elif written == "master" and file.value_at((*_TENSORFLOW_DISTRIBUTED, "evaluator")):
        file.warn(path, "TensorFlow refuses an evaluator beside a `master`", "riseml uses `chief` instead; remove it")
    return ChiefKey(written)


def read_pytorch(file: SourceFile, image: str | None, base: Resources) -> PyTorch | None:
    """Return the `pytorch` section; None when the file has none.

    Args:
        file: the file; problems go there.
        image: `train.image`, which replaces the image of PyTorch.
        base: `train.resources`, the default of every role.
    """
    if file.value_at(_PYTORCH) is None:
        if file.value_at(("train", "framework")) == "pytorch":
            _warn_of_single_process(file, base.gpus)
        return None
    version = file.value_at((*_PYTORCH, "version"))
    horovod = read_horovod(file, _PYTORCH, image, base)
    if image is None and horovod is None and version is not None and re.fullmatch(r"[0-9.]+", version):
        file.warn(
            (*_PYTORCH, "version"),
            f"pytorch/pytorch has no tag {version} without its CUDA",
            f"write the whole tag, such as `{version}-cuda12.4-cudnn9-runtime`",
        )
    distributed = _read_pytorch_distributed(file, base)
    if horovod is None and distributed is None:
        _warn_of_single_process(file, base.gpus)
    return read_section(file, _PYTORCH, PyTorch, distributed=distributed, horovod=horovod)


def _read_pytorch_distributed(file: SourceFile, base: Resources) -> ProcessGroup | None:
    group = read_process_group(file, _PYTORCH_DISTRIBUTED, base)
    if group is not None and group.processes is None:
        _warn_of_single_process(file, max(group.master_resources.gpus, group.worker_resources.gpus))
    if group is not None and (group.processes or 1) > 1 and not runs_command(file, _PROCESS_LAUNCHERS):
        problem = f"`run` starts one process in each container, not {group.processes}"
        hint = "write `torchrun train.py` instead of `python train.py`: it starts them"
        file.warn((*_PYTORCH_DISTRIBUTED, "processes"), problem, hint)
    return group


def _warn_of_single_process(file: SourceFile, gpus: int) -> None:
    """Warn when Python alone gets several GPUs: the script may expect one process for each of them."""
    if gpus > 1 and runs_command(file, _PYTHON_COMMAND) and not runs_command(file, _PROCESS_LAUNCHERS):
        problem = f"`python` is one process for {gpus} GPUs, without LOCAL_RANK"
        hint = "write `torchrun train.py` for one process for each GPU, unless the script starts them or uses all GPUs"
        file.warn(("train", "run"), problem, hint)


def read_jax(file: SourceFile, base: Resources) -> JAX | None:
    """Return the `jax` section; None when the file has none.

    Args:
        file: the file; problems go there.
        base: `train.resources`, the default of every role.
    """
    if file.value_at(_JAX) is None:
        return None
    return read_section(file, _JAX, JAX, distributed=read_process_group(file, (*_JAX, "distributed"), base))


def warn_of_bash_words(file: SourceFile, roles: tuple[str, ...]) -> None:
    """Warn where sh was chosen and a line of `run` or `install` has a word that sh reads in another way than bash.

    Args:
        file: the file; warnings go there.
        roles: the names of the user's own roles.
    """
    common = read_shell(file, _TRAIN)
    shells = {_TRAIN: common} | {(path := (*_TRAIN, "roles", name)): read_shell(file, path, common) for name in roles}
    lines = [
        (path, line)
        for section, shell in shells.items()
        if shell is Shell.SH
        for key in _SHELL_KEYS
        for path, line in read_lines(file, (*section, *key)).items()
    ]
    left = _MOST_SHELL_WARNINGS
    for path, line in lines:
        node = file.nodes[path]
        for word in find_bash_words(line)[:left]:
            position = node.position
            if isinstance(node, ScalarNode):
                position = find_word_position(node, line, word.offset)
            problem = f"sh reads `{word.text}` in another way than bash: it {word.meaning}"
            hint = f"{word.instead}, or choose `shell: bash`"
            file.add_problem(make_problem(position, path, problem, hint, Severity.WARNING))
            left -= 1
