"""Why a run makes no progress: from stacks that were read a few times, some seconds apart, to one sentence. Pure.

Each rank stands for itself by its main process (`folding`). The rules come in the order in which they are certain:

1. What the kernel says: a process that is stopped, that a disk or a mounted folder keeps in the kernel, or that has
   ended without that anything noticed it.
2. What has run out: the disk, or the files that a process may have open.
3. Ranks whose stacks differ from sample to sample are at work.
4. What differs: where some ranks wait for the others in a collective, the one that is elsewhere keeps them. Ranks in
   different collectives do not call the same ones in the same order.
5. What all of them do.

A sentence names the rank, what it does, and in how many of the samples; `certainty` says how far to trust it.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from riseml.base.amounts import count_noun, format_bytes
from riseml.base.records import dataclass
from riseml.diagnosis.folding import StackPlace, find_main_processes, find_main_thread, find_place
from riseml.diagnosis.known_waits import KnownWait, WaitKind, find_channel, find_wait
from riseml.diagnosis.stacks import ProcessStacks, StackFrame

_STOPPED = ("T", "t")
_FULL_DISK = 1 << 20  # bytes
_NEAR_LIMIT = 0.95  # part of the memory that a job may use
_LESS_FILES = 4  # open files fewer than the limit
_THROTTLED = 0.2  # part of the time
_MOST_NAMED = 4  # ranks that a sentence names
_MOST_HELPERS = 3  # places of other processes that are told


class StallCause(enum.Enum):
    """Why a run makes no progress."""

    STOPPED = "stopped"  # a signal has stopped a process
    KERNEL = "kernel"  # a process waits in the kernel for a disk or a mounted folder
    ENDED = "ended"  # the main process of a job has ended, and nothing has noticed it
    DISK_FULL = "disk-full"
    OPEN_FILES = "open-files"  # a process may not open more files
    ABSENT = "absent"  # a job is gone while the others wait for it
    LEFT_LOOP = "left-loop"  # a rank is elsewhere while the others wait for it in a collective
    ORDER = "order"  # ranks are in different collectives
    COLLECTIVE = "collective"  # all ranks wait for each other
    MEETING = "meeting"  # a job waits for others that have not come
    DATA = "data"
    LOCK = "lock"
    FILE = "file"
    NETWORK = "network"
    CHILD = "child"
    QUEUE = "queue"
    SLEEP = "sleep"
    BUSY = "busy"  # it computes in the same place
    WORKS = "works"  # what it does changes
    UNKNOWN = "unknown"


class Certainty(enum.Enum):
    """How far a diagnosis is to be trusted."""

    CERTAIN = "certain"  # the kernel says so
    LIKELY = "likely"  # every sample says so
    POSSIBLE = "possible"  # samples differ, or something could not be read


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run beside its stacks."""

    disk_free: int | None = None  # bytes that are free where OUTPUT_DIR is; None: not known
    memory: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # by job: bytes in use, and its limit
    throttled: Mapping[str, float] = field(default_factory=dict)  # by job: part of the time without the processor
    traffic: Mapping[str, float] = field(default_factory=dict)  # by job: bytes per second of the network, both ways
    gpus: Mapping[str, float] = field(default_factory=dict)  # by job: how busy its GPUs are, in per cent
    unread: Mapping[str, str] = field(default_factory=dict)  # jobs whose processes could not be read -> why
    absent: Mapping[str, str] = field(default_factory=dict)  # jobs that do not run -> what is known: `has ended`
    silent: Mapping[str, float] = field(default_factory=dict)  # by job: seconds since its last sign of progress


NO_FACTS = RunFacts()


@dataclass(frozen=True, slots=True)
class RankFinding:
    """What one rank does, as its samples say."""

    rank: str  # `worker.2`; `worker.2 rank 5` where a job has several
    job: str  # `worker.2`
    kind: WaitKind | None  # None: no known wait
    call: str  # `all_reduce`; empty: not known
    place: StackPlace | None  # None: no stack is known
    words: str  # what it does: `it waits for data`
    samples: int  # that agree
    of: int  # samples with this rank
    state: str = ""  # of its main process, as the kernel names it
    is_idle: bool = False  # it waits in a call of the kernel
    moves: bool = False  # its samples differ in a place
    helpers: tuple[str, ...] = ()  # what other processes of the rank do


