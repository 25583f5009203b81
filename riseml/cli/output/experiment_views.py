"""Experiments, jobs and samples as lines. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from riseml.base.records import dataclass
from riseml.cli.output.log_lines import list_advice, list_causes, list_last_lines
from riseml.cli.output.progress_view import describe_progress, describe_rates, show_progress_cell
from riseml.cli.output.style import ENDED_STATES, Style, name_state, paint_state
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import (
    clean_text,
    count_run_seconds,
    describe_goals,
    format_age,
    format_duration,
    format_fields,
    format_metric,
    format_parameters,
)
from riseml.files.project.messages import join_first

if TYPE_CHECKING:
    from riseml import wire

_MOST_RUN_LINES = 10  # the most lines of `run` in the status of one experiment, unless it is a long one
_DIGITS = 4  # of a metric in a list
_FATES = ("finished", "failed", "killed", "stopped early", "running", "waiting")
_MOST_METRICS = 20  # the most metrics in the status of one experiment
_LIST = (
    Column("ID"),
    Column("PROJECT", shrinks=True, spare=1),
    Column("STATE", states=True),
    Column("AGE", right=True, spare=3),
    Column("TIME", right=True, spare=2),
    Column("PROGRESS", spare=1),
    Column("METRIC", spare=1),
    Column("TYPE", shrinks=True, spare=4),
    Column("PARAMS", shrinks=True, spare=2),
)
_LIST_LONG = (
    *_LIST[:-1],
    Column("JOBS", spare=5),
    Column("REASON", spare=6),
    _LIST[-1],
)
_JOBS = (
    Column("ID"),
    Column("STATE", states=True),
    Column("HOST", shrinks=True, spare=2),
    Column("ATTEMPT", right=True, spare=4),
    Column("EXIT", right=True),
    Column("REASON", spare=1),
    Column("STARTED", spare=3),
    Column("FINISHED", spare=2),
)
_RESOURCES = (
    Column("ID"),
    Column("CPUS", right=True),
    Column("MEM", right=True),
    Column("GPUS", right=True),
    Column("MESSAGE", shrinks=True),
)
_MEMBERS = (
    Column("EXP ID"),
    Column("STATE", states=True),
    Column("AGE", right=True, spare=2),
    Column("TIME", right=True, spare=1),
    Column("PARAMS", shrinks=True),
)


def list_experiments(
    experiments: Sequence[wire.ExperimentView], now: datetime, style: Style, *, long: bool = False
) -> list[str]:
    """Return a table of experiments; `long` adds the members of sets, and more columns.

    A column that has nothing to say is left out, and so are parameters that have one value in the whole list.
    """
    singles = [experiment for experiment in experiments if experiment["type"] != "set"]
    common = _find_common_parameters(singles) if len(singles) > 1 and not long else {}
    rows: list[list[str]] = []
    listed = list(_yield_with_members(experiments)) if long else experiments
    titles = _choose_said(listed)
    for experiment in listed:
        row = [
            experiment["id"],
            *(_SAID[title](experiment) for title in titles),
            experiment["project"],
            "PAUSED" if experiment["reason"] == "PAUSED" else name_state(experiment["state"], experiment["reason"]),
            format_age(experiment["created_at"], now),
            format_duration(count_run_seconds(experiment, now)),
            show_progress_cell(experiment.get("progress")),
            _describe_main_metric(experiment),
            ": ".join(filter(None, (describe_type(experiment), count_members(experiment)))),
            *([_count_jobs(experiment), experiment["reason"]] if long else []),
            format_parameters(_drop_parameters(experiment, common)),
        ]
        rows.append(row)
    first, *further = _LIST_LONG if long else _LIST
    columns = (first, *_name_said_columns(titles), *further)
    filled = [
        at for at, column in enumerate(columns) if not column.spare or any(row[at] not in ("", "-") for row in rows)
    ]
    return build_table([columns[at] for at in filled], [[row[at] for at in filled] for row in rows], style)


def _describe_main_metric(experiment: wire.ExperimentView) -> str:
    """Return `accuracy=0.98`: the last value, or of a search the best one so far; `-` without one."""
    search = experiment.get("search")
    if search is not None and search["best"] is not None:
        return f"{search['metric']}={format_metric(search['best']['value'], _DIGITS)}"
    metric = experiment.get("main_metric")  # a server of an earlier version sends none
    if metric is None:
        return "-"
    return f"{metric['name']}={'nan' if metric['last'] is None else format_metric(metric['last'], _DIGITS)}"


def _choose_said(experiments: Sequence[wire.ExperimentView]) -> list[str]:
    """Return the columns of what users say: those in which one of the experiments has something."""
    return [title for title, read in _SAID.items() if any(read(experiment) for experiment in experiments)]


def _name_said_columns(titles: Sequence[str]) -> list[Column]:
    return [Column(title, shrinks=True, spare=1) for title in titles]


def _list_marks(experiment: wire.ExperimentView) -> str:
    return ", ".join(["starred"] * experiment.get("starred", False) + ["archived"] * experiment.get("archived", False))


_SAID: Mapping[str, Callable[[wire.ExperimentView], str]] = {
    "NAME": lambda experiment: clean_text(experiment.get("name", "")),
    "TAGS": lambda experiment: clean_text(", ".join(experiment.get("tags", ()))),
    "MARKS": _list_marks,
}
"""What users say, by the titles of columns; a server of an earlier version knows nothing of it."""


def _yield_with_members(experiments: Sequence[wire.ExperimentView]) -> Iterator[wire.ExperimentView]:
    """Yield each experiment, and after a set its members; a value that all members share is shown for the set."""
    for experiment in experiments:
        common = _find_common_parameters(experiment["experiments"])
        yield experiment if not common else {**experiment, "parameters": common}
        for member in experiment["experiments"]:
            yield {**member, "parameters": _drop_parameters(member, common)}


def _count_jobs(experiment: wire.ExperimentView) -> str:
    """Return how many jobs run, not counting the build: `4/4 run`; at the end how many ended: `4/4 ended`; of a set,
    how many members ended: `3/8 ended`."""
    if experiment["type"] == "set":
        ended = sum(member["state"] in ENDED_STATES for member in experiment["experiments"])
        return f"{ended}/{len(experiment['experiments'])} ended"
    states = [job["state"] for job in experiment["jobs"] if not job["id"].endswith(".build")]
    if experiment["state"] in ENDED_STATES:
        return f"{sum(state in ENDED_STATES for state in states)}/{len(states)} ended"
    return f"{states.count('RUNNING')}/{len(states)} run"


def count_members(experiment: wire.ExperimentView) -> str:
    """Return what became of the members of a set: `36 finished, 1 failed, 3 stopped early`; empty without members."""
    if not experiment["experiments"]:
        return ""
    counts = Counter(_name_fate(member) for member in experiment["experiments"])
    return ", ".join(f"{counts[fate]} {fate}" for fate in _FATES if counts[fate])


def _name_fate(member: wire.ExperimentView) -> str:
    state = name_state(member["state"], member["reason"])
    if state in ENDED_STATES:
        return state.lower()
    return {"STOPPED_EARLY": "stopped early", "RUNNING": "running"}.get(state, "waiting")


def _find_common_parameters(members: Sequence[wire.ExperimentView]) -> dict[str, str]:
    """Return the parameters that have one value in all members of a set."""
    first = members[0]["parameters"] if members else {}
    return {
        name: value
        for name, value in first.items()
        if all(member["parameters"].get(name) == value for member in members)
    }


def _drop_parameters(member: wire.ExperimentView, common: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in member["parameters"].items() if name not in common}


def list_experiment(experiment: wire.ExperimentView, now: datetime, style: Style, *, long: bool = False) -> list[str]:
    """Return the fields of one experiment or set, and a table of its jobs or members."""
    common = _find_common_parameters(experiment["experiments"])
    heads = _list_heads({**experiment, "parameters": common} if common else experiment, now, style, long=long)
    if experiment["type"] == "set":
        metric = _choose_metric(experiment)
        titles = _choose_said(experiment["experiments"])
        rows = [
            [member["id"], *(_SAID[title](member) for title in titles), *row]
            for member in experiment["experiments"]
            for row in [_make_member_row(member, _drop_parameters(member, common), now, metric)]
        ]
        printed = [*list_causes(experiment), *list_last_lines(experiment), *list_advice(experiment)]
        first, *further = _name_member_columns(metric)
        table = build_table((first, *_name_said_columns(titles), *further), rows, style)
        return [*heads, "", *table, *(["", *printed] if printed else [])]
    if not experiment["jobs"]:
        return [*heads, "", "No jobs yet."]
    lines = [*heads, "", *build_table(_JOBS, [_make_job_row(job, now) for job in experiment["jobs"]], style)]
    if long:
        lines += ["", *build_table(_RESOURCES, [_make_resource_row(job) for job in experiment["jobs"]], style)]
    else:
        lines += _list_messages(experiment)
    printed = [*list_last_lines(experiment), *list_advice(experiment)]
    return [*lines, "", *printed] if printed else lines


def _list_heads(experiment: wire.ExperimentView, now: datetime, style: Style, *, long: bool) -> list[str]:
    ended = experiment["state"] in ENDED_STATES
    search = experiment.get("search")  # a server of an earlier version has no searches, concurrency and lines
    heads = format_fields(
        [
            ("ID", experiment["id"]),
            ("Type", describe_type(experiment)),
            ("Experiments", count_members(experiment)),
            ("State", experiment["state"]),
            ("Reason", _describe_reason(experiment) if experiment["reason"] != experiment["state"] else None),
            ("Cause", f"{experiment['id']}.{experiment['cause']}" if experiment["cause"] else None),
            ("After", ", ".join(experiment.get("after", []))),
            ("Exit Code", experiment["exit_code"]),
            ("Search", search["message"] if search else None),
            ("Search Config", _describe_search(search) if search else None),
            *((title.capitalize(), read(experiment)) for title, read in _SAID.items()),
            ("Project", experiment["project"]),
            ("Age", format_age(experiment["created_at"], now)),
            ("Duration", _describe_duration(experiment, now)),
            ("Progress", _describe_progress(experiment)),
            ("Rate", _describe_rates(experiment)),
            *(("Remark", _describe_remark(experiment, remark, now)) for remark in experiment.get("remarks", ())),
            ("Diagnosis", _describe_diagnosis(experiment, now)),
            ("Ended", f"{format_age(experiment['ended_at'], now)} ago" if experiment["ended_at"] else None),
            ("Image", experiment["image"]),
            ("Image Digest", experiment["image_digest"]),
            *((f"Image of {role}", image) for role, image in _find_role_images(experiment).items()),
            ("Shell", _name_shells(experiment)),
            ("Framework", experiment["framework"]),
            ("Framework Config", _count_roles(experiment)),
            ("Concurrency", experiment.get("concurrency")),
            ("Output", experiment["output"] or None),
            *_list_saved(experiment, now),
            *_list_written(experiment),
            ("Parameters", format_parameters(experiment["parameters"])),
            ("Metrics", _list_metrics(experiment)),
            ("TensorBoard", describe_tensorboard(experiment) if _has_tensorboard(experiment) else None),
            ("JupyterLab", f"`riseml notebook {experiment['id']}` opens it" if _has_notebook(experiment) else None),
            ("Cleaning up", "jobs are still being stopped" if ended and not experiment["closed"] else None),
        ]
    )
    painted = f"State: {paint_state(experiment['state'], experiment['state'], colour=style.colour)}"
    heads = [painted if head == f"State: {experiment['state']}" else head for head in heads]
    return [*heads, *_list_note(experiment), *_list_run_commands(experiment, long=long)]


def _list_run_commands(experiment: wire.ExperimentView, *, long: bool) -> list[str]:
    """Return the lines of `run` of each job below a title, as RiseML 1.x listed them; the first ones unless `long`."""
    runs = experiment.get("run", [])
    lines: list[str] = []
    for run in runs:
        whose = f" of {join_first(run['jobs'])}" if len(runs) > 1 else ""
        lines.append(f"Run Commands{whose}:")
        rows = [row for line in run["lines"] for row in line.rstrip("\n").split("\n")]
        first_rows = rows if long else rows[:_MOST_RUN_LINES]
        lines += [f"  {row}" for row in first_rows]
        if len(rows) > len(first_rows):
            lines.append(f"  ... {len(rows) - len(first_rows)} more; `riseml status -l {experiment['id']}` shows all")
    return list(map(clean_text, lines))


def describe_tensorboard(experiment: wire.ExperimentView) -> str:
    """Return where the TensorBoard of an experiment is: its address on the server's machine, and what opens it."""
    address = experiment.get("tensorboard")  # a server of an earlier version does not say
    opens = f"`riseml tensorboard {experiment['id']}` opens it"
    return f"{address} ({opens})" if address else opens


