"""The project's files in the capsules of tests."""

from __future__ import annotations

from tests.support.archives import pack

ARCHIVE = pack({"riseml.yml": "project: x\n", "below/train.py": "print(1)\n"})
