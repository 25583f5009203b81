"""The requests and answers of the HTTP API, shared by client and server: one module for each subject.

Here: typed dictionaries. They are also what commands print with `--json` (docs/json.md), so fields may be added but
not renamed or removed. Times are RFC 3339 in UTC (`2026-08-31T07:23:46Z`), sizes are bytes unless the name ends in
`_mib`, IDs are canonical.
Not here: how an answer is computed (`server.api`), how a command prints it for people (`cli.output`), and the routes: a
running server describes them at `/openapi.json`, from `server.api.routes`.

Every refusal is a `Failure`. `{id}` is a canonical ID; when it names jobs (`4.ps`), the answer holds only those jobs.
"""

from __future__ import annotations

from riseml.wire.agents import (
    AgentBudget as AgentBudget,
    AgentCheck as AgentCheck,
    AgentConfig as AgentConfig,
    AgentDiagnosis as AgentDiagnosis,
    AgentDocs as AgentDocs,
    AgentExplanation as AgentExplanation,
    AgentLog as AgentLog,
    AgentLogLine as AgentLogLine,
    AgentMetrics as AgentMetrics,
    AgentPlan as AgentPlan,
    AgentResults as AgentResults,
    AgentRun as AgentRun,
    AgentStatus as AgentStatus,
)
from riseml.wire.audit import (
    AuditCheckView as AuditCheckView,
    AuditLineView as AuditLineView,
    AuditList as AuditList,
)
from riseml.wire.accounts import (
    CallerProject as CallerProject,
    CallerView as CallerView,
    KeyList as KeyList,
    KeyView as KeyView,
    MemberRequest as MemberRequest,
    MemberView as MemberView,
    NewKeyRequest as NewKeyRequest,
    NewKeyView as NewKeyView,
    NewProjectRequest as NewProjectRequest,
    NewUserRequest as NewUserRequest,
    NewUserView as NewUserView,
    ProjectChangeRequest as ProjectChangeRequest,
    TeamProjectList as TeamProjectList,
    TeamProjectView as TeamProjectView,
    UserChangeRequest as UserChangeRequest,
    UserLinkRequest as UserLinkRequest,
    UserList as UserList,
    UserView as UserView,
)
from riseml.wire.capsules import (
    Capsule as Capsule,
    CapsuleCode as CapsuleCode,
    CapsuleData as CapsuleData,
    CapsuleEnvironment as CapsuleEnvironment,
    CapsuleGpu as CapsuleGpu,
    CapsuleHost as CapsuleHost,
    CapsuleJob as CapsuleJob,
    CapsuleLaunch as CapsuleLaunch,
    CapsuleTimes as CapsuleTimes,
    CapsuleVariables as CapsuleVariables,
    CapsuleView as CapsuleView,
    MissingPart as MissingPart,
    MissingParts as MissingParts,
    RerunNeeds as RerunNeeds,
)
from riseml.wire.command_output import (
    Checkout as Checkout,
    CompletionScript as CompletionScript,
    CopyView as CopyView,
    DocsPage as DocsPage,
    DocsTopicList as DocsTopicList,
    DocsTopicView as DocsTopicView,
    ExampleSummary as ExampleSummary,
    ExportedFolder as ExportedFolder,
    Forwards as Forwards,
    ForwardView as ForwardView,
    GroupComparisonView as GroupComparisonView,
    KeyRotation as KeyRotation,
    Kill as Kill,
    Kills as Kills,
    NewFile as NewFile,
    OpenedPage as OpenedPage,
    PlotSeries as PlotSeries,
    PlotView as PlotView,
    ScalingRowView as ScalingRowView,
    ScalingView as ScalingView,
    SchemaFile as SchemaFile,
    SchemaList as SchemaList,
    SelfFinding as SelfFinding,
    SelfFindings as SelfFindings,
    ServerLogLine as ServerLogLine,
    ServerStop as ServerStop,
)
from riseml.wire.comparisons import (
    ComparedExperiment as ComparedExperiment,
    ComparisonView as ComparisonView,
    Difference as Difference,
    FileDifference as FileDifference,
    MetricDifference as MetricDifference,
)
from riseml.wire.diagnoses import DiagnosisView as DiagnosisView
from riseml.wire.diagnoses import RankFindingView as RankFindingView
from riseml.wire.experiments import (
    AnnotationChange as AnnotationChange,
    AnnotationList as AnnotationList,
    AnnotationView as AnnotationView,
    ExperimentList as ExperimentList,
    ExperimentView as ExperimentView,
    FoundName as FoundName,
    JobEnvironment as JobEnvironment,
    JobEnvironments as JobEnvironments,
    JobView as JobView,
    NameList as NameList,
    RunView as RunView,
    TfConfigs as TfConfigs,
    WrittenView as WrittenView,
)
from riseml.wire.explanations import (
    ActivityView as ActivityView,
    BlockerView as BlockerView,
    ExplanationView as ExplanationView,
    HostFitView as HostFitView,
    JobFitView as JobFitView,
    JobPlaceView as JobPlaceView,
    QueuePlaceView as QueuePlaceView,
    SetExplanation as SetExplanation,
    ShortageView as ShortageView,
)
from riseml.wire.failures import (
    CommandError as CommandError,
    ErrorLocation as ErrorLocation,
    ErrorView as ErrorView,
    Failure as Failure,
    FailureBody as FailureBody,
    ProblemShape as ProblemShape,
)
from riseml.wire.files import (
    CopySummary as CopySummary,
    DiskUsageView as DiskUsageView,
    FileListing as FileListing,
    FileView as FileView,
    KeptView as KeptView,
    OutputPage as OutputPage,
    OutputView as OutputView,
    RemovalView as RemovalView,
)
from riseml.wire.gpus import GpuList as GpuList, GpuTrouble as GpuTrouble, GpuView as GpuView
from riseml.wire.leftovers import DiskView as DiskView, LeftoversView as LeftoversView, LeftoverView as LeftoverView
from riseml.wire.logs import (
    EndEntry as EndEntry,
    Entry as Entry,
    LineEntry as LineEntry,
    LinesEntry as LinesEntry,
    PingEntry as PingEntry,
    ReportEntry as ReportEntry,
    StateEntry as StateEntry,
)
from riseml.wire.media import (
    MediaItem as MediaItem,
    MediaSeries as MediaSeries,
    MediaView as MediaView,
)
from riseml.wire.metrics import (
    ExperimentMetrics as ExperimentMetrics,
    MetricBucket as MetricBucket,
    MetricHistoryView as MetricHistoryView,
    MetricLastValues as MetricLastValues,
    MetricNames as MetricNames,
    MetricsList as MetricsList,
    MainMetric as MainMetric,
    MetricView as MetricView,
)
from riseml.wire.plans import (
    PlanData as PlanData,
    PlanEnvironment as PlanEnvironment,
    PlanExperiment as PlanExperiment,
    PlanJob as PlanJob,
    PlanRoleEnvironment as PlanRoleEnvironment,
    PlanSave as PlanSave,
    PlanSearch as PlanSearch,
    PlanView as PlanView,
)
from riseml.wire.pool import (
    GoneHost as GoneHost,
    HostFinding as HostFinding,
    HostFindings as HostFindings,
    HostKeys as HostKeys,
    HostKeyView as HostKeyView,
    HostUsage as HostUsage,
    HostView as HostView,
    LinkFinding as LinkFinding,
    MeasureView as MeasureView,
    PoolFinding as PoolFinding,
    PoolFindings as PoolFindings,
    PoolMember as PoolMember,
    PoolMembers as PoolMembers,
    PoolRecovery as PoolRecovery,
    PoolUsage as PoolUsage,
    PoolView as PoolView,
    QueuedView as QueuedView,
    QueueView as QueueView,
    TestedGpuView as TestedGpuView,
)
from riseml.wire.pool_changes import AddedHost as AddedHost, NewHost as NewHost, RemovedHost as RemovedHost
from riseml.wire.progress import ProgressView as ProgressView, RateView as RateView, RemarkView as RemarkView
from riseml.wire.quotas import (
    AccountKindName as AccountKindName,
    LimitName as LimitName,
    QuotaAmounts as QuotaAmounts,
    QuotaChange as QuotaChange,
    QuotaList as QuotaList,
    QuotaView as QuotaView,
    UsageList as UsageList,
    UsageRow as UsageRow,
)
from riseml.wire.reports import (
    ExportedReport as ExportedReport,
    ReportBlock as ReportBlock,
    ReportBlocks as ReportBlocks,
    ReportList as ReportList,
    ReportName as ReportName,
    ReportPiece as ReportPiece,
    ReportRequest as ReportRequest,
    ReportSummary as ReportSummary,
    ReportText as ReportText,
    ReportView as ReportView,
)
from riseml.wire.results import (
    GroupCurve as GroupCurve,
    GroupCurveList as GroupCurveList,
    GroupList as GroupList,
    GroupRunView as GroupRunView,
    GroupView as GroupView,
    ObjectiveView as ObjectiveView,
    ResultList as ResultList,
    ResultView as ResultView,
    SavedTableList as SavedTableList,
    SavedTableName as SavedTableName,
    SavedTableRequest as SavedTableRequest,
    SavedTableView as SavedTableView,
    TableColumn as TableColumn,
    TableLine as TableLine,
    TableView as TableView,
)
from riseml.wire.samples import (
    JobSamples as JobSamples,
    Stragglers as Stragglers,
    StragglerView as StragglerView,
    SampleHistory as SampleHistory,
    Samples as Samples,
    SampleView as SampleView,
)
from riseml.wire.saves import (
    LeftOutFile as LeftOutFile,
    RestoredView as RestoredView,
    SavedFileView as SavedFileView,
    SavedSummary as SavedSummary,
    SavedView as SavedView,
    SaveRequest as SaveRequest,
    StoreKeys as StoreKeys,
)
from riseml.wire.searches import (
    BestTrial as BestTrial,
    SearchView as SearchView,
    SetChangeRequest as SetChangeRequest,
    TrialRequest as TrialRequest,
)
from riseml.wire.secrets import (
    RegistryLogin as RegistryLogin,
    RegistryList as RegistryList,
    RegistryView as RegistryView,
    RemovedSecret as RemovedSecret,
    SecretList as SecretList,
    SecretValue as SecretValue,
    SecretView as SecretView,
)
from riseml.wire.server import (
    BackedUpHome as BackedUpHome,
    MovedHome as MovedHome,
    NewTeam as NewTeam,
    RestoredHome as RestoredHome,
    ServerView as ServerView,
    SystemView as SystemView,
)
from riseml.wire.sessions import (
    DeviceLogin as DeviceLogin,
    DeviceSession as DeviceSession,
    LoginOffers as LoginOffers,
    PageLogin as PageLogin,
    Sessions as Sessions,
    SessionView as SessionView,
)
from riseml.wire.sets import (
    Curve as Curve,
    CurveList as CurveList,
    ImportanceTable as ImportanceTable,
    ImportanceView as ImportanceView,
    ParameterImportance as ParameterImportance,
)
from riseml.wire.stacks import (
    HotLineView as HotLineView,
    JobStacksView as JobStacksView,
    LocalVariableView as LocalVariableView,
    ProcessStacksView as ProcessStacksView,
    ProfileOptions as ProfileOptions,
    ProfileView as ProfileView,
    StackFrameView as StackFrameView,
    StackGroupView as StackGroupView,
    StacksRequest as StacksRequest,
    StacksView as StacksView,
    ThreadStackView as ThreadStackView,
)
from riseml.wire.state_names import StateName as StateName
from riseml.wire.submissions import (
    GitState as GitState,
    MissingContents as MissingContents,
    NotebookRequest as NotebookRequest,
    Pairs as Pairs,
    PinnedImage as PinnedImage,
    RunAnnotation as RunAnnotation,
    Submission as Submission,
    TensorBoardRequest as TensorBoardRequest,
)
from riseml.wire.web import (
    Changes as Changes,
    EventList as EventList,
    EventView as EventView,
    ProxiedAppAddress as ProxiedAppAddress,
    LineMatches as LineMatches,
    LinePage as LinePage,
    NumberedLine as NumberedLine,
    WebRequest as WebRequest,
    WebSessions as WebSessions,
    WebSessionView as WebSessionView,
    WebView as WebView,
)