def _list_note(experiment: wire.ExperimentView) -> list[str]:
    """Return the lines of the note, below each other."""
    lines = [clean_text(line) for line in experiment.get("note", "").splitlines()]
    return [f"{'' if at else 'Note: ':6}{line}" for at, line in enumerate(lines)]


def _describe_duration(experiment: wire.ExperimentView, now: datetime) -> str | None:
    seconds = count_run_seconds(experiment, now)
    return None if seconds is None else format_duration(seconds)


def _describe_rates(experiment: wire.ExperimentView) -> str | None:
    """Return how fast the job is that says how far the experiment is, else the first one that is known; None: none."""
    progress = experiment.get("progress")
    name = None if progress is None else progress["job"]
    fast = sorted((job for job in experiment["jobs"] if job.get("rates")), key=lambda job: job["name"] != name)
    if not fast:
        return None
    several = sum(job["state"] == "RUNNING" for job in experiment["jobs"]) > 1
    return describe_rates(fast[0].get("rates", ())) + (f" ({fast[0]['name']})" if several else "")


def _describe_progress(experiment: wire.ExperimentView) -> str | None:
    """Return how far it is, with the job that says so where there are several; None: not known."""
    progress = experiment.get("progress")  # a server of an earlier version sends none
    if progress is None:
        return None
    several = sum(job["state"] == "RUNNING" for job in experiment["jobs"]) > 1
    return describe_progress(progress) + (f" ({progress['job']})" if several else "")


