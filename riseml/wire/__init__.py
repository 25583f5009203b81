"""The requests and answers of the HTTP API, shared by client and server: one module for each subject.

Here: typed dictionaries. They are also what commands print with `--json` (docs/json.md), so fields may be added but
not renamed or removed. Times are RFC 3339 in UTC (`2026-08-31T07:23:46Z`), sizes are bytes unless the name ends in
`_mib`, IDs are canonical.
Not here: how an answer is computed (`server.api`), and how a command prints it for people (`cli.output`).

    GET    /v1/server                           -> ServerView
    POST   /v1/server/stop                      -> ServerView       (jobs continue)
    HEAD   /v1/snapshots/{digest}               -> 200 | 404
    GET    /v1/snapshots/{digest}               -> tar              (the project's files)
    PUT    /v1/snapshots/{digest}    tar body   -> 201              (400: the files have another digest)
    PUT    /v1/snapshots/{digest}/manifest      -> MissingContents  (pieces of a manifest; stored if none is missing)
    POST   /v1/snapshots/{digest}/contents      -> MissingContents  (pieces with contents; what came stays)
    POST   /v1/packs/{name}                     -> 204              (a file from a client on the same machine)
    POST   /v1/experiments           Submission -> ExperimentView   (201; 200 when `key` was used before)
    POST   /v1/experiments/check     Submission -> 204              (refused as the route above refuses it)
    POST   /v1/tensorboards  TensorBoardOrder   -> ExperimentView   (as POST /v1/experiments)
    POST   /v1/plans                 Submission -> PlanView         (stores nothing)
    GET    /v1/experiments?all=&project=&limit=&companions=
                                                -> ExperimentList   (running ones; all: ended ones too; newest last)
    GET    /v1/experiments?all=true&state=&text=&user=&sort=-ended&limit=&offset=
                                                -> ExperimentList   (a page, in the order of `sort`)
    GET    /v1/experiments?all=true&metric=&least=&most=&sort=-metric
                                                -> ExperimentList   (a page of those that have reported a metric)
    GET    /v1/metrics/names                    -> MetricNames
    GET    /v1/metrics/values?metric=           -> MetricLastValues     (the last one of each experiment)
    GET    /metrics                             -> Prometheus' text format (not below /v1)
    GET    /v1/names?prefix=&running=           -> NameList         (for shells that complete an ID)
    GET    /v1/experiments/{id}                 -> ExperimentView
    POST   /v1/experiments/{id}/kill            -> ExperimentView
    GET    /v1/results?of=&project=&where=&sort=&limit=
                                                -> ResultList       (of: experiments and sets, else all of the project)
    POST   /v1/experiments/{id}/trials TrialOrder -> ExperimentView (of a set with a search)
    GET    /v1/comparison?of=&of=...            -> ComparisonView   (of: 2 to 20 experiments)
    GET    /v1/experiments/{id}/logs?follow=&cursor=&tail=&since=&batch=&closed=&reports=
                                                -> NDJSON of Entry  (tail: the last lines, without states)
    GET    /v1/experiments/{id}/samples         -> Samples
    GET    /v1/experiments/{id}/samples?since=&until=&step= -> SampleHistory  (with one of the three)
    GET    /v1/experiments/{id}/remarks         -> Remarks
    POST   /v1/experiments/{id}/address         -> GuestAddress     (of its TensorBoard, for one browser)
    GET    /v1/samples                          -> Samples          (of every job that has a place)
    GET    /v1/experiments/{id}/metrics         -> MetricsList      (of a set: of each of its experiments)
    GET    /v1/experiments/{id}/metrics/history?metric= -> MetricHistoryView  (of one experiment; a set is refused)
    GET    /v1/experiments/{id}/curves?metric=  -> CurveList        (of a set: of all of its experiments)
    GET    /v1/experiments/{id}/importance      -> ImportanceView   (of a set with a search)
    GET    /v1/experiments/{id}/tfconfig        -> TfConfigs        (of one experiment; a set is refused)
    GET    /v1/experiments/{id}/environment     -> JobEnvironments  (of one experiment; a set is refused)
    GET    /v1/experiments/{id}/capsule         -> CapsuleView      (of one experiment; of a set: its first one's)
    GET    /v1/experiments/{id}/saved           -> SavedView        (of one experiment; what its store has)
    POST   /v1/experiments/{id}/save SaveRequest -> SavedView       (copies its output into its store now)
    POST   /v1/reruns/check          RerunNeeds -> MissingParts     (starts nothing)
    GET    /v1/experiments/{id}/explain         -> ExplanationView  (of one experiment)
    WS     /v1/experiments/{id}/command         -> messages of `stream_messages`, the first is a CommandOrder
    WS     /v1/experiments/{id}/ports/{port}    -> messages of `stream_messages`  (one connection to a port of a job)
    WS     /v1/experiments/{id}/presence        -> messages of `stream_messages`  (a client is there until it closes)
    GET    /v1/experiments/{id}/events          -> EventList        (of one experiment; a set is refused)
    GET    /v1/experiments/{id}/lines?first=&count=&level= -> LinePage  (of one experiment; first < 0: from the end)
    GET    /v1/experiments/{id}/lines/matches?text=&first=&most=&level= -> LineMatches
    GET    /v1/changes                          -> events of Changes  (server-sent events; Last-Event-ID goes on)
    POST   /v1/web                   WebOrder   -> WebView          (opens the web page; each answer has a new token)
    POST   /v1/web/close                        -> WebView          (and ends all of its sessions)
    GET    /v1/web/sessions                     -> WebSessions
    POST   /v1/web/sessions/{name}/end          -> WebSessions      (ends one of them)
    GET    /v1/system                           -> SystemView
    GET    /v1/gpus?of=                         -> GpuList          (of: those of the jobs with this ID)
    GET    /v1/pool                             -> PoolView
    GET    /v1/pool/queue?limit=                -> QueueView        (with the reason of each wait)
    GET    /v1/pool/usage?hours=                -> PoolUsage
    POST   /v1/pool/check                       -> PoolFindings
    POST   /v1/pool/join                        -> PoolMembers
    POST   /v1/pool/recover?host=&dry_run=      -> PoolRecovery     (dry_run: only what it would do)
    POST   /v1/pool/hosts            NewHost    -> AddedHost        (changes nothing when its key is not trusted)
    POST   /v1/pool/hosts/{name}/remove?force=&dry_run= -> RemovedHost
    POST   /v1/pool/hosts/{name}/drain|resume   -> HostView
    GET    /v1/pool/hosts/{name}/keys           -> HostKeys
    POST   /v1/pool/hosts/{name}/keys?fingerprint=&... -> HostKeys  (pins the keys with these fingerprints)
    GET    /v1/files?root=&of=&path=&after=&limit=&deep= -> FileListing  (root: data, or output of an experiment)
    GET    /v1/files/content?root=&of=&path=&start=&etag= -> the content from `start` on, and a proof of 33 bytes
    PUT    /v1/files/content?root=&of=&path=&upload=&size=&offset=&mtime=&executable=
                                                -> FileView         (body: the content and its SHA-256, 32 bytes)
    POST   /v1/files/folder?root=&of=&path=     -> FileView
    POST   /v1/files/remove?root=&of=&path=     -> RemovalView      (a part of it; `done` says whether there is more)
    GET    /v1/kept                             -> KeptView
    POST   /v1/experiments/{id}/keep?keep=      -> KeptView         (of a set: all of its experiments)
    GET    /v1/outputs?older=&larger=&project=&before=&sub= -> OutputPage
    POST   /v1/experiments/{id}/output/remove   -> OutputView       (of one experiment that has ended)
    GET    /v1/leftovers?caches=&days=&foreign= -> LeftoversView
    POST   /v1/leftovers/remove?...             -> LeftoversView    (removes the same things)

Every refusal is a `Failure`. `{id}` is a canonical ID; when it names jobs (`4.ps`), the answer holds only those jobs.
"""

