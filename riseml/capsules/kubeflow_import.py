"""Convert a TFJob or PyTorchJob of Kubeflow to a riseml.yml, and list what is left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from riseml.errors import UsageError
from riseml.records import dataclass
from riseml.spec.config.parameters import is_set_by_riseml
from riseml.spec.yaml.document import parse_document

_KINDS = {"TFJob": ("tensorflow", "tfReplicaSpecs"), "PyTorchJob": ("pytorch", "pytorchReplicaSpecs")}
_UNITS = {
    **{"m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18},
    **{"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60},
}
"""The bytes of each unit of memory that Kubernetes knows."""

_MIB = 2**20
_QUANTITY = re.compile(r"(\d+(?:\.\d*)?(?:[eE]\d+)?)([A-Za-z]*)")
_TAKEN = frozenset({"name", "image", "command", "args", "env", "resources", "workingDir", "ports", "imagePullPolicy"})


@dataclass(frozen=True, slots=True)
class ImportedConfig:
    """A riseml.yml, and the parts of the manifest that it leaves out."""

    project: str
    text: str
    left_out: tuple[str, ...]


def import_manifest(text: str, name: str) -> ImportedConfig:
    """Return the riseml.yml of a manifest.

    Args:
        text: of the manifest, one YAML document.
        name: of its file, for messages.

    Raises:
        UsageError: it is not such a manifest.
    """
    document = parse_document(text, name)
    found = _load_manifest(text, name) if document.root is not None and not document.problems else None
    kind = found.get("kind") if isinstance(found, dict) else None
    if not isinstance(found, dict) or kind not in _KINDS:
        raise UsageError(f"{name} is neither a TFJob nor a PyTorchJob", "`kubectl get tfjob NAME -o yaml` writes one")
    try:
        return _convert(found, *_KINDS[str(kind)])
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(f"{name} is not a {kind} that the training operator takes: {error!r}") from None
    except OverflowError:
        raise UsageError(f"{name} is not a {kind} that the training operator takes: a number is too large") from None


def _load_manifest(text: str, name: str) -> Any:
    try:
        return yaml.safe_load(text)
    except ValueError as error:  # such as a date in the 99th month
        raise UsageError(
            f"{name} has an invalid value: {error}", "a text that looks like a date needs quotes"
        ) from None


def _convert(manifest: dict[str, Any], framework: str, specs: str) -> ImportedConfig:
    replicas = {role.lower(): one for role, one in manifest["spec"][specs].items()}
    lead = next(replicas[role] for role in ("chief", "master", "worker") if role in replicas)
    container = _find_container(lead, framework)
    counts = {role: int(one.get("replicas", 1)) for role, one in replicas.items()}
    project = re.sub(r"[^A-Za-z0-9_-]+", "-", str(manifest["metadata"]["name"]))
    train: dict[str, Any] = {"framework": framework, "image": str(container["image"]), "run": _make_run(container)}
    train["resources"] = _read_resources(container)
    variables = [_read_variable(one) for one in container.get("env", []) if not _is_own(one, framework)]
    if variables:
        train["env"] = variables
    cluster = _make_cluster(counts, framework)
    if cluster:
        train[framework] = {"distributed": cluster}
    text = yaml.safe_dump({"project": project, "train": train}, sort_keys=False, allow_unicode=True)
    return ImportedConfig(project, text, tuple(_list_left_out(replicas, container, framework)))


def _make_cluster(counts: Mapping[str, int], framework: str) -> dict[str, Any]:
    lead = counts.get("chief", 0) + counts.get("master", 0)
    workers = lead + counts.get("worker", 0)
    cluster: dict[str, Any] = {"worker": workers}
    if framework == "pytorch":
        return cluster if workers > 1 else {}
    if counts.get("ps"):
        cluster["ps"] = counts["ps"]
    if counts.get("evaluator"):
        cluster["evaluator"] = True
    if not lead:
        cluster["chief"] = "worker"
    return cluster if workers > 1 or len(cluster) > 1 + (not lead) else {}


def _find_container(replica: dict[str, Any], name: str) -> dict[str, Any]:
    containers: list[dict[str, Any]] = replica["template"]["spec"]["containers"]
    return next((one for one in containers if one.get("name") == name), containers[0])


def _make_run(container: dict[str, Any]) -> str:
    """Return the command as a line of a shell."""
    words = [str(word) for word in (*container.get("command", []), *container.get("args", []))]
    if not words:
        raise ValueError("it has no command, and riseml runs none of an image")
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash") and re.fullmatch("-[a-z]*c", words[1]):
        line = words[2]
    else:
        line = shlex.join(words)
    folder = container.get("workingDir")
    return f"cd {shlex.quote(str(folder))}\n{line}" if folder not in (None, "/code") else line


def _read_resources(container: dict[str, Any]) -> dict[str, Any]:
    wanted = container.get("resources", {})
    amounts = {**wanted.get("limits", {}), **wanted.get("requests", {})}
    found: dict[str, Any] = {}
    if "cpu" in amounts:
        text = str(amounts["cpu"])
        found["cpus"] = float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    if "memory" in amounts:
        match = _QUANTITY.fullmatch(str(amounts["memory"]))
        if match is None:
            raise ValueError(f"{amounts['memory']!r} is not an amount of memory")
        found["mem"] = f"{max(1, round(float(match[1]) * _UNITS[match[2]] / _MIB))}MiB"
    gpus = {**wanted.get("requests", {}), **wanted.get("limits", {})}.get("nvidia.com/gpu")
    if gpus is not None:
        found["gpus"] = int(gpus)
    return found or {"cpus": 1.0}


def _read_variable(one: dict[str, Any]) -> str:
    """Return a variable. When its value is elsewhere (a secret), only the name: it is passed on from the user's
    environment."""
    return str(one["name"]) if "valueFrom" in one else f"{one['name']}={one.get('value', '')}"


def _is_own(one: dict[str, Any], framework: str) -> bool:
    """Return True for a variable that riseml sets in each job, whatever a riseml.yml says."""
    return is_set_by_riseml(str(one["name"]), framework)


def _list_left_out(replicas: dict[str, Any], container: dict[str, Any], framework: str) -> Iterator[str]:
    yield from (f"{key} of the container" for key in sorted(set(container) - _TAKEN))
    own = [str(one["name"]) for one in container.get("env", []) if _is_own(one, framework)]
    if own:
        yield f"variables that riseml itself sets: {', '.join(own)}"
    for role, one in replicas.items():
        pod = one["template"]["spec"]
        if "volumes" in pod:
            yield f"volumes of {role}: jobs have OUTPUT_DIR, and DATA_DIR to read"
        if len(pod["containers"]) > 1:
            yield f"further containers of {role}"
        other = _find_container(one, framework)
        if any(other.get(key) != container.get(key) for key in ("image", "command", "args", "env", "resources")):
            yield f"what {role} has of its own: image, command, variables or resources"
