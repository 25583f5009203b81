"""The models of GPUs, as users and drivers name them."""

from __future__ import annotations

import pytest

from riseml.control.placement.gpu_models import matches_model


@pytest.mark.parametrize(
    ("name", "wanted", "matches"),
    [
        ("NVIDIA A100-SXM4-40GB", "a100", True),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4", True),
        ("NVIDIA A100-SXM4-40GB", "a10", False),
        ("NVIDIA A10", "a100", False),
        ("NVIDIA GeForce RTX 3090", "rtx3090", True),
        ("NVIDIA GeForce RTX 3090", "3090", True),
        ("GeForce RTX 3090", "geforce rtx 3090", True),
        ("NVIDIA H100 80GB HBM3", "h100 80gb", True),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "a100", False),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "mig 3g.20gb", True),
        ("Tesla T4", "...", False),
    ],
)
def test_the_words_of_a_model_are_compared(name: str, wanted: str, *, matches: bool) -> None:
    assert matches_model(name, wanted) is matches
