"""What commands print with `--json` when the HTTP API has no answer of that shape."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from riseml.wire.experiments import ExperimentType
from riseml.wire.results import GroupView
from riseml.wire.state_names import StateName

CopyView = TypedDict(
    "CopyView",
    {
        "from": str,  # the path of this machine, or `4.master:/output/x`
        "to": str,  # where the copy is
    },
)
"""What `riseml cp` has copied."""


class CompletionScript(TypedDict):
    """What `riseml completion --json` prints."""

    shell: str  # `bash`, `zsh` or `fish`
    script: str  # what the shell has to read


class DocsTopicView(TypedDict):
    """A page that `riseml docs` shows."""

    topic: str  # what `riseml docs` takes
    section: str  # of the list of pages
    summary: str  # what the page is for


class DocsTopicList(TypedDict):
    """What `riseml docs --json` prints."""

    topics: list[DocsTopicView]


class DocsPage(TypedDict):
    """What `riseml docs TOPIC --json` prints."""

    topic: str
    summary: str  # what the page is for
    text: str  # Markdown


class OpenedPage(TypedDict):
    """What `riseml docs --open --json` prints."""

    path: str  # of the page, an HTML file


class SelfFinding(TypedDict):
    """A requirement of riseml that `riseml self check` examined."""

    topic: str  # `system`, `python`, `disk`, `clock`, `cgroups`, `driver`, `engine`, `version`, `isolation`, `toolkit`
    outcome: Literal["ok", "note", "failed"]  # note: no failure, but worth knowing
    message: str  # what is so, and what to do


class SelfFindings(TypedDict):
    """What `riseml self check --json` prints."""

    findings: list[SelfFinding]


class SchemaFile(TypedDict):
    """A JSON Schema that riseml brings for editors."""

    file: str  # that it describes: `riseml.yml`
    schema: str  # its path


class SchemaList(TypedDict):
    """What `riseml self schemas --json` prints."""

    schemas: list[SchemaFile]


class ForwardView(TypedDict):
    """A port of a job that `riseml forward` has opened on this machine."""

    job: str  # `4.worker.1`
    port: int  # port of the job
    address: str  # URL on this machine: `http://127.0.0.1:8888`


class Forwards(TypedDict):
    """What `riseml forward` has opened."""

    forwards: list[ForwardView]


class Checkout(TypedDict):
    """The code of an experiment in a folder."""

    folder: str
    digest: str  # SHA-256 (hex) of the files
    files: int


class ExportedFolder(TypedDict):
    """Files that run an experiment without riseml."""

    folder: str
    kind: str  # the flag of the files, without its dashes: `compose`


class Kill(TypedDict):
    """The outcome of `kill` for one experiment."""

    id: str  # ID of the experiment or the set
    type: ExperimentType
    killed: bool  # false: it had already ended
    gave_up: bool  # it had ended, and waits no longer for the last copy of its output into a store
    state: StateName  # at the moment of the answer; a kill takes a moment to complete


class Kills(TypedDict):
    """The outcome of `kill`."""

    kills: list[Kill]  # in the order of the IDs; a refused ID is an error on standard error


class KeyRotation(TypedDict):
    """The outcome of `server rotate-key`."""

    rotated: bool  # always true


class ServerStop(TypedDict):
    """The outcome of `server stop`."""

    stopped: bool  # false: no server was running
    pid: int | None  # the process that ended; None: none was running
    active: int  # experiments that continue without the server
    searches: int  # that make no further trial until a server runs again


class NewFile(TypedDict):
    """The outcome of `init` and `import`."""

    file: str  # path of the new riseml.yml
    project: str  # the project in it
    old: str | None  # path of the file that has the earlier text, after `init --convert`; None: nothing to keep


class ExampleSummary(TypedDict):
    """One example project that `init --example` lists."""

    name: str  # that the command takes
    summary: str  # what the project shows


class ServerLogLine(TypedDict):
    """One line of the server's own log, as `riseml server logs --json` prints it."""

    time: str | None  # RFC 3339; null in a further line of a message
    level: str | None  # `INFO`, `WARNING` or `ERROR`; null in a further line of a message
    message: str
    experiment: str | None  # ID; this and the following keys are null unless RISEML_LOG_FORMAT is json
    job: str | None  # name
    attempt: int | None  # attempt of the job
    host: str | None
    state: str | None  # state of the experiment or the job
    reason: str | None  # reason of the state
    seconds: float | None  # how long the action took


class ScalingRowView(TypedDict):
    """The experiments with one number of workers that have finished."""

    workers: int  # jobs that train
    runs: int  # experiments; the values are their means
    seconds: float
    rate: float | None  # the last value of the rate; null: it was not reported
    speed_up: float | None  # against the smallest number of workers; null: no rate
    efficiency: float | None  # efficiency of a worker, against one of the smallest number; 1 is perfect
    metrics: dict[str, float]  # the other metrics: the best value where it is ranked, else the last one


class ScalingView(TypedDict):
    """What `riseml results --scaling --json` prints."""

    rate: str | None  # the metric that is the rate; null: none, and the speed-up is that of the times
    rows: list[ScalingRowView]  # the smallest number of workers first
    left_out: int  # experiments that have not finished


class GroupComparisonView(TypedDict):
    """What `riseml results --compare --json` prints: whether two groups differ."""

    column: str  # whose values were compared
    groups: list[GroupView]  # both of them
    test: str | None  # `paired` (Student's t-test of shared seeds) or `welch`; null: there was nothing to test
    p: float | None
    difference: float | None  # of the means: the second one less the first one
    low: float | None  # 95% interval of the difference
    high: float | None
    verdict: str  # for people: `no difference shown (p = 0.31, n = 5 and 5)`
    notes: list[str]


class PlotSeries(TypedDict):
    """One curve, or the points of a chart."""

    label: str
    points: list[list[float]]  # x and y of each
    band: list[list[float]]  # x, low and high at each point of a mean over seeds; empty: it is no mean


class PlotView(TypedDict):
    """What `riseml plot --json` prints."""

    title: str
    x: str  # title of the axis
    y: str
    series: list[PlotSeries]
    files: list[str]  # that were written
