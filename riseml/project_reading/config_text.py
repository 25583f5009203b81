"""The text of a riseml.yml that fits a project: commented, and checked as `riseml validate` checks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import yaml

from riseml.base.records import dataclass
from riseml.project_reading.findings import ClusterKind, Proposal
from riseml.project_reading.proposal import drop_parameters, propose_config
from riseml.spec.config.loader import check_config
from riseml.spec.config.templates import write_project_name
from riseml.spec.config.types import DEFAULT_JAX, DEFAULT_PYTORCH, DEFAULT_TENSORFLOW
from riseml.spec.yaml.writing import TEXT, find_tag

_MOST_TRIES = 30
_WIDTH = 100  # columns of a line of `run`
_COMMENT_COLUMN = 32
_PLAIN = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./+@-]|:(?=\S))*")
_DEFAULTS = {"pytorch": DEFAULT_PYTORCH, "tensorflow": DEFAULT_TENSORFLOW, "jax": DEFAULT_JAX}
_SECTION = re.compile(r"^train\.(parameters|outputs|metrics|env|install|image|tensorflow|pytorch|jax)\b\.?(.*)")


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """A riseml.yml that fits a project."""

    text: str
    proposal: Proposal  # what the text has


def make_project_config(texts: Mapping[str, str], folder: str, program: str = "") -> ProjectConfig | None:
    """Return a riseml.yml that fits a project; None when the project shows no program, or its names fit no file.

    Args:
        texts: the files of the project, by path.
        folder: name of its folder.
        program: the script or notebook that the user names; empty: the best one.
    """
    proposal = propose_config(texts, program)
    for _ in range(_MOST_TRIES if proposal is not None else 0):
        assert proposal is not None, "the loop has no turn without one"
        text = write_project_config(proposal, folder)
        checked = check_config(text)
        if not checked.problems:
            return ProjectConfig(text, proposal)
        smaller = _leave_out(proposal, [problem.path for problem in checked.problems])
        if smaller == proposal:
            return ProjectConfig(text, proposal) if checked.spec is not None else None
        proposal = smaller
    return None


def _leave_out(proposal: Proposal, paths: Iterable[str]) -> Proposal:
    """Return the proposal without the parts that have problems."""
    for path in paths:
        match = _SECTION.match(path)
        if match is None:
            continue
        match match[1]:
            case "parameters":
                proposal = drop_parameters(proposal, [match[2].strip('"')])
            case "outputs":
                proposal = replace(proposal, outputs=())
            case "metrics":
                proposal = replace(proposal, metrics=())
            case "env":
                proposal = replace(proposal, variables=())
            case "install":
                proposal = replace(proposal, install=())
            case "image":
                proposal = replace(proposal, image="")
            case _:
                proposal = replace(proposal, version="")
    return proposal


def write_project_config(proposal: Proposal, folder: str) -> str:
    """Return the text of a proposal."""
    lines = [
        f"# What {_clean(proposal.program)} needs, as the files of this project say.",
        "# All keys: `riseml docs riseml-yml`",
        f"project: {write_project_name(folder)}",
        "",
        "train:",
        *_write_framework(proposal),
        *_write_install(proposal),
        "",
        *_with_comments(
            ("  resources:", "guaranteed to each job; it may use more"),
            ("    cpus: 1", ""),
            ("    mem: 2GiB", ""),
            (f"    gpus: {proposal.gpus}", _place_of(proposal, "gpus")),
        ),
        *_write_map("env", proposal.variables, _place_of(proposal, "image")),
        *_write_map("parameters", proposal.parameters, "for one run: riseml train -p NAME=VALUE", is_values=True),
        "",
        *(f"  # {_clean(comment)}" for comment in proposal.comments),
        *_write_run(proposal),
        *_write_outputs(proposal),
        *_write_metrics(proposal),
    ]
    return "\n".join(lines) + "\n"


def _write_framework(proposal: Proposal) -> list[str]:
    if not proposal.framework:
        return _with_comments((f"  image: {_scalar(proposal.image or 'python:3.11')}", _place_of(proposal, "image")))
    framework = proposal.framework
    rows = [(f"  framework: {framework}", _place_of(proposal, "framework"))]
    inner = []
    if not proposal.image and proposal.cluster is not ClusterKind.HOROVOD:
        version = proposal.version or _DEFAULTS[framework]
        inner.append((f'    version: "{version}"', _place_of(proposal, "version")))
    reason = _place_of(proposal, "distributed")
    match proposal.cluster:
        case None:
            jobs = []
        case ClusterKind.HOROVOD:
            jobs = [("    horovod:", reason), ("      workers: 2", "containers")]
        case ClusterKind.TENSORFLOW_MIRRORED:
            jobs = [
                ("    distributed:", reason),
                ("      worker: 2", "worker.1 and worker.2"),
                ("      chief: worker", ""),
            ]
        case ClusterKind.TENSORFLOW_PS | ClusterKind.ESTIMATOR:
            jobs = [("    distributed:", reason), ("      worker: 2", "master and worker.1"), ("      ps: 1", "")]
            jobs += [("      evaluator: true", "")] if proposal.has_evaluator else []
        case _:
            jobs = [("    distributed:", reason), ("      worker: 2", "master and worker.1")]
    inner += jobs
    rows += [(f"  {framework}:", ""), *inner] if inner else []
    if proposal.image:
        rows.append((f"  image: {_scalar(proposal.image)}", _place_of(proposal, "image")))
    return _with_comments(*rows)


def _write_install(proposal: Proposal) -> list[str]:
    if not proposal.install:
        return []
    head = _with_comments(("  install:", "steps that are built into the image once"))
    return ["", *head, *(f"    - {_scalar(step)}" for step in proposal.install)]


def _write_map(key: str, pairs: Iterable[tuple[str, str]], comment: str, *, is_values: bool = False) -> list[str]:
    rows = [(f"    {_scalar(name)}: {_scalar(value, keeps_numbers=is_values)}", "") for name, value in pairs]
    return ["", *_with_comments((f"  {key}:", comment), *rows)] if rows else []


def _write_run(proposal: Proposal) -> list[str]:
    words = list(proposal.words)
    if not all(word.isprintable() for word in words):
        return [f"  run: {json.dumps(' '.join(words))}"]
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > _WIDTH and not word.startswith(("{{", '"$')):
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return ["  run: >-", *(f"    {line}" for line in lines)]


def _write_outputs(proposal: Proposal) -> list[str]:
    if not proposal.outputs:
        return []
    listed = ", ".join(_scalar(pattern) for pattern in proposal.outputs)
    return ["", "  # written in the working folder, and moved into OUTPUT_DIR at the end", f"  outputs: [{listed}]"]


def _write_metrics(proposal: Proposal) -> list[str]:
    if proposal.metrics:
        rows = [f"    {_scalar(name)}: {_quote(pattern)}" for name, pattern in proposal.metrics]
        return ["", *_with_comments(("  metrics:", "found in the lines that the program prints")), *rows]
    if proposal.reports:
        return []
    advice = '  # metrics: {loss: "loss: ([0-9.]+)"}   # how `riseml plot` finds a metric in the output; or call'
    return ["", advice, "  # riseml.report(step=1, loss=0.3) in the program, after `import riseml`"]


def _with_comments(*rows: tuple[str, str]) -> list[str]:
    """Return lines with their comments, one below the other."""
    return [f"{line.ljust(_COMMENT_COLUMN - 1)} # {_clean(comment)}" if comment else line for line, comment in rows]


def _place_of(proposal: Proposal, label: str) -> str:
    """Return the place of a finding and what is there."""
    finding = next((row for row in proposal.findings if row.label == label and row.place is not None), None)
    return f"{finding.place} {finding.why}" if finding is not None else ""


def _clean(text: str) -> str:
    """Return a text that a comment may have."""
    return "".join(char if char.isprintable() else "?" for char in text)[:150]


def _scalar(text: str, *, keeps_numbers: bool = False) -> str:
    """Return a text as YAML has it, in quotes where it needs some."""
    tag = find_tag(yaml.SafeLoader(""), text)
    is_text = tag == TEXT
    is_number = tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    looks_plain = _PLAIN.fullmatch(text) or (is_text and re.fullmatch(r"[A-Za-z][\w ./=+<>-]*[\w./]", text))
    if (is_text and looks_plain and " #" not in text) or (keeps_numbers and is_number):
        return text
    return _quote(text)


def _quote(text: str) -> str:
    is_simple = text.isprintable() and "'" not in text
    return f"'{text}'" if is_simple else json.dumps(text, ensure_ascii=not text.isprintable())
