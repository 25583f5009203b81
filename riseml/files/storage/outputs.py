"""OUTPUT_DIR: one folder per experiment, shared by its jobs, owned by its user."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from riseml.base.errors import EngineError
from riseml.base.names import experiment_name
from riseml.files.storage.capsule_files import CapsuleFiles, add_capsule_files
from riseml.files.storage.owned_folders import open_owned_folder, replace_file
from riseml.model import Experiment, resolve_base
from riseml.planning.launch import StorageRoots, output_folder
from riseml.spec.pool.types import Volume
from riseml.spec.scalars.quantities import read_value
from riseml.wire.metrics import MetricView

RECORD = "riseml-configuration.yml"


def output_path(root: Path, experiment: Experiment) -> Path:
    """Return the experiment's output folder on this machine."""
    return root / output_folder(experiment)


def show_output(roots: StorageRoots, experiment: Experiment) -> str:
    """Return where the experiment's output is, for people: a folder of its hosts, or `volume NAME: folder`."""
    below = output_folder(experiment)
    if isinstance(roots.output, Volume):
        return f"volume {roots.output.name}: {below}"
    return f"{roots.output}/{below}"


def pack_output(experiment: Experiment, config: str, capsule: CapsuleFiles | None = None) -> bytes:
    """Return the output folder with the configuration as a tar, for a host whose files the server cannot write.

    Only the user's own folders are in it: unpacking also changes the owner of a folder that is there already.
    """
    owner = experiment.owner
    text = describe_run(experiment, config).encode()
    folder = output_folder(experiment)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in (*reversed(folder.parents[:-1]), folder):
            entry = tarfile.TarInfo(str(path))
            entry.type = tarfile.DIRTYPE
            entry.mode = 0o700
            entry.uid = owner.uid
            entry.gid = owner.gid
            tar.addfile(entry)
        entry = tarfile.TarInfo(str(folder / RECORD))
        entry.size = len(text)
        entry.mode = 0o644
        entry.uid = owner.uid
        entry.gid = owner.gid
        tar.addfile(entry, io.BytesIO(text))
        if capsule is not None:
            add_capsule_files(tar, folder, capsule, owner)
    return buffer.getvalue()


def prepare_output(root: Path, experiment: Experiment, config: str) -> Path:
    """Create the output folder for its owner alone, with the configuration of the experiment in it.

    Raises:
        EngineError: the folder cannot be created or written, or another user controls a part of its path (permanent).
    """
    folder = output_path(root, experiment)
    owner = experiment.owner
    try:
        with open_owned_folder(root, output_folder(experiment), owner) as opened:
            replace_file(opened, RECORD, describe_run(experiment, config).encode(), owner)
    except OSError as error:
        raise EngineError(
            f"OUTPUT_DIR {folder} cannot be written: {error.strerror or error}",
            "free space or change its owner; RISEML_OUTPUT chooses another root",
            permanent=True,
        ) from error
    return folder


