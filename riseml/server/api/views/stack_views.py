"""Stacks as the API shows them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from riseml import wire
from riseml.control.visible_names import name_seen
from riseml.diagnosis.flame_graph import draw_flame_graph
from riseml.diagnosis.folding import StackGroup, describe_groups, fold_stacks
from riseml.diagnosis.profile import find_hot_lines, make_speedscope, parse_profile
from riseml.diagnosis.stacks import ProcessStacks, StackFrame, ThreadStack
from riseml.model import Caller, Experiment
from riseml.server.access.job_stacks import JobStacks, ProfileRequest, RecordedProfile

_MOST_LINES = 100  # hot lines of an answer


def show_stacks(experiment: Experiment, jobs: Sequence[JobStacks], at: datetime, caller: Caller) -> wire.StacksView:
    """Return what the jobs of an experiment do, with the sentence that says it."""
    groups = fold_stacks(process for job in jobs for process in job.processes)
    title = name_seen(caller, experiment)
    return {
        "id": title,
        "time": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}",
        "summary": describe_groups(groups),
        "groups": [_show_group(group) for group in groups],
        "jobs": [_show_job(job) for job in jobs],
    }


def show_profile(title: str, recorded: RecordedProfile, request: ProfileRequest, at: datetime) -> wire.ProfileView:
    """Return where a job was for some seconds."""
    profile = parse_profile(recorded.text)
    part = 100 / max(profile.count, 1)
    lines = find_hot_lines(profile, _MOST_LINES)
    words = f"{title}, {at:%Y-%m-%d %H:%M:%S} UTC, {request.seconds} s, {request.rate} samples a second"
    return {
        "id": title,
        "time": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "seconds": request.seconds,
        "rate": request.rate,
        "samples": profile.samples,
        "errors": profile.errors,
        "overhead": round(100 * recorded.processor / request.seconds, 2),
        "top": [
            {"call": line.call, "own": round(line.own * part, 2), "total": round(line.total * part, 2)}
            for line in lines
        ],
        "flame_graph": draw_flame_graph(profile, words),
        "speedscope": make_speedscope(profile, words, request.rate),
    }


def _show_job(job: JobStacks) -> wire.JobStacksView:
    return {
        "id": job.title,
        "host": job.host,
        "processes": [_show_process(process) for process in job.processes],
        "trouble": job.trouble,
    }


def _show_process(process: ProcessStacks) -> wire.ProcessStacksView:
    return {
        "pid": process.pid,
        "parent": process.parent,
        "command": process.command,
        "state": process.state,
        "wait_channel": process.wait_channel,
        "rank": process.rank,
        "threads": [_show_thread(thread) for thread in process.threads],
        "trouble": process.trouble,
    }


def _show_thread(thread: ThreadStack) -> wire.ThreadStackView:
    return {
        "name": thread.name,
        "thread": thread.thread,
        "idle": thread.is_idle,
        "holds_gil": thread.holds_gil,
        "frames": [_show_frame(frame) for frame in thread.frames],
    }


def _show_frame(frame: StackFrame) -> wire.StackFrameView:
    return {
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
        "native": frame.is_native,
        "variables": [{"name": variable.name, "value": variable.value} for variable in frame.variables],
    }


def _show_group(group: StackGroup) -> wire.StackGroupView:
    return {
        "ranks": list(group.ranks),
        "place": None if group.place is None else str(group.place),
        "idle": group.is_idle,
        "remark": group.remark,
    }
