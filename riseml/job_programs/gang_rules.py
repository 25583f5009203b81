"""The rules of a gang: which end of a job decides, and which other jobs end then.

| part    | jobs                                    | when the job exits                                     |
|---------|-----------------------------------------|--------------------------------------------------------|
| DECIDES | master; without one worker.1 or `train` | its exit code is the verdict                           |
| HELPS   | the other workers, evaluator            | 0: fine; otherwise the experiment fails, or is retried |
| SERVES  | ps                                      | before the verdict, the experiment fails or is retried |
| WATCHES | tensorboard                             | a warning, nothing more                                |

After a verdict FAILED every other job ends at once. After a verdict FINISHED the helpers have their grace to end by
themselves; the servers end as soon as no helper runs.

`control.verdict` applies these rules to the records of an experiment. The supervisor of a gang on a cluster applies
them to its roles, so that a server that was away finds the ends that it would have ordered.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

from typing import Any, NamedTuple

DECIDES = "DECIDES"  # names of members of `JobDuty`
HELPS = "HELPS"
SERVES = "SERVES"
WATCHES = "WATCHES"
FINISHED = "FINISHED"  # names of members of `State`
FAILED = "FAILED"
KILLED = "KILLED"
CASCADE = "CASCADE"  # names of members of `Reason`
NO_LONGER_NEEDED = "NO_LONGER_NEEDED"
_ENDED = (FINISHED, FAILED, KILLED)


class Member(NamedTuple):
    """One job of a gang."""

    part: str
    state: str  # one of FINISHED, FAILED and KILLED once it has ended; KILLED: something else ended it
    ended_at: Any = 0.0  # by the clock of the caller: a number or a datetime; no meaning before its end
    grace: float = 0.0  # seconds that a helper has after a verdict FINISHED


class Cause(NamedTuple):
    """What decides about a gang."""

    at: Any  # by the clock of the caller
    rank: int  # the lower one counts of two causes at the same instant
    state: str  # the verdict: FINISHED or FAILED
    place: "int | None"  # place of the job among the members; None: the time of the gang was over


def fails(part: str, exit_code: int, error: str) -> bool:
    """Return True when such an end of a job, which nothing else ended, is a failure.

    Args:
        part: what the job does for its gang.
        exit_code: of the job.
        error: why its host ended it; empty: it ended by itself.
    """
    return part == SERVES or exit_code != 0 or bool(error)


def find_first_cause(members: "list[Member]", over_at: Any = None) -> "Cause | None":
    """Return what happened first; of two causes at the same instant, the job that decides counts.

    Args:
        members: the jobs of the gang.
        over_at: when `max_duration` of the gang was over; None: it is not over, or the gang has no such limit.
    """
    causes = []
    for place, member in enumerate(members):
        if member.state == FAILED and member.part != WATCHES:
            causes.append(Cause(member.ended_at, -1 if member.part == DECIDES else place, FAILED, place))
    deciders = [place for place, member in enumerate(members) if member.part == DECIDES]
    if deciders and all(members[place].state == FINISHED for place in deciders):
        causes.append(Cause(max(members[place].ended_at for place in deciders), -1, FINISHED, deciders[0]))
    if over_at is not None:
        causes.append(Cause(over_at, 0, FAILED, None))
    return min(causes, key=lambda cause: (cause.at, cause.rank)) if causes else None


def find_endings(members: "list[Member]", verdict: str, waited: float) -> "list[str]":
    """Return for each job why it has to end now; an empty text: it has ended, or may go on.

    Args:
        members: the jobs of the gang.
        verdict: FINISHED or FAILED.
        waited: seconds since the verdict.
    """
    works = any(member.part in (DECIDES, HELPS) and member.state not in _ENDED for member in members)
    return [_find_ending(member, verdict, waited, works=works) for member in members]


def _find_ending(member: Member, verdict: str, waited: float, *, works: bool) -> str:
    if member.state in _ENDED:
        return ""
    if verdict != FINISHED:
        return CASCADE
    may_go_on = waited < member.grace if member.part == HELPS else works and member.part != DECIDES
    return "" if may_go_on else NO_LONGER_NEEDED