from __future__ import annotations

from riseml.wire.capsules import (
    Capsule,
    CapsuleCode,
    CapsuleData,
    CapsuleEnvironment,
    CapsuleGpu,
    CapsuleHost,
    CapsuleJob,
    CapsuleLaunch,
    CapsuleTimes,
    CapsuleVariables,
    CapsuleView,
    MissingPart,
    MissingParts,
    RerunNeeds,
)
from riseml.wire.command_output import (
    Checkout,
    CompletionScript,
    CopyView,
    ExportedFolder,
    Forwards,
    ForwardView,
    KeyRotation,
    Kill,
    Kills,
    NewFile,
    PlotSeries,
    PlotView,
    ScalingRowView,
    ScalingView,
    ServerLogLine,
    ServerStop,
)
from riseml.wire.comparisons import ComparedExperiment, ComparisonView, Difference, FileDifference, MetricDifference
from riseml.wire.experiments import (
    ExperimentList,
    ExperimentView,
    JobEnvironment,
    JobEnvironments,
    JobView,
    NameList,
    TfConfigs,
    WrittenView,
)
from riseml.wire.explanations import (
    ActivityView,
    BlockerView,
    ExplanationView,
    HostFitView,
    JobFitView,
    JobPlaceView,
    QueuePlaceView,
    SetExplanation,
    ShortageView,
)
from riseml.wire.failures import Failure, FailureBody, ProblemShape
from riseml.wire.files import (
    CopySummary,
    DiskUsageView,
    FileListing,
    FileView,
    KeptView,
    OutputPage,
    OutputView,
    RemovalView,
)
from riseml.wire.gpus import GpuList, GpuTrouble, GpuView
from riseml.wire.leftovers import DiskView, LeftoversView, LeftoverView
from riseml.wire.logs import EndEntry, Entry, LineEntry, LinesEntry, PingEntry, ReportEntry, StateEntry
from riseml.wire.metrics import (
    ExperimentMetrics,
    MetricBucket,
    MetricHistoryView,
    MetricLastValues,
    MetricNames,
    MetricsList,
    MetricView,
)
from riseml.wire.plans import (
    PlanData,
    PlanEnvironment,
    PlanExperiment,
    PlanJob,
    PlanRoleEnvironment,
    PlanSave,
    PlanSearch,
    PlanView,
)
from riseml.wire.pool import (
    GoneHost,
    HostFinding,
    HostFindings,
    HostKeys,
    HostKeyView,
    HostUsage,
    HostView,
    LinkFinding,
    MeasureView,
    PoolFinding,
    PoolFindings,
    PoolMember,
    PoolMembers,
    PoolRecovery,
    PoolUsage,
    PoolView,
    QueuedView,
    QueueView,
    TestedGpuView,
)
from riseml.wire.pool_changes import AddedHost, NewHost, RemovedHost
from riseml.wire.results import ObjectiveView, ResultList, ResultView
from riseml.wire.samples import JobSamples, Remarks, RemarkView, SampleHistory, Samples, SampleView
from riseml.wire.saves import (
    LeftOutFile,
    RestoredView,
    SavedFileView,
    SavedSummary,
    SavedView,
    SaveRequest,
    StoreKeys,
)
from riseml.wire.searches import BestTrial, SearchView, TrialOrder
from riseml.wire.server import BackedUpHome, MovedHome, RestoredHome, ServerView, SystemView
from riseml.wire.sets import Curve, CurveList, ImportanceView, ParameterImportance
from riseml.wire.state_names import StateName
from riseml.wire.submissions import (
    GitState,
    MissingContents,
    NotebookOrder,
    Pairs,
    PinnedImage,
    Submission,
    TensorBoardOrder,
)
from riseml.wire.web import (
    Changes,
    EventList,
    EventView,
    GuestAddress,
    LineMatches,
    LinePage,
    NumberedLine,
    WebOrder,
    WebSessions,
    WebSessionView,
    WebView,
)