def prepare_data(root: Path) -> None:
    """Create the data folder if it is missing.

    Raises:
        EngineError: it cannot be created (permanent).
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(
            f"the data folder {root} cannot be made: {error.strerror or error}",
            "make it, or choose another one in RISEML_DATA",
            permanent=True,
        ) from error


def describe_run(experiment: Experiment, config: str, results: Mapping[str, MetricView] | None = None) -> str:
    """Return RiseML's record: the configuration, the parameters of this experiment, the revision of the code.

    The record has only the names of variables: their values may be secrets. YAML 1.1 refuses a few texts that riseml
    accepts (a date that is in no calendar), and Python cannot print every number that YAML reads; then every value
    stays a text.

    Args:
        experiment: its record.
        config: the text of its riseml.yml.
        results: what it has reported by its end; None: it has not ended.
    """
    try:
        return _dump_record(experiment, _read_config(config, yaml.SafeLoader), results)
    except (yaml.YAMLError, ValueError, ArithmeticError):
        return _dump_record(experiment, _read_config(config, yaml.BaseLoader), results)


def _read_config(config: str, kind: type[yaml.SafeLoader | yaml.BaseLoader]) -> Any:
    """Return a riseml.yml as YAML reads it, with its parameters as `_show_parameter` has them: not 2.1 for 2.10."""
    loader: Any = kind(config)  # the stubs leave its methods untyped
    try:
        root = loader.get_single_node()
        document = loader.construct_document(root)
    finally:
        loader.dispose()
    parameters = _find_node(_find_node(root, "train"), "parameters")
    if parameters is not None:
        document["train"]["parameters"] = _show_parameters(parameters)
    return document


def _find_node(section: yaml.Node | None, key: str) -> yaml.Node | None:
    entries = section.value if isinstance(section, yaml.MappingNode) else ()
    return next((value for name, value in entries if name.value == key), None)


def _show_parameters(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {name.value: _show_parameters(inner) for name, inner in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_show_parameters(inner) for inner in node.value]
    return _show_parameter(node.value)


def _dump_record(experiment: Experiment, document: Any, results: Mapping[str, MetricView] | None) -> str:
    train = document.get("train")
    if isinstance(train, dict) and "env" in train:
        train["env"] = _variable_names(train["env"])
    image = resolve_base(experiment.plan.image, experiment.resolved)
    roles = {
        role: resolve_base(role_image, experiment.resolved).reference
        for role, role_image in experiment.plan.role_images
    }
    ended = {} if results is None else {"state": experiment.state.value, "results": _list_results(results)}
    record = {
        "experiment": f"{experiment.owner.user}.{experiment_name(experiment.number, experiment.sub)}",
        **_describe_lineage(experiment),
        "params": {name: _show_parameter(text) for name, text in experiment.plan.parameters},
        "revision": experiment.snapshot,
        "image": image.reference,
        "image_digest": image.resolved or None,
        **({"role_images": roles} if roles else {}),
        **ended,
        "config": document,
    }
    return yaml.dump(record, Dumper=_RecordDumper, sort_keys=False, allow_unicode=True)


def _describe_lineage(experiment: Experiment) -> dict[str, int | str]:
    """Return the generation of a trial of a population, and the trial whose files it begins with."""
    lineage = experiment.plan.lineage
    if lineage is None:
        return {}
    name = "" if lineage.parent is None else experiment_name(experiment.number, lineage.parent)
    return {"generation": lineage.generation, **({"parent": f"{experiment.owner.user}.{name}"} if name else {})}


class _QuotedText(str):
    """A text that is written in quotes, so that no reader of YAML 1.1 or 1.2 takes it for a number."""


class _RecordDumper(yaml.SafeDumper):
    """Writes quoted texts as they are."""


def _represent_text(dumper: _RecordDumper, text: _QuotedText) -> yaml.ScalarNode:
    style = "'" if text.isprintable() else '"'  # between single quotes, YAML folds some line breaks
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_RecordDumper.add_representer(_QuotedText, _represent_text)


def _show_parameter(text: str) -> bool | float | _QuotedText:
    """Return a parameter as a number, true or false where its text comes back from that; else the text in quotes."""
    value = read_value(text)
    return _QuotedText(value) if isinstance(value, str) else value


def _list_results(results: Mapping[str, MetricView]) -> dict[str, dict[str, float | int | None]]:
    """Return the numbers of each metric; a last value that is not finite is YAML's `.nan` or `.inf`."""
    return {
        name: {
            "last": float(summary["last"]),
            "last_step": summary["last_step"],
            "min": summary["min"],
            "min_step": summary["min_step"],
            "max": summary["max"],
            "max_step": summary["max_step"],
            "count": summary["count"],
        }
        for name, summary in results.items()
    }


def _variable_names(variables: object) -> list[str]:
    """Return the names of variables from either form of `env`."""
    rows = variables if isinstance(variables, (dict, list)) else []
    return [str(row).partition("=")[0] for row in rows]
