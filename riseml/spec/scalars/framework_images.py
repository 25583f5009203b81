"""The packages of Python that the images of frameworks stand for, for environments without images."""

from __future__ import annotations

import re

_TENSORFLOW = re.compile(
    r"(?:docker\.io/)?tensorflow/tensorflow(?::(?:latest|(?P<version>\d+(?:\.\d+)*(?:rc\d+)?))(?:-(?:gpu|jupyter|py3))*)?"
)
_PYTORCH = re.compile(r"(?:docker\.io/)?pytorch/pytorch(?::(?:latest|(?P<version>\d+(?:\.\d+)*))(?:-[a-z0-9.-]+)?)?")
_VARIANTS = frozenset({"x86_64", "AMD64"})  # processors for which TensorFlow has a package without GPUs


def list_image_packages(image: str, *, gpus: bool, machine: str) -> tuple[str, ...]:
    """Return the packages that replace an image; none when the image is not of a framework.

    Args:
        image: as a riseml.yml or a framework names it.
        gpus: whether jobs may get GPUs.
        machine: the processor, as `uname -m` names it.

    Example:
        >>> list_image_packages("tensorflow/tensorflow:2.21.0", gpus=False, machine="x86_64")
        ('tensorflow-cpu==2.21.0', 'tensorboard')
    """
    torch = _PYTORCH.fullmatch(image)
    if torch is not None:
        return f"torch=={torch['version']}" if torch["version"] else "torch", "numpy"
    tensorflow = _TENSORFLOW.fullmatch(image)
    if tensorflow is None:
        return ()
    pin = f"=={tensorflow['version']}" if tensorflow["version"] else ""
    variant = "tensorflow[and-cuda]" if gpus else "tensorflow-cpu"
    return f"{variant if machine in _VARIANTS else 'tensorflow'}{pin}", "tensorboard"
