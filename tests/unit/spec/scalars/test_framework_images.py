"""The packages that stand for the images of frameworks, where jobs run without images."""

from __future__ import annotations

import pytest

from riseml.spec.scalars.framework_images import list_image_packages


@pytest.mark.parametrize(
    ("image", "packages"),
    [
        ("tensorflow/tensorflow:2.21.0", ("tensorflow-cpu==2.21.0", "tensorboard")),
        ("docker.io/tensorflow/tensorflow:2.21.0-gpu", ("tensorflow-cpu==2.21.0", "tensorboard")),
        ("tensorflow/tensorflow:latest-gpu-jupyter", ("tensorflow-cpu", "tensorboard")),
        ("tensorflow/tensorflow", ("tensorflow-cpu", "tensorboard")),
        ("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", ("torch==2.5.1", "numpy")),
        ("pytorch/pytorch", ("torch", "numpy")),
        ("python:3.11", ()),
        ("me/tensorflow:2.21.0", ()),
        ("tensorflow/tensorflow:nightly", ()),
    ],
)
def test_an_image_of_a_framework_is_its_packages(image: str, packages: tuple[str, ...]) -> None:
    assert list_image_packages(image, gpus=False, machine="x86_64") == packages


@pytest.mark.parametrize(
    ("gpus", "machine", "package"),
    [(True, "x86_64", "tensorflow[and-cuda]"), (False, "aarch64", "tensorflow"), (True, "aarch64", "tensorflow")],
)
def test_tensorflow_has_packages_for_gpus_and_for_processors_of_one_kind(
    *, gpus: bool, machine: str, package: str
) -> None:
    assert list_image_packages("tensorflow/tensorflow", gpus=gpus, machine=machine)[0] == package