def _describe_diagnosis(experiment: wire.ExperimentView, now: datetime) -> str | None:
    """Return why an experiment made no progress; None: it was never looked at, or a remark says it."""
    diagnosis = experiment.get("diagnosis")  # older servers have none
    if diagnosis is None or any(diagnosis["sentence"] in remark["text"] for remark in experiment.get("remarks", ())):
        return None
    age = format_age(diagnosis["time"], now)
    return f"{clean_text(diagnosis['sentence'])} ({diagnosis['certainty']}, {age} ago)"


def _describe_remark(experiment: wire.ExperimentView, remark: wire.RemarkView, now: datetime) -> str:
    """Return `4.worker.1: its GPUs do nothing for 10 m`, with when it began where that is known."""
    whose = "" if remark["job"] is None else f"{experiment['id']}.{remark['job']}: "
    since = "" if remark["since"] is None else f", since {format_age(remark['since'], now)}"
    return f"{whose}{clean_text(remark['text'])}{since}"


def _list_saved(experiment: wire.ExperimentView, now: datetime) -> list[tuple[str, str]]:
    """Return what is saved of its output; nothing without `save`, or if the server is of an earlier version."""
    saved = experiment.get("saved")
    if saved is None:
        return []
    from riseml.cli.output.saved_view import describe_restored, describe_saved

    begun = [("Restored", describe_restored(saved["restored"]))] if saved["restored"] else []
    return [("Saved", describe_saved(experiment["id"], saved, now)), *begun]


