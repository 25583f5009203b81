"""The environment of a file: `image` and `install`."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import check_config, load_config


@pytest.mark.parametrize(
    "image",
    ["a", "python:3.11", "my/tf:2", "localhost:5000/a/b:Tag", "registry.example.org/x_y/z--w", f"a@sha256:{'0' * 64}"],
)
def test_images_are_read(image: str) -> None:
    assert load_config(f"project: x\ntrain: {{image: '{image}', run: b}}\n").train.image == image


@pytest.mark.parametrize(
    "image", ["a b", "Python:3.11", "a//b", "a:", "-a", "a@sha256:12", "http://a/b", "a:b:c", "a_"]
)
def test_other_texts_are_not_images(image: str) -> None:
    (problem,) = check_config(f"project: x\ntrain: {{image: '{image}', run: b}}\n").problems
    assert problem.problem == f'"{image}" is not an image'