@dataclass(frozen=True, slots=True)
class StallDiagnosis:
    """Why a run makes no progress."""

    cause: StallCause
    certainty: Certainty
    sentence: str
    culprits: tuple[str, ...]  # ranks; empty: none differs
    evidence: tuple[str, ...]  # a sentence each
    ranks: tuple[RankFinding, ...]


def diagnose(samples: Sequence[Sequence[ProcessStacks]], facts: RunFacts = NO_FACTS) -> StallDiagnosis:
    """Return why a run makes no progress.

    Args:
        samples: the processes of all of its jobs, at a few moments.
        facts: what else is known.
    """
    ranks = _find_ranks(samples)
    for rule in _RULES:
        answer = rule(ranks, samples, facts)
        if answer is not None:
            cause, certainty, sentence, culprits = answer
            return StallDiagnosis(cause, certainty, sentence, culprits, _list_evidence(ranks, facts), ranks)
    why = next(iter(facts.unread.values()), "")
    return StallDiagnosis(
        StallCause.UNKNOWN,
        Certainty.POSSIBLE,
        f"nothing could be read of its processes{': ' if why else ''}{why}",
        (),
        _list_evidence(ranks, facts),
        ranks,
    )


_Answer = tuple[StallCause, Certainty, str, tuple[str, ...]]
_Samples = Sequence[Sequence[ProcessStacks]]


def _find_ranks(samples: _Samples) -> tuple[RankFinding, ...]:
    rows: dict[str, list[ProcessStacks]] = {}
    for sample in samples:
        for name, process in find_main_processes(sample):
            rows.setdefault(name, []).append(process)
    last = samples[-1] if samples else ()
    return tuple(_find_rank(name, processes, last) for name, processes in rows.items())


def _find_rank(name: str, processes: Sequence[ProcessStacks], last: Iterable[ProcessStacks]) -> RankFinding:
    # A loaded machine reads the stacks of a process too late now and then: that is no other place.
    looks = [_look_at(process) for process in processes if not process.trouble] or list(map(_look_at, processes))
    chosen, count = Counter(look.key for look in looks).most_common(1)[0]
    look = next(look for look in reversed(looks) if look.key == chosen)
    process = processes[-1]
    return RankFinding(
        rank=name,
        job=process.job,
        kind=look.kind,
        call=look.call,
        place=look.place,
        words=look.words,
        samples=count,
        of=len(looks),
        state=process.state,
        is_idle=all(look.is_idle for look in looks),
        moves=count < len(looks),
        helpers=_list_helpers(process, last),
    )


@dataclass(frozen=True, slots=True)
class _RankLook:
    """What one sample says of a rank."""

    kind: WaitKind | None
    call: str
    place: StackPlace | None
    words: str
    is_idle: bool

    @property
    def key(self) -> tuple[object, ...]:
        """What the samples of a rank that does not move share: the line of a loop that computes may differ."""
        if self.kind is None and self.place is not None:
            return self.kind, self.place.function, self.place.file
        return self.kind, self.call, self.place


def _look_at(process: ProcessStacks) -> _RankLook:
    thread = find_main_thread(process)
    channel = find_channel(process.wait_channel)
    if thread is None:
        words = f"it does not show its stacks: {process.trouble}" if process.trouble else _describe_program(process)
        if channel is not None:
            words = f"it waits for {channel[1]} ({process.wait_channel})"
        return _RankLook(None if channel is None else channel[0], "", None, words, process.state != "R")
    place = find_place(thread.frames)
    wait = find_wait(thread.frames, is_idle=thread.is_idle)
    if wait is not None:
        row, frame = wait
        return _RankLook(row.kind, _shorten(frame), place, _describe_wait(row, frame, place), thread.is_idle)
    if thread.is_idle and channel is not None:
        return _RankLook(channel[0], "", place, f"it waits for {channel[1]} in {place}", thread.is_idle)
    words = f"it waits in {place}" if thread.is_idle else f"it computes in {place}"
    return _RankLook(None, "", place, words, thread.is_idle)


def _describe_program(process: ProcessStacks) -> str:
    program = process.command.split(" ")[0].rpartition("/")[2] or "a program"
    return f"it runs {program}, which is no Python program"