__all__ = [
    "ActivityView",
    "AddedHost",
    "BackedUpHome",
    "BestTrial",
    "BlockerView",
    "Capsule",
    "CapsuleCode",
    "CapsuleData",
    "CapsuleEnvironment",
    "CapsuleGpu",
    "CapsuleHost",
    "CapsuleJob",
    "CapsuleLaunch",
    "CapsuleTimes",
    "CapsuleVariables",
    "CapsuleView",
    "Changes",
    "Checkout",
    "ComparedExperiment",
    "ComparisonView",
    "CompletionScript",
    "CopySummary",
    "CopyView",
    "Curve",
    "CurveList",
    "Difference",
    "DiskUsageView",
    "DiskView",
    "EndEntry",
    "Entry",
    "EventList",
    "EventView",
    "ExperimentList",
    "ExperimentMetrics",
    "ExperimentView",
    "ExplanationView",
    "ExportedFolder",
    "Failure",
    "FailureBody",
    "FileDifference",
    "FileListing",
    "FileView",
    "ForwardView",
    "Forwards",
    "GitState",
    "GoneHost",
    "GpuList",
    "GpuTrouble",
    "GpuView",
    "GuestAddress",
    "HostFinding",
    "HostFindings",
    "HostFitView",
    "HostKeyView",
    "HostKeys",
    "HostUsage",
    "HostView",
    "ImportanceView",
    "JobEnvironment",
    "JobEnvironments",
    "JobFitView",
    "JobPlaceView",
    "JobSamples",
    "JobView",
    "KeptView",
    "KeyRotation",
    "Kill",
    "Kills",
    "LeftOutFile",
    "LeftoverView",
    "LeftoversView",
    "LineEntry",
    "LineMatches",
    "LinePage",
    "LinesEntry",
    "LinkFinding",
    "MeasureView",
    "MetricBucket",
    "MetricDifference",
    "MetricHistoryView",
    "MetricLastValues",
    "MetricNames",
    "MetricView",
    "MetricsList",
    "MissingContents",
    "MissingPart",
    "MissingParts",
    "MovedHome",
    "NameList",
    "NewFile",
    "NewHost",
    "NotebookOrder",
    "NumberedLine",
    "ObjectiveView",
    "OutputPage",
    "OutputView",
    "Pairs",
    "ParameterImportance",
    "PingEntry",
    "PinnedImage",
    "PlanData",
    "PlanEnvironment",
    "PlanExperiment",
    "PlanJob",
    "PlanRoleEnvironment",
    "PlanSave",
    "PlanSearch",
    "PlanView",
    "PlotSeries",
    "PlotView",
    "PoolFinding",
    "PoolFindings",
    "PoolMember",
    "PoolMembers",
    "PoolRecovery",
    "PoolUsage",
    "PoolView",
    "ProblemShape",
    "QueuePlaceView",
    "QueueView",
    "QueuedView",
    "RemarkView",
    "Remarks",
    "RemovalView",
    "RemovedHost",
    "ReportEntry",
    "RerunNeeds",
    "RestoredHome",
    "RestoredView",
    "ResultList",
    "ResultView",
    "SampleHistory",
    "SampleView",
    "Samples",
    "SaveRequest",
    "SavedFileView",
    "SavedSummary",
    "SavedView",
    "ScalingRowView",
    "ScalingView",
    "SearchView",
    "ServerLogLine",
    "ServerStop",
    "ServerView",
    "SetExplanation",
    "ShortageView",
    "StateEntry",
    "StateName",
    "StoreKeys",
    "Submission",
    "SystemView",
    "TensorBoardOrder",
    "TestedGpuView",
    "TfConfigs",
    "TrialOrder",
    "WebOrder",
    "WebSessionView",
    "WebSessions",
    "WebView",
    "WrittenView",
]
