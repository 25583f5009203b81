"""Lines of `run`: the line breaks that their author meant."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import load_config
from tests.unit.spec.examples import HEAD


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("  run: |\n    a\n    b\n", "a\nb"),
        ("  run: |\n    a \\\n      --b\n", "a \\\n  --b"),
        ("  run: >-\n    a \\\n    --b\n", "a  --b"),
        ("  run: >-\n    a\n\n      --b\n", "a\n\n  --b"),
        ("  run: >-\n    for i in 1; do\n      echo $i\n    done\n", "for i in 1; do\n  echo $i\ndone"),
        ("  run: python a \\\n    --b c\\ d\n", "python a  --b c\\ d"),
        ("  run: 'a \\ b'\n", "a \\ b"),
    ],
    ids=["literal", "literal with backslash", "folded with backslash", "blank line", "shell block", "plain", "quoted"],
)
def test_folded_lines_of_a_command_become_one_command(lines: str, expected: str) -> None:
    assert load_config(HEAD + lines).train.run == (expected,)
