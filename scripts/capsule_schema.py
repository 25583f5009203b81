"""Write schemas/capsule.schema.json from `riseml.wire.Capsule`: `python -m scripts.capsule_schema`."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter

from riseml import wire

SCHEMA = Path(__file__).parents[1] / "schemas" / "capsule.schema.json"


def make_schema() -> str:
    """Return the text of the schema. Other keys are allowed: later versions may add some."""
    schema = TypeAdapter(wire.Capsule).json_schema()
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "capsule.json",
        "description": "What is needed to run an experiment of riseml again: .riseml/capsule.json in its output.",
    }
    return json.dumps({**head, **{name: value for name, value in schema.items() if name not in head}}, indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(make_schema())
