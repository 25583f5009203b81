"""Checks a manifest against the classes that Kubeflow publishes for its kinds: `published_models.py KIND`, and stdin.

It runs with the packages kubeflow-training and kubernetes, which are made from the published definitions: every key of
the manifest must be one of its class, with a value of its type, and no key may be missing that its class requires.
"""

from __future__ import annotations

import inspect
import json
import sys
from importlib import import_module
from typing import Any

_PLAIN: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "datetime": (str,),
}


def check(value: Any, kind: str, path: str) -> None:
    """Raise a ValueError unless a value has a type, as the classes write it: `list[V1Container]`."""
    if kind == "object":
        return
    if kind in _PLAIN:
        _require(isinstance(value, _PLAIN[kind]), path, f"is no {kind}")
    elif kind.startswith("list["):
        _require(isinstance(value, list), path, "is no list")
        for place, one in enumerate(value):
            check(one, kind[5:-1], f"{path}[{place}]")
    elif kind.startswith("dict("):
        _require(isinstance(value, dict), path, "is no map")
        for key, one in value.items():
            check(one, kind[5:-1].partition(", ")[2], f"{path}.{key}")
    else:
        _check_model(value, kind, path)


def _check_model(value: Any, kind: str, path: str) -> None:
    modules = (import_module("kubeflow.training.models"), import_module("kubernetes.client.models"))
    model = next(getattr(module, kind) for module in modules if hasattr(module, kind))
    names = {key: attribute for attribute, key in model.attribute_map.items()}
    for key, one in value.items():
        _require(key in names, path, f"has an unknown key {key}")
        check(one, model.openapi_types[names[key]], f"{path}.{key}")
    for attribute, key in model.attribute_map.items():
        is_required = "must not be `None`" in inspect.getsource(getattr(model, attribute).fset)
        _require(key in value or not is_required, path, f"has no {key}")


def _require(holds: bool, path: str, problem: str) -> None:  # noqa: FBT001  # what must hold
    if not holds:
        raise ValueError(f"{path} {problem}")


if __name__ == "__main__":
    check(json.load(sys.stdin), f"KubeflowOrgV1{sys.argv[1]}", sys.argv[1])
