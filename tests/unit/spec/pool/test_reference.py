"""The reference of pool.yml."""

from __future__ import annotations

from pathlib import Path

from riseml.spec.pool.reference import render_pool_reference
from riseml.spec.schema.contract import POOL_CONTRACT

ROOT = Path(__file__).parents[4]
KEYS = dict(POOL_CONTRACT.walk())


def test_the_reference_is_generated() -> None:
    page = (ROOT / "docs" / "pool-yml.md").read_text(encoding="utf-8")
    assert page == render_pool_reference(), "run `python -m riseml.spec.pool.reference > docs/pool-yml.md`"
    assert all(f"`{'.'.join(map(str, keys)).replace('.0', '[]')}`" in page for keys in KEYS)
