"""The parts of the training operator's published schemas (kubeflow.org/v1) that an export uses, as JSON Schema.

From the CustomResourceDefinitions of kubeflow/training-operator: manifests/base/crds/kubeflow.org_tfjobs.yaml and
kubeflow.org_pytorchjobs.yaml. Keys that the definitions do not have are refused, as `kubectl --validate=strict` does.

The operator's admission webhooks (pkg/webhooks) refuse more than the definitions: names that are not DNS labels (RFC
1035), containers without an image, other types of replicas, and two masters. That is in here, too.
"""

from __future__ import annotations

from typing import Any


def _object(required: tuple[str, ...] = (), **keys: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": keys}


TEXT = {"type": "string"}
INT = {"type": "integer"}
QUANTITY = {
    "type": "string",
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
}
QUANTITIES = {"type": "object", "additionalProperties": QUANTITY}
VARIABLE = _object(
    ("name",),
    name=TEXT,
    value=TEXT,
    valueFrom=_object(secretKeyRef=_object(("key",), name=TEXT, key=TEXT)),
)
CONTAINER = _object(
    ("name", "image"),
    name=TEXT,
    image={"type": "string", "minLength": 1},
    command={"type": "array", "items": TEXT},
    workingDir=TEXT,
    env={"type": "array", "items": VARIABLE},
    resources=_object(requests=QUANTITIES, limits=QUANTITIES),
    volumeMounts={
        "type": "array",
        "items": _object(("mountPath", "name"), name=TEXT, mountPath=TEXT, readOnly={"type": "boolean"}),
    },
)
VOLUME = _object(
    ("name",),
    name=TEXT,
    persistentVolumeClaim=_object(("claimName",), claimName=TEXT, readOnly={"type": "boolean"}),
    emptyDir=_object(medium=TEXT, sizeLimit=QUANTITY),
)
POD = _object(
    ("containers",),
    containers={"type": "array", "items": CONTAINER},
    volumes={"type": "array", "items": VOLUME},
    securityContext=_object(runAsUser=INT, runAsGroup=INT, fsGroup=INT),
)
REPLICA = _object(
    replicas={"type": "integer", "minimum": 1},
    restartPolicy={"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
    template=_object(metadata={"type": "object"}, spec=POD),
)
FIRST = {"allOf": [REPLICA, {"properties": {"replicas": {"const": 1}}, "required": ["replicas"]}]}
REPLICAS = {
    "TFJob": _object(Chief=FIRST, Worker=REPLICA, PS=REPLICA, Evaluator=REPLICA),
    "PyTorchJob": _object(Master=FIRST, Worker=REPLICA),
}
POLICY = _object(cleanPodPolicy={"enum": ["All", "Running", "None"]}, backoffLimit=INT, activeDeadlineSeconds=INT)


def make_schema(kind: str, specs: str) -> dict[str, Any]:
    """Return the schema of a kind of jobs; `specs` is the key of its replicas."""
    return _object(
        ("apiVersion", "kind", "metadata", "spec"),
        apiVersion={"const": "kubeflow.org/v1"},
        kind={"const": kind},
        metadata=_object(
            ("name",), name={"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
        ),
        spec=_object((specs,), runPolicy=POLICY, **{specs: REPLICAS[kind]}),
    )
