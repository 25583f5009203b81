"""The reference of riseml.yml."""

from __future__ import annotations

from pathlib import Path

from riseml.spec.config.reference import render_config_reference
from riseml.spec.schema.contract import CONFIG_CONTRACT

ROOT = Path(__file__).parents[4]
KEYS = dict(CONFIG_CONTRACT.walk())


def test_the_reference_is_generated() -> None:
    page = (ROOT / "docs" / "riseml-yml.md").read_text(encoding="utf-8")
    assert page == render_config_reference(), "run `python -m riseml.spec.config.reference > docs/riseml-yml.md`"
    names = (".".join(map(str, path)).replace(".0", "[]") for path in KEYS)
    assert all(f"`{name}`" in page or name.endswith("[]") for name in names)