def _describe_wait(row: KnownWait, frame: StackFrame, place: StackPlace | None) -> str:
    where = f"{_shorten(frame)}" if place is None else str(place)
    match row.kind:
        case WaitKind.COLLECTIVE:
            return f"it waits for the other ranks in {where}"
        case WaitKind.MEETING:
            return f"it waits for its peers to come, in {where}"
        case WaitKind.SERVICE:
            return "it serves the others"
        case WaitKind.DATA:
            return f"it waits for data in {row.name}, {where}"
        case _:
            return f"it waits for {row.name} in {where}"


def _shorten(frame: StackFrame) -> str:
    return frame.function.rpartition(".")[2]


def _list_helpers(main: ProcessStacks, processes: Iterable[ProcessStacks]) -> tuple[str, ...]:
    """Return what the processes do that a rank has started, such as those of a DataLoader."""
    places: Counter[str] = Counter()
    for process in processes:
        if process.job == main.job and process.parent == main.pid and process.is_python:
            places[_look_at(process).words] += 1
    rows = places.most_common(_MOST_HELPERS)
    return tuple(
        f"{'a process' if count == 1 else f'{count} processes'} that it has started: {words}" for words, count in rows
    )


def _check_stopped(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return the processes that a signal has stopped."""
    stopped = [process for process in (samples[-1] if samples else ()) if process.state in _STOPPED]
    if not stopped:
        return None
    names = tuple(sorted({process.job for process in stopped}))
    sentence = f"{_join(names)} {_is(names)} stopped by a signal: SIGCONT lets process {stopped[0].pid} of it go on"
    return StallCause.STOPPED, Certainty.CERTAIN, sentence + _tell_others(ranks, names), names


def _check_blocked(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return the ranks that a disk or a mounted folder keeps in the kernel."""
    blocked = [rank for rank in ranks if rank.state == "D" and _is_always(rank.rank, samples, "D")]
    if not blocked:
        return None
    names = tuple(rank.rank for rank in blocked)
    channel = _find_channel_name(blocked[0], samples)
    row = find_channel(channel)
    device = "a disk or a mounted folder" if row is None else row[1]
    where = f" ({channel})" if channel else ""
    where += f", in {blocked[0].place}" if blocked[0].place is not None else ""
    sentence = (
        f"{_join(names)} {_wait(names)} in the kernel for {device}{where}, and cannot be ended before that answers"
    )
    return StallCause.KERNEL, Certainty.CERTAIN, sentence + _tell_others(ranks, names), names


def _check_ended(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return the ranks whose main process has ended, while its parent has not noticed it."""
    names = tuple(rank.rank for rank in ranks if rank.state == "Z")
    if not names:
        return None
    sentence = f"{_join(names)} {_has(names)} ended, and nothing has noticed it{_tell_others(ranks, names)}"
    return StallCause.ENDED, Certainty.CERTAIN, sentence, names


def _check_disk(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return that the disk of the output is full."""
    if facts.disk_free is None or facts.disk_free >= _FULL_DISK:
        return None
    elsewhere = [rank for rank in ranks if rank.kind not in (WaitKind.COLLECTIVE, WaitKind.SERVICE)]
    names = tuple(rank.rank for rank in elsewhere)
    sentence = f"the disk of OUTPUT_DIR is full ({format_bytes(facts.disk_free)} free)"
    if elsewhere and elsewhere[0].place is not None:
        sentence += f"; {names[0]} is in {elsewhere[0].place}"
    return StallCause.DISK_FULL, Certainty.LIKELY, sentence, names


def _check_files(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return the jobs with a process that may not open more files."""
    short = [process for process in (samples[-1] if samples else ()) if _lacks_files(process)]
    if not short:
        return None
    names = tuple(dict.fromkeys(process.job for process in short))
    amount = f"{short[0].open_files:,} of {short[0].most_files:,} files open"
    place = next((rank.place for rank in ranks if rank.job == names[0]), None)
    where = f", in {place}" if place is not None else ""
    sentence = f"{_join(names)} {_has(names)} {amount}, and can open no more{where}{_tell_others(ranks, names)}"
    return StallCause.OPEN_FILES, Certainty.LIKELY, sentence, names


def _lacks_files(process: ProcessStacks) -> bool:
    return 0 < process.most_files <= process.open_files + _LESS_FILES


def _check_works(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return that the ranks are at work, if each of them moves that does not only serve others."""
    names = [rank.rank for rank in ranks if rank.kind is not WaitKind.SERVICE]
    if not names or not all(rank.moves for rank in ranks if rank.kind is not WaitKind.SERVICE):
        return None
    return (
        StallCause.WORKS,
        Certainty.POSSIBLE,
        f"{_join(names)} {_is(names)} at work: what the stacks show changes",
        (),
    )


def _check_absent(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    waiting = [rank for rank in ranks if rank.kind in (WaitKind.COLLECTIVE, WaitKind.MEETING)]
    if not facts.absent or not waiting:
        return None
    names = tuple(facts.absent)
    sentence = f"{_join(names)} {facts.absent[names[0]]}{_tell_others(ranks, names)}"
    return StallCause.ABSENT, Certainty.LIKELY, sentence, names


def _check_left(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return the ranks that are elsewhere while others wait for them in a collective."""
    away = [rank for rank in ranks if rank.kind not in (WaitKind.COLLECTIVE, WaitKind.SERVICE)]
    if not away or not any(rank.kind is WaitKind.COLLECTIVE for rank in ranks):
        return None
    names = tuple(rank.rank for rank in away)
    doing = [f"{away[0].words} {_count_samples(away[0])}"]
    doing += [f"{rank.rank}: {rank.words}" for rank in away[1:_MOST_NAMED]]
    sentence = f"{_join(names)} left the loop: {'; '.join(doing)}{_tell_others(ranks, names)}"
    return StallCause.LEFT_LOOP, _rate(away), sentence, names


def _check_order(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return which ranks wait in other collectives than most, where all of them wait in one."""
    waiting = [rank for rank in ranks if rank.kind is WaitKind.COLLECTIVE]
    if len(waiting) < 2:
        return None
    groups: dict[tuple[str, StackPlace | None], list[RankFinding]] = {}
    for rank in waiting:
        groups.setdefault((rank.call, rank.place), []).append(rank)
    if len(groups) == 1:
        sentence = (
            f"all {len(waiting)} ranks wait for each other in {_name_call(waiting[0])}: none is late, so that the"
            " network between them, or a rank outside of this experiment, is the cause"
        )
        return StallCause.COLLECTIVE, Certainty.POSSIBLE, sentence, ()
    rows = sorted(groups.values(), key=len)
    rare, most = [tuple(rank.rank for rank in row) for row in (rows[0], rows[-1])]
    is_tie = len(rare) == len(most)
    opposite = f"{_join(most)} {_wait(most)}" if is_tie else "the others wait"
    sentence = (
        f"{_join(rare)} {_wait(rare)} in {_name_call(rows[0][0])}, and {opposite} in {_name_call(rows[-1][0])}:"
        " they do not call the same collectives in the same order"
    )
    culprits = tuple(rank.rank for row in rows for rank in row) if is_tie else rare
    return StallCause.ORDER, _rate(waiting), sentence, culprits


def _check_meetings(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    waiting = [rank for rank in ranks if rank.kind is WaitKind.MEETING]
    away = [rank for rank in ranks if rank.kind not in (WaitKind.MEETING, WaitKind.SERVICE)]
    if not waiting:
        return None
    call = _name_call(waiting[0])
    who = tuple(rank.rank for rank in waiting)
    if away:
        first = away[0]
        names = tuple(rank.rank for rank in away)
        sentence = (
            f"{_join(who)} {_wait(who)} for {_join(names)} in {call}, and {first.rank} does not come:"
            f" {first.words} {_count_samples(first)}"
        )
        return StallCause.MEETING, _rate(away), sentence, names
    sentence = (
        f"{_join(who)} {_wait(who)} for peers that never come, in {call}: an address, or the number of jobs that it was"
        " given (TF_CONFIG, WORLD_SIZE), does not fit the jobs that run"
    )
    return StallCause.MEETING, _rate(waiting), sentence, who


_CAUSES = {
    WaitKind.DATA: StallCause.DATA,
    WaitKind.LOCK: StallCause.LOCK,
    WaitKind.FILE: StallCause.FILE,
    WaitKind.NETWORK: StallCause.NETWORK,
    WaitKind.CHILD: StallCause.CHILD,
    WaitKind.QUEUE: StallCause.QUEUE,
    WaitKind.SLEEP: StallCause.SLEEP,
    WaitKind.COLLECTIVE: StallCause.COLLECTIVE,
}


def _check_all(ranks: Sequence[RankFinding], samples: _Samples, facts: RunFacts) -> _Answer | None:
    """Return what the ranks do that do not only serve others."""
    acting = [rank for rank in ranks if rank.kind is not WaitKind.SERVICE] or list(ranks)
    if not acting:
        return None
    acting = sorted(acting, key=lambda rank: -facts.silent.get(rank.job, 0.0))
    first = next((rank for rank in acting if rank.kind is not None), acting[0])
    groups: dict[str, list[RankFinding]] = {}
    for rank in [first, *(rank for rank in acting if rank is not first)]:
        groups.setdefault(rank.words, []).append(rank)
    rows = list(groups.values())[:_MOST_NAMED]
    helpers = "".join(f"; {text}" for text in first.helpers[:1])
    sentence = "; ".join(
        f"{_join([rank.rank for rank in row])}: {row[0].words} {_count_samples(row[0])}" for row in rows
    )
    cause = _CAUSES.get(first.kind) if first.kind is not None else None
    if cause is None:
        cause = StallCause.UNKNOWN if first.place is None or first.is_idle else StallCause.BUSY
    certainty = _rate([first]) if first.place is not None else Certainty.POSSIBLE
    return cause, certainty, sentence + helpers, tuple(rank.rank for rank in rows[0])


_RULES = (
    _check_stopped,
    _check_blocked,
    _check_ended,
    _check_disk,
    _check_files,
    _check_works,
    _check_absent,
    _check_left,
    _check_order,
    _check_meetings,
    _check_all,
)


def _tell_others(ranks: Sequence[RankFinding], names: Sequence[str]) -> str:
    """Return where the ranks wait that are not named; empty: none waits for others."""
    kinds = (WaitKind.COLLECTIVE, WaitKind.MEETING)
    waiting = [rank for rank in ranks if rank.rank not in names and rank.job not in names and rank.kind in kinds]
    if not waiting:
        return ""
    whom = "it" if len(names) == 1 else "them"
    who = "the others wait" if len(waiting) > 1 else f"{waiting[0].rank} waits"
    return f"; {who} for {whom} in {_name_call(waiting[0])}"


def _list_evidence(ranks: Sequence[RankFinding], facts: RunFacts) -> tuple[str, ...]:
    rows = [f"{rank.rank}: {rank.words} {_count_samples(rank)}" for rank in ranks]
    rows += [f"{rank.rank}: {text}" for rank in ranks for text in rank.helpers]
    rows += [f"{name} {text}" for name, text in facts.absent.items()]
    rows += [
        f"{name} uses {format_bytes(used)} of {format_bytes(limit)} of memory"
        for name, (used, limit) in facts.memory.items()
        if limit and used >= _NEAR_LIMIT * limit
    ]
    rows += [
        f"{name} has waited for its share of the processor for {part:.0%} of the time"
        for name, part in facts.throttled.items()
        if part >= _THROTTLED
    ]
    rows += [f"the GPUs of {name} are {busy:.0f} % busy" for name, busy in facts.gpus.items()]
    rows += [f"{name} could not be read: {trouble}" for name, trouble in facts.unread.items()]
    rows += [f"{name} moves {format_bytes(rate)}/s over the network" for name, rate in facts.traffic.items()]
    if facts.disk_free is not None and facts.disk_free < _FULL_DISK:
        rows.append(f"the disk of OUTPUT_DIR has {format_bytes(facts.disk_free)} free")
    return tuple(rows)


def _rate(ranks: Sequence[RankFinding]) -> Certainty:
    return Certainty.LIKELY if all(rank.samples == rank.of > 1 for rank in ranks) else Certainty.POSSIBLE


def _is_always(name: str, samples: _Samples, state: str) -> bool:
    states = [process.state for sample in samples for rank, process in find_main_processes(sample) if rank == name]
    return len(states) > 1 and set(states) == {state}


def _find_channel_name(rank: RankFinding, samples: _Samples) -> str:
    named = [process for name, process in find_main_processes(samples[-1]) if name == rank.rank]
    return named[0].wait_channel if named else ""


def _count_samples(rank: RankFinding) -> str:
    return f"({rank.samples} of {count_noun(rank.of, 'sample')})"


def _name_call(rank: RankFinding) -> str:
    return str(rank.place) if rank.place is not None else rank.call


def _join(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{len(names)} ranks"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _is(names: Sequence[object]) -> str:
    return "is" if len(names) == 1 else "are"


def _has(names: Sequence[object]) -> str:
    return "has" if len(names) == 1 else "have"


def _wait(names: Sequence[object]) -> str:
    return "waits" if len(names) == 1 else "wait"
