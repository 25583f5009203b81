"""What users and team projects may use, and what they have used."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from annotated_types import Ge, Gt, Le, MaxLen
from typing_extensions import TypedDict

AccountKindName = Literal["user", "project"]
"""What has a quota, and by what usage is added up."""

LimitName = Literal["gpus", "cpus", "mem_mib", "running", "waiting", "project_bytes", "log_bytes", "output_bytes"]
"""What a quota limits."""

_Count = Annotated[int, Ge(0), Le(1_000_000)]
_Bytes = Annotated[int, Ge(0), Le(2**60)]


class QuotaAmounts(TypedDict):
    """What the experiments of an account use together; null: no limit, or not measured."""

    gpus: int | None
    cpus: float | None  # cores
    mem_mib: int | None
    running: int | None  # experiments that have a place
    waiting: int | None  # experiments that wait for one, or whose environment is made
    project_bytes: int | None  # files of projects
    log_bytes: int | None
    output_bytes: int | None


class QuotaView(TypedDict):
    """The quota of a user or a team project."""

    kind: AccountKindName
    name: str
    limits: QuotaAmounts
    used: QuotaAmounts
    own: list[LimitName]  # what an admin has set for this account; server.yml says the rest
    weight: float  # the hours of a project's experiments count divided by it


class QuotaList(TypedDict):
    """Quotas. `riseml quota` without a name shows those of the caller, and an admin gets those of all."""

    team: bool  # false: the server has one user, and no quotas
    quotas: list[QuotaView]


class QuotaChange(TypedDict):
    """What an admin changes about a quota. A limit of null is none; what is not named stays."""

    gpus: NotRequired[_Count | None]
    cpus: NotRequired[Annotated[float, Ge(0), Le(1_000_000)] | None]
    mem_mib: NotRequired[_Bytes | None]
    running: NotRequired[_Count | None]
    waiting: NotRequired[_Count | None]
    project_bytes: NotRequired[_Bytes | None]
    log_bytes: NotRequired[_Bytes | None]
    output_bytes: NotRequired[_Bytes | None]
    defaults: NotRequired[Annotated[list[LimitName], MaxLen(8)]]  # limits that are as server.yml says again
    weight: NotRequired[Annotated[float, Gt(0), Le(1000)]]


class UsageRow(TypedDict):
    """What the experiments of one user, or of one project, have used."""

    name: str  # of the user or the project
    experiments: int  # that had a place, or wait for their first one
    gpu_hours: float  # for which their places had GPUs
    gpu_hours_used: float | None  # of these, as the load of the GPUs was; null: no GPUs, or none was measured
    core_hours: float  # for which their places had cores
    waited: float  # seconds that they waited for their places, together
    waiting: int  # experiments that wait now


class UsageList(TypedDict):
    """What has been used since a time, the largest first."""

    by: AccountKindName
    since: str
    until: str
    rows: list[UsageRow]
