"""States, reasons and parts: closed enums, each member with its sentence. Standard library only."""

from __future__ import annotations

import enum


class State(enum.Enum):
    """Where an experiment or a job stands; the names are RiseML's."""

    CREATED = "CREATED"  # accepted and stored
    BUILDING = "BUILDING"  # its image is being made or fetched
    PENDING = "PENDING"  # waits for room in the pool
    STARTING = "STARTING"  # has a place; containers are being started
    RUNNING = "RUNNING"  # its processes run
    KILLED = "KILLED"  # ended by a person, or by the end of the others
    FAILED = "FAILED"  # ended, and not well
    FINISHED = "FINISHED"  # ended well

    __hash__ = object.__hash__  # members are single: a pass of the loop hashes tens of thousands of them


TERMINAL = frozenset({State.KILLED, State.FAILED, State.FINISHED})

PLACED = frozenset({State.STARTING, State.RUNNING})
"""States in which a job holds a place in the pool."""


class Wanted(enum.Enum):
    """What the user wants of an experiment: the only thing a command ever writes."""

    RUN = "RUN"
    KILL = "KILL"


class Part(enum.Enum):
    """What a job's exit means for its experiment (DESIGN: who ends an experiment)."""

    PREPARES = "PREPARES"  # the build job: must end well before the others start
    DECIDES = "DECIDES"  # its exit code is the verdict
    HELPS = "HELPS"  # may end well at any time; ending badly fails the experiment
    SERVES = "SERVES"  # never ends by itself; an exit before the verdict fails the experiment
    WATCHES = "WATCHES"  # serves people only (tensorboard): its exit is no more than a warning

    __hash__ = object.__hash__


class Network(enum.Enum):
    """How the jobs of one experiment reach each other."""

    BRIDGE = "bridge"  # a network of their own on their one host
    OVERLAY = "overlay"  # a network of their own across hosts, made by the swarm
    HOST = "host"  # the hosts' own network, with a port for each job


class Reason(enum.Enum):
    """Why something is in its state. The sentence is what a person reads."""

    SUBMITTED = "SUBMITTED"
    CACHED = "CACHED"
    PREPARE = "PREPARE"
    WAITING_FOR_IMAGE = "WAITING_FOR_IMAGE"
    NO_ROOM = "NO_ROOM"
    NEXT = "NEXT"
    CONCURRENCY = "CONCURRENCY"
    PLACED = "PLACED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    EXIT_CODE = "EXIT_CODE"
    SIGNAL = "SIGNAL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    SERVICE_ENDED = "SERVICE_ENDED"
    START_FAILED = "START_FAILED"
    BUILD_FAILED = "BUILD_FAILED"
    VANISHED = "VANISHED"
    HOST_LOST = "HOST_LOST"
    ENGINE_STOPPED = "ENGINE_STOPPED"
    MAX_DURATION = "MAX_DURATION"
    KILLED_BY_USER = "KILLED_BY_USER"
    NO_LONGER_NEEDED = "NO_LONGER_NEEDED"
    CASCADE = "CASCADE"
    RETRY = "RETRY"
    INTERNAL = "INTERNAL"


SENTENCES: dict[Reason, str] = {
    Reason.SUBMITTED: "Accepted",
    Reason.CACHED: "The environment is already there",
    Reason.PREPARE: "Preparing environment",
    Reason.WAITING_FOR_IMAGE: "Waiting for the environment",
    Reason.NO_ROOM: "Waiting for room in the pool",
    Reason.NEXT: "Next in the queue: room is kept for it",
    Reason.CONCURRENCY: "Waiting for another experiment of the set to end",
    Reason.PLACED: "Starting on its host",
    Reason.RUNNING: "Running",
    Reason.COMPLETED: "Completed",
    Reason.EXIT_CODE: "Ended with an exit code other than 0",
    Reason.SIGNAL: "Ended by a signal that was not ours",
    Reason.OUT_OF_MEMORY: "Ran out of memory",
    Reason.SERVICE_ENDED: "Ended while it was still needed",
    Reason.START_FAILED: "Could not be started",
    Reason.BUILD_FAILED: "The environment could not be made",
    Reason.VANISHED: "It was removed by somebody else",
    Reason.HOST_LOST: "Its host has not answered for too long",
    Reason.ENGINE_STOPPED: "Its engine was stopped while it ran",
    Reason.MAX_DURATION: "Ran longer than max_duration allows",
    Reason.KILLED_BY_USER: "Killed by a user",
    Reason.NO_LONGER_NEEDED: "Stopped: the experiment has its verdict",
    Reason.CASCADE: "Stopped: another job ended the experiment",
    Reason.RETRY: "Another attempt follows",
    Reason.INTERNAL: "riseml itself failed; see the server's log",
}
