"""States, reasons and parts: closed enums. Standard library only."""

from __future__ import annotations

import enum


class State(enum.Enum):
    """The state of an experiment or a job; the names are those of RiseML."""

    CREATED = "CREATED"  # accepted and stored
    BUILDING = "BUILDING"  # a host builds or fetches its environment
    PENDING = "PENDING"  # waits for a place in the pool
    STARTING = "STARTING"  # has a place; its containers are about to start
    RUNNING = "RUNNING"  # its processes run
    KILLED = "KILLED"  # ended by a user, or because the experiment ended
    FAILED = "FAILED"  # ended badly
    FINISHED = "FINISHED"  # ended well

    __hash__ = object.__hash__  # by identity, which is fast: a pass of the loop hashes tens of thousands of members


TERMINAL = frozenset({State.KILLED, State.FAILED, State.FINISHED})

PLACED = frozenset({State.STARTING, State.RUNNING})
"""States in which a job holds a place in the pool."""


class Wanted(enum.Enum):
    """What the user or a search wants of an experiment: the only field of its record that the loop does not write."""

    RUN = "RUN"
    KILL = "KILL"
    # its search stops it: other trials do better; of a set: no further experiment starts, and those that run go on
    STOP = "STOP"


class JobDuty(enum.Enum):
    """What the exit of a job means for its experiment; `job_programs.gang_rules` has the rules."""

    PREPARES = "PREPARES"  # the build job: it must succeed before the other jobs start
    DECIDES = "DECIDES"  # its exit code is the verdict
    HELPS = "HELPS"  # may succeed at any time; its failure fails the experiment
    SERVES = "SERVES"  # should not exit by itself; an exit before the verdict fails the experiment
    WATCHES = "WATCHES"  # serves users only (tensorboard): its exit is only a warning

    __hash__ = object.__hash__


class Network(enum.Enum):
    """How the jobs of one experiment reach each other."""

    BRIDGE = "bridge"  # a private network on one host
    OVERLAY = "overlay"  # a private network across hosts, created by the swarm
    HOST = "host"  # the network of the hosts, with one port per job


NO_LOGS = 66
"""The exit code of a TensorBoard that would have nothing to show."""

NO_PROGRAM = 69
"""The exit code of a companion whose program is not in its environment."""


class CompanionKind(enum.Enum):
    """What a companion lets its user see or do; the value is the name of its job, and its type for users."""

    TENSORBOARD = "tensorboard"  # the outputs of experiments in a TensorBoard
    NOTEBOOK = "notebook"  # a JupyterLab in the environment of a project


class Reason(enum.Enum):
    """Why an experiment or a job is in its state; `SENTENCES` has the sentence that users read."""

    SUBMITTED = "SUBMITTED"
    CACHED = "CACHED"
    PREPARE = "PREPARE"
    WAITING_FOR_IMAGE = "WAITING_FOR_IMAGE"
    WAITING_FOR_DATA = "WAITING_FOR_DATA"
    AFTER = "AFTER"
    NO_ROOM = "NO_ROOM"
    NEXT = "NEXT"
    CONCURRENCY = "CONCURRENCY"
    PAUSED = "PAUSED"
    QUOTA = "QUOTA"
    NO_LEADER = "NO_LEADER"
    PLACED = "PLACED"
    IN_QUEUE = "IN_QUEUE"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    EXIT_CODE = "EXIT_CODE"
    SIGNAL = "SIGNAL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    SERVICE_ENDED = "SERVICE_ENDED"
    START_FAILED = "START_FAILED"
    BUILD_FAILED = "BUILD_FAILED"
    DATA_FAILED = "DATA_FAILED"
    VANISHED = "VANISHED"
    HOST_LOST = "HOST_LOST"
    ENGINE_STOPPED = "ENGINE_STOPPED"
    MAX_DURATION = "MAX_DURATION"
    IDLE = "IDLE"
    STALLED = "STALLED"
    OUTPUT_LIMIT = "OUTPUT_LIMIT"
    NOT_FINITE = "NOT_FINITE"
    AWAITED_ENDED = "AWAITED_ENDED"
    PREDECESSOR = "PREDECESSOR"
    NO_INPUT = "NO_INPUT"
    LEFT = "LEFT"
    STOPPED_EARLY = "STOPPED_EARLY"
    KILLED_BY_USER = "KILLED_BY_USER"
    NO_LONGER_NEEDED = "NO_LONGER_NEEDED"
    CASCADE = "CASCADE"
    NOT_STARTED = "NOT_STARTED"
    RETRY = "RETRY"
    NONE_FINISHED = "NONE_FINISHED"
    TOO_MANY_FAILED = "TOO_MANY_FAILED"
    NO_METRIC = "NO_METRIC"
    INTERNAL = "INTERNAL"


