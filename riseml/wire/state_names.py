"""The names of states, which several answers use."""

from __future__ import annotations

from typing import Literal

StateName = Literal["CREATED", "BUILDING", "PENDING", "STARTING", "RUNNING", "KILLED", "FAILED", "FINISHED"]
