"""Words that several shapes use."""

from __future__ import annotations

from typing import Literal

StateName = Literal["CREATED", "BUILDING", "PENDING", "STARTING", "RUNNING", "KILLED", "FAILED", "FINISHED"]