def _list_written(experiment: wire.ExperimentView) -> list[tuple[str, str]]:
    """Return what the jobs wrote outside of OUTPUT_DIR; nothing from a server of an earlier version."""
    written = experiment.get("written")
    return [] if written is None else [("Written", clean_text(sentence)) for sentence in written["sentences"]]


def _name_shells(experiment: wire.ExperimentView) -> str | None:
    """Return the shell that read the lines: `bash`; where jobs differ, `bash (sh: ps.1)`; None: not known (yet), or the
    server is of an earlier version.
    """
    shells = {job["name"]: shell for job in experiment["jobs"] if (shell := job.get("shell"))}
    if not shells:
        return None
    first = next(iter(shells.values()))
    different = [name for name, shell in shells.items() if shell != first]
    return f"{first} ({shells[different[0]]}: {join_first(different)})" if different else first


def _find_role_images(experiment: wire.ExperimentView) -> dict[str, str]:
    """Return the images of roles whose image differs from that of the experiment."""
    images = {job["name"].partition(".")[0]: job["image"] for job in experiment["jobs"]}
    return {role: image for role, image in images.items() if image != experiment["image"]}


def _describe_search(search: wire.SearchView) -> str:
    """Return `tpe, maximize accuracy, seed 7`; the best point comes with the parameters that made it."""
    best = search["best"]
    whose = "their" if len(search.get("objectives", [])) > 1 else "its"
    rule = "" if search["objective"] == "best" else f" by {whose} {search['objective']}"
    text = f"{search['method']}, {describe_goals(search)}{rule}, seed {search['seed']}"
    return f"{text}, best with {format_parameters(best['parameters'])}" if best else text


def _count_roles(experiment: wire.ExperimentView) -> str | None:
    """Return how many jobs each role has: `master: 1, worker: 2, ps: 1`; None for a single job."""
    names = [job["name"] for job in experiment["jobs"] if job["name"] not in ("build", "train", experiment["type"])]
    roles = Counter(name.partition(".")[0] for name in names)
    return ", ".join(f"{role}: {count}" for role, count in roles.items()) or None


