"""Read the file of another system and convert it to a riseml.yml: a job of Kubeflow, or a compose file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.base.text_yaml import load_texts
from riseml.capsules.compose_import import convert_compose
from riseml.capsules.foreign_fields import ForeignFields, ForeignValueError, ImportedConfig
from riseml.capsules.kubeflow_import import KUBEFLOW_JOBS, convert_kubeflow
from riseml.spec.yaml.document import parse_document

_HINT = "`kubectl get pytorchjob NAME -o yaml` writes the manifest of one"
_NAMES = "TFJob, PyTorchJob, JAXJob, MPIJob"
_UNSUPPORTED = {
    "XGBoostJob": "riseml has no framework that sets up XGBoost's tracker",
    "PaddleJob": "riseml has no framework for PaddlePaddle",
    "MXJob": "riseml has no framework for MXNet",
    "TrainJob": "its command is in the runtime of the cluster that it names",
}
_SEPARATOR = re.compile(r"^(?:---(?:[ \t].*)?|\.\.\.[ \t]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _ManifestDocument:
    """One document of a file."""

    kind: str  # as Kubernetes names it; empty: it has none
    value: dict[str, Any]


def import_manifest(text: str, name: str, folder: str = "") -> ImportedConfig:
    """Return the riseml.yml of a job of Kubeflow or of a compose file.

    Args:
        text: of the file.
        name: of the file, for messages.
        folder: the name of its folder, by which compose names a project.

    Raises:
        UsageError: it is not such a file, or riseml does not run such a job.
    """
    documents = list(_read_documents(text, name))
    jobs = [document for document in documents if document.kind in KUBEFLOW_JOBS]
    try:
        if not jobs and len(documents) == 1 and not documents[0].kind and "services" in documents[0].value:
            return convert_compose(ForeignFields(documents[0].value), folder)
        if len(jobs) != 1:
            raise _refuse(documents, jobs, name)
        converted = convert_kubeflow(ForeignFields(jobs[0].value), jobs[0].kind)
    except ForeignValueError as error:
        raise UsageError(f"{name}: {error.message}", "correct the file, then import it again") from None
    neighbours = tuple(f"the {document.kind or 'document without a kind'} beside it" for document in documents)
    index = documents.index(jobs[0])
    left_out = (*converted.left_out, *neighbours[:index], *neighbours[index + 1 :])
    return replace(converted, left_out=left_out)


def _refuse(documents: list[_ManifestDocument], jobs: list[_ManifestDocument], name: str) -> UsageError:
    """Return the error for a file that has not exactly one job."""
    if jobs:
        kinds = ", ".join(document.kind for document in jobs)
        return UsageError(f"{name} has several jobs ({kinds})", "write each one to a file of its own")
    for document in documents:
        if document.kind in _UNSUPPORTED:
            reason = _UNSUPPORTED[document.kind]
            return UsageError(
                f"{name} has a job of the kind {document.kind}: {reason}",
                "write `roles` by hand (`riseml docs frameworks`)",
            )
    kinds = ", ".join(document.kind for document in documents if document.kind)
    problem = f"has {kinds}" if kinds else "has no `kind` and no `services`"
    return UsageError(f"{name} {problem}: riseml imports a {_NAMES} of Kubeflow, or a compose file", _HINT)


def _read_documents(text: str, name: str) -> Iterator[_ManifestDocument]:
    """Yield the documents of a file, and those inside lists of Kubernetes."""
    for part in _SEPARATOR.split(text):
        if not any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines()):
            continue
        document = parse_document(part, name, merges=True)
        if document.problems:
            problem = document.problems[0].problem
            raise UsageError(
                f"{name} is not YAML that riseml reads: {problem}", "correct the file, then import it again"
            )
        value = load_texts(part.encode())
        values = value.get("items") if isinstance(value, dict) and value.get("kind") == "List" else [value]
        for body in values if isinstance(values, list) else []:
            if isinstance(body, dict):
                kind = body.get("kind")
                yield _ManifestDocument(kind if isinstance(kind, str) else "", body)
