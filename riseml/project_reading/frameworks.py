"""Which framework a project uses, and which version of it: by what its code imports and what it asks for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from riseml.base.records import dataclass
from riseml.project_reading.findings import CodePlace, Requirement, ScriptFacts
from riseml.spec.config.types import DEFAULT_JAX, DEFAULT_PYTORCH, DEFAULT_TENSORFLOW

_IMPORTS: Mapping[str, str] = {
    **dict.fromkeys(("torch", "torchvision", "torchaudio", "pytorch_lightning", "lightning", "accelerate"), "pytorch"),
    **dict.fromkeys(("transformers", "timm", "fastai", "diffusers", "peft", "trl", "deepspeed"), "pytorch"),
    **dict.fromkeys(("tensorflow", "keras", "tf_keras", "tensorflow_datasets"), "tensorflow"),
    **dict.fromkeys(("jax", "flax", "optax", "haiku", "equinox"), "jax"),
}
_PACKAGES: Mapping[str, str] = {
    **dict.fromkeys(("torch", "torchvision", "pytorch-lightning", "lightning", "accelerate", "timm"), "pytorch"),
    **dict.fromkeys(("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "keras", "tf-keras"), "tensorflow"),
    **dict.fromkeys(("jax", "flax", "optax"), "jax"),
}
_MAIN_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "pytorch": ("torch",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
    "jax": ("jax",),
}
_TENSORFLOW_TAGS = ("2.21.0", "2.20.0", "2.19.0", "2.18.0", "2.17.0", "2.16.1", "2.15.0", "2.14.0", "2.13.0", "2.12.0")
_PYTORCH_TAGS = (
    DEFAULT_PYTORCH,
    "2.8.0-cuda12.6-cudnn9-runtime",
    "2.7.1-cuda12.6-cudnn9-runtime",
    "2.7.0-cuda12.6-cudnn9-runtime",
    "2.5.1-cuda12.4-cudnn9-runtime",
    "2.5.0-cuda12.4-cudnn9-runtime",
    "2.4.1-cuda12.4-cudnn9-runtime",
    "2.4.0-cuda12.4-cudnn9-runtime",
    "2.3.1-cuda12.1-cudnn8-runtime",
    "2.3.0-cuda12.1-cudnn8-runtime",
    "2.2.2-cuda12.1-cudnn8-runtime",
    "2.2.1-cuda12.1-cudnn8-runtime",
    "2.2.0-cuda12.1-cudnn8-runtime",
    "2.1.2-cuda12.1-cudnn8-runtime",
    "2.1.0-cuda12.1-cudnn8-runtime",
    "2.0.1-cuda11.7-cudnn8-runtime",
    "2.0.0-cuda11.7-cudnn8-runtime",
    "1.13.1-cuda11.6-cudnn8-runtime",
)
_TAGS = {"pytorch": _PYTORCH_TAGS, "tensorflow": _TENSORFLOW_TAGS, "jax": (DEFAULT_JAX,)}
_DEFAULTS = {"pytorch": DEFAULT_PYTORCH, "tensorflow": DEFAULT_TENSORFLOW, "jax": DEFAULT_JAX}
_IN_IMAGE: Mapping[str, frozenset[str]] = {
    "pytorch": frozenset({"torch", "numpy"}),
    "tensorflow": frozenset({"tensorflow", "numpy", "keras", "tensorboard"}),
    "jax": frozenset({"jax", "jaxlib", "numpy", "scipy"}),
}
_PYPI_NAMES: Mapping[str, str] = {  # the packages that bring well-known modules, where no file names any
    **{"cv2": "opencv-python-headless", "sklearn": "scikit-learn", "PIL": "pillow", "yaml": "pyyaml"},
    **{"hydra": "hydra-core", "absl": "absl-py", "pytorch_lightning": "pytorch-lightning", "skimage": "scikit-image"},
    **{"tensorflow_datasets": "tensorflow-datasets", "gym": "gym", "haiku": "dm-haiku", "tf_keras": "tf-keras"},
    **{
        name: name
        for name in (
            *("numpy", "scipy", "pandas", "matplotlib", "seaborn", "tqdm", "torch", "torchvision", "torchaudio"),
            *("lightning", "accelerate", "transformers", "datasets", "evaluate", "tokenizers", "sentencepiece", "timm"),
            *("diffusers", "peft", "trl", "einops", "wandb", "mlflow", "tensorboard", "tensorboardX", "tensorflow"),
            *(
                "keras",
                "jax",
                "flax",
                "optax",
                "equinox",
                "xgboost",
                "lightgbm",
                "catboost",
                "optuna",
                "click",
                "typer",
            ),
            *("tyro", "fire", "rich", "omegaconf", "gymnasium", "requests", "h5py", "joblib", "nltk", "spacy"),
            *("statsmodels", "sympy", "numba", "polars", "pyarrow", "torchmetrics", "sacrebleu", "loguru", "tabulate"),
            *("ray", "boto3"),
        )
    },
}


@dataclass(frozen=True, slots=True)
class FrameworkChoice:
    """A framework, with where the project shows it."""

    name: str  # tensorflow, pytorch or jax
    place: CodePlace
    why: str
    further: tuple[str, ...] = ()  # other frameworks that the project uses


def choose_project_framework(
    scripts: Iterable[ScriptFacts], requirements: Iterable[Requirement]
) -> FrameworkChoice | None:
    """Return the framework of a project; None when it uses none.

    Args:
        scripts: the program first, then the modules that it imports.
        requirements: what the project asks for.
    """
    hits: dict[str, tuple[CodePlace, str]] = {}
    for script in scripts:
        for module, line in script.imports:
            name = _IMPORTS.get(module.partition(".")[0])
            if name is not None:
                hits.setdefault(name, (CodePlace(script.path, line), f"imports {module.partition('.')[0]}"))
    if not hits:
        for requirement in requirements:
            name = _PACKAGES.get(requirement.name)
            if name is not None:
                hits.setdefault(name, (requirement.place, f"asks for {requirement.name}{requirement.versions}"))
    if not hits:
        return None
    first = next(iter(hits))
    return FrameworkChoice(first, *hits[first], tuple(name for name in hits if name != first))


def choose_version(framework: str, requirements: Iterable[Requirement]) -> tuple[str, Requirement | None, str]:
    """Return a version that a project accepts, what asks for it, and a remark where no known version fits.

    The version is empty where the default one of riseml fits.
    """
    names = _MAIN_PACKAGES[framework]
    requirement = next((part for part in requirements if part.name in names and part.versions), None)
    if requirement is None:
        return "", None, ""
    try:
        specifiers = SpecifierSet(requirement.versions)
    except InvalidSpecifier:
        return "", None, ""
    default = _DEFAULTS[framework]
    for tag in (default, *_TAGS[framework]):
        if specifiers.contains(Version(tag.partition("-")[0])):
            return ("" if tag == default else tag), requirement, ""
    exact = next((part.version for part in specifiers if part.operator == "==" and "*" not in part.version), "")
    if exact and framework != "pytorch":  # the tag of an image of TensorFlow, or the version of the package jax
        return exact.partition("+")[0], requirement, ""
    remark = (
        f"{requirement.place} asks for {requirement.name}{requirement.versions}, and riseml knows no such image:"
        f" `version` is {default}; change it, or `image`"
    )
    return "", requirement, remark


def list_missing_packages(scripts: Iterable[ScriptFacts], framework: str, local: Iterable[str]) -> list[str]:
    """Return the packages that code imports and no image brings, for a project whose files name no package.

    Args:
        scripts: the program and the modules that it imports.
        framework: of the project; empty: none.
        local: names of the project's own modules.
    """
    present = {*sys.stdlib_module_names, *local, *_IN_IMAGE.get(framework, ()), "riseml", "horovod"}
    roots = [module.partition(".")[0] for script in scripts for module, _ in script.imports]
    missing = {root: _PYPI_NAMES[root] for root in roots if root and root not in present and root in _PYPI_NAMES}
    return sorted(set(missing.values()))