SENTENCES: dict[Reason, str] = {
    Reason.SUBMITTED: "Accepted",
    Reason.CACHED: "The environment is already there",
    Reason.PREPARE: "Preparing environment",
    Reason.WAITING_FOR_IMAGE: "Waiting for the environment",
    Reason.WAITING_FOR_DATA: "Fetching data",
    Reason.AFTER: "Waiting for other experiments to end",
    Reason.NO_ROOM: "Waiting for room in the pool",
    Reason.NEXT: "Next in the queue: room is kept for it",
    Reason.CONCURRENCY: "Waiting for another experiment of the set to end",
    Reason.PAUSED: "A user has paused its set",
    Reason.QUOTA: "A quota holds it",
    Reason.NO_LEADER: "Waiting until the Docker swarm of its hosts has a leader",
    Reason.PLACED: "Starting on its host",
    Reason.IN_QUEUE: "Waits in the queue of its cluster",
    Reason.RUNNING: "Running",
    Reason.COMPLETED: "Completed",
    Reason.EXIT_CODE: "Ended with an exit code other than 0",
    Reason.SIGNAL: "Ended by a signal that riseml did not send",
    Reason.OUT_OF_MEMORY: "Ran out of memory",
    Reason.SERVICE_ENDED: "Ended while other jobs still needed it",
    Reason.START_FAILED: "Could not be started",
    Reason.BUILD_FAILED: "The environment could not be built",
    Reason.DATA_FAILED: "The data could not be fetched",
    Reason.VANISHED: "Removed, but not by riseml",
    Reason.HOST_LOST: "Its host has not answered for too long",
    Reason.ENGINE_STOPPED: "Its engine was stopped while it ran",
    Reason.MAX_DURATION: "Ran longer than max_duration allows",
    Reason.AWAITED_ENDED: "A job that another one waits for (`after`) has ended and never answered",
    Reason.PREDECESSOR: "An experiment that it waits for did not finish",
    Reason.NO_INPUT: "The output of another experiment that it reads is not there",
    Reason.IDLE: "No job printed or computed anything for idle_timeout",
    Reason.STALLED: "It made no progress for too long, and `stall` in its riseml.yml ends it then",
    Reason.OUTPUT_LIMIT: "Its output takes more than the server allows",
    Reason.NOT_FINITE: "A loss is not a finite number any more, and `on: nan` in its riseml.yml ends it then",
    Reason.LEFT: "No client uses it any more",
    Reason.STOPPED_EARLY: "Stopped by its search: other trials do better",
    Reason.KILLED_BY_USER: "Killed by a user",
    Reason.NO_LONGER_NEEDED: "Stopped: the experiment has its verdict",
    Reason.CASCADE: "Stopped: this attempt of the experiment failed",
    Reason.NOT_STARTED: "Never started: the experiment ended before",
    Reason.RETRY: "Another attempt follows",
    Reason.NONE_FINISHED: "No experiment of the set finished",
    Reason.TOO_MANY_FAILED: "Too many trials of its search failed",
    Reason.NO_METRIC: "No trial reported the metric of its search",
    Reason.INTERNAL: "riseml itself failed; see the server's log",
}