def describe_type(experiment: wire.ExperimentView) -> str:
    """Return what it is: `Experiment`, `Set`, `TensorBoard of 4, 7`, `Notebook`."""
    if experiment["type"] == "tensorboard":
        return f"TensorBoard of {', '.join(experiment['shows'])}"
    return experiment["type"].capitalize()


def _has_tensorboard(experiment: wire.ExperimentView) -> bool:
    """Return whether `riseml tensorboard` opens it: a TensorBoard that runs, or a training that began with one."""
    if experiment["type"] == "set":
        return any(map(_has_tensorboard, experiment["experiments"]))
    states = [job["state"] for job in experiment["jobs"] if job["name"] == "tensorboard"]
    return "RUNNING" in states or (
        bool(states) and experiment["type"] == "experiment" and experiment["started_at"] is not None
    )


def _has_notebook(experiment: wire.ExperimentView) -> bool:
    return any(job["name"] == "notebook" and job["state"] == "RUNNING" for job in experiment["jobs"])


def _describe_reason(experiment: wire.ExperimentView) -> str:
    message = (experiment["message"].splitlines() or [""])[0]
    says_more = message and message.upper() != experiment["reason"].replace("_", " ")
    return f"{experiment['reason']} ({message})" if says_more else experiment["reason"]


@dataclass(frozen=True, slots=True)
class _ShownMetric:
    """The metric that the table of a set shows for each member."""

    name: str
    part: Literal["last", "min", "max"]


def _choose_metric(experiment: wire.ExperimentView) -> _ShownMetric | None:
    """Return what the set searches for, by its best value if that counts; else the first metric that was reported, by
    its last one."""
    search = experiment.get("search")
    if search is not None and search["objective"] != "best":
        return _ShownMetric(search["metric"], "last")
    if search is not None:
        return _ShownMetric(search["metric"], "max" if search["goal"] == "maximize" else "min")
    names = (metric["name"] for member in experiment["experiments"] for metric in member.get("metrics", ()))
    first = next(names, None)
    return None if first is None else _ShownMetric(first, "last")


def _name_member_columns(metric: _ShownMetric | None) -> tuple[Column, ...]:
    if metric is None:
        return _MEMBERS
    *columns, parameters = _MEMBERS
    return (*columns, Column(clean_text(metric.name), right=True), parameters)


def _make_member_row(
    experiment: wire.ExperimentView, parameters: Mapping[str, str], now: datetime, metric: _ShownMetric | None
) -> list[str]:
    row = [
        name_state(experiment["state"], experiment["reason"]),
        format_age(experiment["created_at"], now),
        format_duration(count_run_seconds(experiment, now)),
    ]
    if metric is not None:
        values = {reported["name"]: reported[metric.part] for reported in experiment.get("metrics", ())}
        row.append(format_metric(values.get(metric.name)))
    return [*row, format_parameters(parameters)]


def _list_metrics(experiment: wire.ExperimentView) -> str:
    """Return the last value of each metric: `accuracy=0.98, loss=0.2`."""
    metrics = experiment.get("metrics", ())  # a server of an earlier version sends none
    values = [f"{metric['name']}={format_metric(metric['last'])}" for metric in metrics[:_MOST_METRICS]]
    return ", ".join([*values, *([f"and {len(metrics) - _MOST_METRICS} more"] if len(metrics) > _MOST_METRICS else [])])


def _make_job_row(job: wire.JobView, now: datetime) -> list[str]:
    ended = job["signal"] or ("-" if job["exit_code"] is None else str(job["exit_code"]))
    times = (format_age(job["started_at"], now), format_age(job["ended_at"], now))
    return [job["id"], job["state"], job["host"] or "-", str(job["attempt"]), ended, job["reason"], *times]


def _make_resource_row(job: wire.JobView) -> list[str]:
    message = job["message"].splitlines() or [""]
    return [job["id"], f"{job['cpus']:g}", f"{job['mem_mib']} MiB", str(job["gpus"]), message[0]]


def _list_messages(experiment: wire.ExperimentView) -> list[str]:
    """Return the messages of failed jobs, when they say more than the exit code in the table."""
    failed = [
        job
        for job in experiment["jobs"]
        if job["state"] == "FAILED" and job["message"] not in ("", f"exit code {job['exit_code']}")
    ]
    return ["", *(clean_text(f"{job['id']}: {job['message'].splitlines()[0]}") for job in failed)] if failed else []
