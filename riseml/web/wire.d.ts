// Made by `python -m scripts.wire_shapes` from riseml/wire. Do not edit it.
export type StateName = "CREATED" | "BUILDING" | "PENDING" | "STARTING" | "RUNNING" | "KILLED" | "FAILED" | "FINISHED";
export type ActivityView = { host: string; work: "pull" | "install" | "send" | "data"; what: string; done: number; total: number | null };
export type AddedHost = { name: string; state: "untrusted" | "fit" | "added"; file: string; entry: string; keys: HostKeys | null; engine: string; cpus: number; mem_mib: number; gpus: number; findings: Array<PoolFinding>; members: Array<PoolMember> };
export type AnnotationChange = { name?: string; add_tags?: Array<string>; remove_tags?: Array<string>; note?: string; starred?: boolean; archived?: boolean };
export type AnnotationList = { experiments: Array<AnnotationView> };
export type AnnotationView = { id: string; name: string; tags: Array<string>; note: string; starred: boolean; archived: boolean };
export type AuditCheckView = { number: number; hash: string; problem: string };
export type AuditLineView = { number: number; at: string; user: string; key: string; address: string; request: string; result: string; of: number | null };
export type AuditList = { lines: Array<AuditLineView> };
export type BackedUpHome = { file: string; size: number; home: string; store: boolean; left_out: Array<string> };
export type BestTrial = { id: string; value: number; parameters: Record<string, string>; runs: number };
export type BlockerView = { block: string; text: string; by: Array<string> };
export type CallerProject = { project: string; role: "viewer" | "member" | "maintainer" };
export type CallerView = { user: string; role: "viewer" | "member" | "admin"; uid: number | null; gid: number | null; scope: "read" | "run" | "admin"; key: string; project: string | null; projects: Array<CallerProject>; team: boolean };
export type Capsule = { version: 1; riseml: string; complete: boolean; experiment: string; user: string; project: string; framework: string; rerun_of: string | null; name?: string; tags?: Array<string>; note?: string; config: string; parameters: Record<string, string>; seeds: Record<string, string>; code: CapsuleCode; environments: Array<CapsuleEnvironment>; variables: CapsuleVariables; data: CapsuleData; output: string; hosts: Array<CapsuleHost>; jobs: Array<CapsuleJob>; state: StateName; reason: string; message: string; results: Record<string, MetricView>; times: CapsuleTimes };
export type CapsuleCode = { digest: string; included: boolean; file: string; git: GitState | null };
export type CapsuleData = { folder: string; entries: Array<string> | null };
export type CapsuleEnvironment = { image: string; digest: string | null; install: Array<string>; shell?: "auto" | "bash" | "sh"; files: Array<string>; packages: Array<string> | null };
export type CapsuleGpu = { id: string; name: string; mem_mib: number; driver: string };
export type CapsuleHost = { name: string; runs: string; gpus: Array<CapsuleGpu> };
export type CapsuleJob = { name: string; environment: number; part: "decides" | "helps" | "serves" | "watches"; host: string | null; address: string | null; attempt: number; shell?: "bash" | "sh" | null; state: StateName; exit_code: number | null; started_at: string | null; ended_at: string | null; cpus: number; mem_mib: number; gpus: number; cpus_limit: number | null; mem_limit_mib: number | null; shm_mib: number; variables: Record<string, string>; hidden: Array<string>; tf_config: Record<string, unknown> | null; launch: CapsuleLaunch };
export type CapsuleLaunch = { hostname: string; command: Array<string>; variables: Record<string, string> };
export type CapsuleTimes = { created_at: string | null; placed_at: string | null; started_at: string | null; ended_at: string | null };
export type CapsuleVariables = { passed: Array<string>; written: Array<string> };
export type CapsuleView = { capsule: Capsule; config: string };
export type Changes = { changed: Array<string>; grown: Array<string>; reset: boolean };
export type CommandError = { error: ErrorView };
export type ComparedExperiment = { id: string; project: string; state: StateName; started_at: string | null; ended_at: string | null; seconds: number | null };
export type ComparisonView = { experiments: Array<ComparedExperiment>; parameters: Array<Difference>; config: Array<Difference>; environment: Array<Difference>; code: Array<FileDifference>; metrics: Array<MetricDifference>; code_unknown: Array<string> };
export type CopySummary = { source: string; target: string; files: number; size: number; links: number; unchanged: number; left_out: Array<string>; dry_run: boolean };
export type Curve = { id: string; step: Array<number | null>; at: Array<string>; mean: Array<number | null>; min: Array<number | null>; max: Array<number | null>; not_finite: Array<number> };
export type CurveList = { metric: string; total: number; curves: Array<Curve> };
export type DeviceLogin = { login: string; code: string; url: string; whole_url: string | null; expires_in: number; interval: number };
export type DeviceSession = { secret: string | null; user: string | null; wait: number };
export type DiagnosisView = { id: string; time: string; attempt: number; by_stall: boolean; seconds: number; cause: string; certainty: string; sentence: string; culprits: Array<string>; evidence: Array<string>; ranks: Array<RankFindingView> };
export type Difference = { name: string; values: Array<string | null> };
export type DiskUsageView = { path: string; files: number; size: number };
export type DiskView = { places: Array<string>; percent: number; clean_above: number; removed: number; removed_at: string | null; stuck: boolean };
export type EndEntry = { type: "end"; cursor: string; id: string; state: StateName; exit_code: number | null; reason: string; message: string; cause: string | null };
export type ErrorLocation = { file: string; line: number; column: number; path: string };
export type ErrorView = { code: string; exit_code: number; cause: string; location: ErrorLocation | null; fix: string | null; problems: Array<ProblemShape> };
export type EventList = { events: Array<EventView> };
export type EventView = { id: string; time: string; state: StateName; reason: string; sentence: string; message: string; attempt: number };
export type ExperimentList = { experiments: Array<ExperimentView> };
export type ExperimentMetrics = { id: string; metrics: Array<MetricView>; dropped: number; slow: Array<string> };
export type ExperimentView = { id: string; user: string; project: string; team_project?: string | null; may_change?: boolean; name: string; tags: Array<string>; note: string; starred: boolean; archived: boolean; type: "experiment" | "set" | "tensorboard" | "notebook"; shows: Array<string>; state: StateName; reason: string; message: string; cause: string | null; last_lines: Array<string>; advice: string; created_at: string; started_at: string | null; ended_at: string | null; waited?: number; waits_since?: string | null; image: string; image_digest: string | null; framework: string; run: Array<RunView>; concurrency: number; tensorboard: string | null; parameters: Record<string, string>; output: string; exit_code: number | null; closed: boolean; jobs: Array<JobView>; experiments: Array<ExperimentView>; metrics: Array<MetricView>; main_metric?: MainMetric | null; progress?: ProgressView | null; remarks?: Array<RemarkView>; diagnosis?: DiagnosisView | null; search: SearchView | null; after?: Array<string>; notes: Array<string>; saved: SavedSummary | null; written: WrittenView | null };
export type ExplanationView = { id: string; phase: "prepares" | "waits" | "placed" | "ended"; state: StateName; reason: string; summary: string; queue: QueuePlaceView | null; blockers: Array<BlockerView>; hosts: Array<HostFitView>; jobs: Array<JobPlaceView>; activities: Array<ActivityView>; network: "bridge" | "overlay" | "host" | null; network_host: string | null };
export type ExportedReport = { id: string; file: string; size: number };
export type Failure = { error: FailureBody };
export type FailureBody = { kind: string; message: string; hint: string | null; exit_code: number; problems?: Array<ProblemShape> };
export type FileDifference = { path: string; versions: Array<string | null> };
export type FileListing = { at: FileView; entries: Array<FileView>; next: string | null };
export type FileView = { path: string; kind: "file" | "folder" | "link" | "other"; size: number; mtime: number; executable: boolean; target: string | null; etag: string };
export type FoundName = { id: string };
export type GitState = { revision: string; clean: boolean | null; missing?: Array<string> };
export type GoneHost = { host: string; jobs: Array<string>; seconds_left: number };
export type GpuList = { gpus: Array<GpuView>; troubles: Array<GpuTrouble> };
export type GpuTrouble = { host: string; message: string };
export type GpuView = { host: string; id: string; uuid: string; name: string; driver: string; bus: string; serial: string; mem_total: number | null; mem_used: number | null; percent: number | null; temperature: number | null; power: number | null; power_limit: number | null; jobs: Array<string> };
export type GroupCurve = { label: string; ids: Array<string>; x: Array<number>; n: Array<number>; mean: Array<number>; low: Array<number>; high: Array<number>; error: Array<number | null> };
export type GroupCurveList = { metric: string; by: string; x: "step" | "report"; total: number; groups: Array<GroupCurve> };
export type GroupList = { objective: ObjectiveView | null; column: string; total: number; matched: number; parameters: Array<string>; same: Record<string, string>; best_run: GroupRunView | null; groups: Array<GroupView> };
export type GroupRunView = { id: string; seed: string | null; value: number };
export type GroupView = { ids: Array<string>; rank: number | null; parameters: Record<string, string>; n: number; mean: number | null; deviation: number | null; low: number | null; high: number | null; runs: Array<GroupRunView>; failed: number; stopped: number; unfinished: number; beyond: number };
export type HostFinding = { host: string; outcome: "ok" | "slow" | "failed"; id: string | null; message: string; measures: Array<MeasureView>; gpus: Array<TestedGpuView> };
export type HostFindings = { findings: Array<HostFinding>; links: Array<LinkFinding> };
export type HostFitView = { host: string; obstacle: "silent" | "lost" | "drained" | "stale" | null; text: string; jobs: Array<JobFitView> };
export type HostKeyView = { kind: string; fingerprint: string; pinned: "yes" | "no" | "other" };
export type HostKeys = { host: string; known_hosts: string; keys: Array<HostKeyView> };
export type HostUsage = { name: string; cpus: number | null; mem_mib: number | null; gpus: number | null; cpu: Array<number>; mem_used: Array<number>; gpu: Array<number>; cpus_held: Array<number>; gpus_held: Array<number> };
export type HostView = { name: string; state: "up" | "silent" | "draining" | "drained"; drained: boolean; message: string; url: string; address: string; swarm: "" | "member" | "manager"; labels: Record<string, string>; jobs: Array<string>; engine: string; cpus: number; mem_mib: number; gpus: number; gpu_mem_mib: number; gpu_driver: string; cpus_used: number; mem_mib_used: number; gpus_used: number };
export type HotLineView = { call: string; own: number; total: number };
export type ImportanceTable = { metric: string; goal: "maximize" | "minimize"; trials: number; stopped: number; parameters: Array<ParameterImportance>; message: string; when: string };
export type ImportanceView = { id: string; tables: Array<ImportanceTable> };
export type JobEnvironment = { variables: Record<string, string>; hidden: Array<string>; image: string };
export type JobEnvironments = { id: string; jobs: Record<string, JobEnvironment> };
export type JobFitView = { job: string; shortages: Array<ShortageView> };
export type JobPlaceView = { job: string; state: StateName; host: string; node: string | null; gpus: Array<string>; address: string | null; port: number | null; image: string; why: string; alternatives: Array<string> };
export type JobSamples = { id: string; project: string; state: StateName; host: string | null; cpus: number; mem_mib: number; gpus: number; time: Array<number>; attempt: Array<number>; cpu: Array<number | null>; mem_used: Array<number | null>; mem_total: Array<number | null>; gpu: Array<number | null>; gpu_mem_used: Array<number | null>; gpu_mem_total: Array<number | null>; net_in: Array<number | null>; net_out: Array<number | null>; disk_read: Array<number | null>; disk_write: Array<number | null> };
export type JobStacksView = { id: string; host: string | null; processes: Array<ProcessStacksView>; trouble: string };
export type JobView = { id: string; name: string; state: StateName; reason: string; message: string; host: string | null; attempt: number; exit_code: number | null; signal: string | null; oom: boolean; cpus: number; mem_mib: number; gpus: number; image: string; shell: string | null; started_at: string | null; ended_at: string | null; progress?: ProgressView | null; rates?: Array<RateView> };
export type KeptView = { kept: Array<string> };
export type KeyList = { keys: Array<KeyView> };
export type KeyView = { id: string; user: string; name: string; tail: string; scope: "read" | "run" | "admin"; project: string | null; state: "valid" | "expired" | "revoked"; created_at: string; expires_at: string; used_at: string | null; revoked_at: string | null };
export type LeftOutFile = { path: string; why: string };
export type LeftoverView = { kind: "container" | "network" | "folder" | "code" | "environment" | "snapshot" | "capsule" | "saved" | "data"; name: string; host: string | null; server: string; size: number | null; made_at: string | null; why: string; removed: boolean; problem: string | null };
export type LeftoversView = { leftovers: Array<LeftoverView>; others: Record<string, number>; silent: Array<string>; disks: Array<DiskView> };
export type LineEntry = { type: "line"; cursor: string; id: string; time: string; stream: "stdout" | "stderr" | "engine"; text: string };
export type LineMatches = { total: number; matches: Array<number>; next: number | null };
export type LinePage = { total: number; lines: Array<NumberedLine> };
export type LinesEntry = { type: "lines"; cursor: string; id: string; stream: "stdout" | "stderr" | "engine"; text: string };
export type LinkFinding = { hosts: Array<string>; outcome: "ok" | "slow" | "failed"; id: string | null; message: string; measures: Array<MeasureView> };
export type LocalVariableView = { name: string; value: string };
export type LoginOffers = { keys: boolean; provider: string | null };
export type MainMetric = { name: string; last: number | null };
export type MeasureView = { name: string; value: number; unit: "MB/s" | "GFLOP/s" | "GB/s" | "us" | "cores" | "MiB"; gpu: string };
export type MediaItem = { step: number; path: string; size: number; etag: string };
export type MediaSeries = { name: string; kind: "picture" | "sound" | "video" | "text" | "table"; items: Array<MediaItem> };
export type MediaView = { id: string; media: Array<MediaSeries>; left_out: number; more: boolean };
export type MemberRequest = { role: "viewer" | "member" | "maintainer" };
export type MemberView = { user: string; role: "viewer" | "member" | "maintainer" };
export type MetricBucket = { first_step: number | null; last_step: number | null; first_at: string; last_at: string; min: number | null; mean: number | null; max: number | null; count: number; not_finite: number };
export type MetricDifference = { name: string; metrics: Array<MetricView | null> };
export type MetricHistoryView = { id: string; metric: string; buckets: Array<MetricBucket> };
export type MetricLastValues = { metric: string; values: Record<string, number | null> };
export type MetricNames = { names: Array<string> };
export type MetricView = { name: string; count: number; last: number | string; last_step: number | null; last_at: string; min: number | null; min_step: number | null; max: number | null; max_step: number | null; attempt: number; not_finite: number };
export type MetricsList = { experiments: Array<ExperimentMetrics> };
export type MissingContents = { missing: Array<string> };
export type MissingPart = { part: "code" | "image" | "data" | "variable"; message: string };
export type MissingParts = { missing: Array<MissingPart> };
export type MovedHome = { home: string; former: string | null; former_host: string | null; retired: boolean; environments_removed: boolean };
export type NameList = { names: Array<string> };
export type NewHost = { name: string; url: string; address?: string; gpus?: "all" | Array<string>; labels?: Record<string, string>; cpus?: number; mem?: string; identity?: string; tls?: string; insecure?: boolean; fingerprints?: Array<string>; force?: boolean; dry_run?: boolean };
export type NewKeyRequest = { user?: string; name?: string; scope?: "read" | "run" | "admin"; project?: string; days?: number };
export type NewKeyView = { secret: string; key: KeyView };
export type NewProjectRequest = { name: string; open?: boolean };
export type NewTeam = { file: string; listen: string; url: string; names: Array<string>; fingerprint: string; admin: string; key: string };
export type NewUserRequest = { name: string; role?: "viewer" | "member" | "admin"; uid?: number; gid?: number; email?: string; shared_uid?: boolean };
export type NewUserView = { user: UserView; secret: string; key: KeyView };
export type NotebookRequest = { idle_timeout?: number };
export type NumberedLine = { number: number; whole: number; id: string; time: string; stream: "stdout" | "stderr" | "engine"; text: string };
export type ObjectiveView = { metric: string; goal: "maximize" | "minimize"; rule: string; words: string };
export type OutputPage = { outputs: Array<OutputView>; next: number | null; next_sub: number | null };
export type OutputView = { experiment: string; project: string; ended_at: string | null; size: number; files: number; removed: boolean; problem: string | null };
export type PageLogin = { session: string };
export type ParameterImportance = { name: string; importance: number };
export type PingEntry = { type: "ping"; cursor: string };
export type PinnedImage = { image: string; digest: string };
export type PlanData = { url: string; folder: string; refused: string | null };
export type PlanEnvironment = { image: string; base: string; replaced_by: string | null; install: Array<string>; refused: string | null; cached: boolean | null };
export type PlanExperiment = { id: string; output: string; waits: string | null; parameters: Record<string, string>; jobs: Array<PlanJob> };
export type PlanJob = { name: string; image: string; part: string; host: string | null; cpus: number; mem_mib: number; gpus: number; gpu: string; gpu_mem_mib: number | null; limit_cpus: number | null; limit_mem_mib: number | null; shm_mib: number; environment: Record<string, string>; passed_on: Array<string>; run: Array<string>; command: Array<string> };
export type PlanRoleEnvironment = { image: string; base: string; replaced_by: string | null; install: Array<string>; refused: string | null; cached: boolean | null; role: string };
export type PlanSave = { url: string; refused: string | null };
export type PlanSearch = { method: string; metric: string; goal: "maximize" | "minimize"; objectives: Array<ObjectiveView>; trials: number; repeat: number; concurrency: number; stop: string | null };
export type PlanView = { image: string; base: string; replaced_by: string | null; install: Array<string>; refused: string | null; cached: boolean | null; project: string; framework: string; role_environments: Array<PlanRoleEnvironment>; save: PlanSave | null; data: Array<PlanData>; search: PlanSearch | null; experiments: Array<PlanExperiment>; notes: Array<string> };
export type PoolFinding = { host: string; topic: string; outcome: "ok" | "note" | "failed"; message: string };
export type PoolFindings = { findings: Array<PoolFinding> };
export type PoolMember = { host: string; membership: "created" | "joined" | "member" | "promoted" | "demoted" | "recovered" | "silent" };
export type PoolMembers = { members: Array<PoolMember> };
export type PoolRecovery = { leader: string; keeps_swarm: boolean; lost: Array<string>; breaks: Array<string>; done: boolean; members: Array<PoolMember> };
export type PoolUsage = { since: string; until: string; step: number; time: Array<number>; hosts: Array<HostUsage>; left_out: number };
export type PoolView = { file: string | null; trouble: string; network: "bridge" | "overlay" | "host"; swarm_trouble: string; output: string; data: string; shared_output: boolean; hosts: Array<HostView>; gone: Array<GoneHost> };
export type ProblemShape = { file: string; line: number; column: number; path: string; problem: string; hint: string; severity: "error" | "warning" };
export type ProcessStacksView = { pid: number; parent: number; command: string; state: string; wait_channel: string; rank: number | null; threads: Array<ThreadStackView>; trouble: string };
export type ProfileOptions = { seconds?: number; rate?: number; native?: boolean; idle?: boolean };
export type ProfileView = { id: string; time: string; seconds: number; rate: number; samples: number; errors: number; overhead: number; top: Array<HotLineView>; flame_graph: string; speedscope: Record<string, unknown> };
export type ProgressView = { job: string; done: number; of: number; unit: string; fraction: number; per_second: number | null; remaining: number | null; spread: number | null; rounds: number };
export type ProjectChangeRequest = { open: boolean };
export type ProxiedAppAddress = { url: string };
export type QueuePlaceView = { position: number; length: number; ahead: Array<string> };
export type QueueView = { length: number; waiting: Array<QueuedView> };
export type QueuedView = { position: number; id: string; project: string; created_at: string; summary: string };
export type QuotaAmounts = { gpus: number | null; cpus: number | null; mem_mib: number | null; running: number | null; waiting: number | null; project_bytes: number | null; log_bytes: number | null; output_bytes: number | null };
export type QuotaChange = { gpus?: number | null; cpus?: number | null; mem_mib?: number | null; running?: number | null; waiting?: number | null; project_bytes?: number | null; log_bytes?: number | null; output_bytes?: number | null; defaults?: Array<"gpus" | "cpus" | "mem_mib" | "running" | "waiting" | "project_bytes" | "log_bytes" | "output_bytes">; weight?: number };
export type QuotaList = { team: boolean; quotas: Array<QuotaView> };
export type QuotaView = { kind: "user" | "project"; name: string; limits: QuotaAmounts; used: QuotaAmounts; own: Array<"gpus" | "cpus" | "mem_mib" | "running" | "waiting" | "project_bytes" | "log_bytes" | "output_bytes">; weight: number };
export type RankFindingView = { rank: string; job: string; wait: string | null; place: string | null; text: string; samples: number; of: number; state: string; helpers: Array<string> };
export type RateView = { unit: string; per_second: number };
export type RegistryList = { registries: Array<RegistryView> };
export type RegistryLogin = { login: string; password: string };
export type RegistryView = { host: string; login: string; owner: string; owner_kind: "user" | "project"; set_at: string; set_by: string; used_at: string | null };
export type RemarkView = { kind: string; job: string | null; text: string; since: string | null };
export type RemovalView = { path: string; files: number; folders: number; size: number; done: boolean };
export type RemovedHost = { name: string; removed: boolean; file: string; jobs: Array<string>; answers: boolean; containers: number; networks: number; environments: number; size: number; swarm: "" | "member" | "manager"; departure: "" | "none" | "left" | "removed" | "shared" | "services" | "kept"; output: string; shared_output: boolean; known_hosts: string };
export type RemovedSecret = { name: string; owner: string; owner_kind: "user" | "project" };
export type ReportBlock = { kind: "text" | "chart" | "table" | "media" | "problem"; line: number; pieces: Array<ReportPiece>; runs: Array<string>; absent: number; metric: string; columns: Array<string>; name: string; step: number | null; title: string; problem: string };
export type ReportBlocks = { blocks: Array<ReportBlock> };
export type ReportEntry = { type: "report"; cursor: string; id: string; time: string; step: number | null; values: Record<string, number | string> };
export type ReportList = { reports: Array<ReportSummary> };
export type ReportName = { name: string };
export type ReportPiece = { kind: "open" | "close" | "text" | "code" | "fence" | "break" | "rule"; tag: string; text: string; href: string };
export type ReportRequest = { name: string; text: string; project?: string; version?: number };
export type ReportSummary = { id: string; user: string; project: string; title: string; version: number; changed_at: string };
export type ReportText = { text: string; name?: string };
export type ReportView = { id: string; user: string; project: string; title: string; version: number; changed_at: string; text: string; can_change: boolean; blocks: Array<ReportBlock> };
export type RerunNeeds = { code?: string; images?: Array<PinnedImage>; data?: Array<string> };
export type RestoredHome = { home: string; former: string; former_host: string; store: boolean; owner: boolean };
export type RestoredView = { attempt: number; files: number; bytes: number; kept: number };
export type ResultList = { objective: ObjectiveView | null; objectives: Array<ObjectiveView>; total: number; archived: number; matched: number; parameters: Array<string>; same: Record<string, string>; metrics: Array<string>; best: ResultView | null; experiments: Array<ResultView>; notes: Array<string> };
export type ResultView = { id: string; user?: string; project: string; created_at?: string; name: string; tags: Array<string>; note: string; starred: boolean; archived: boolean; rank: number | null; value: number | null; scores: Record<string, number>; state: StateName; reason: string; parameters: Record<string, string>; metrics: Array<MetricView>; workers: number; hosts: Array<string>; seconds: number | null; started_at: string | null; ended_at: string | null; generation?: number; parent?: string; gpus?: number };
export type RunAnnotation = { name?: string; tags?: Array<string>; note?: string };
export type RunView = { jobs: Array<string>; lines: Array<string> };
export type SampleHistory = { since: string; until: string; step: number; jobs: Array<JobSamples> };
export type SampleView = { id: string; project: string; state: StateName; host: string | null; node: string | null; time: string | null; cpu: number | null; mem: number | null; mem_used: number | null; mem_total: number | null; gpu: number | null; gpu_mem: number | null; gpu_mem_used: number | null; gpu_mem_total: number | null; net_in: number | null; net_out: number | null; disk_read: number | null; disk_write: number | null; lines: number | null; cpus: number; mem_mib: number; gpus: number; image: string; progress?: ProgressView | null; rates?: Array<RateView> };
export type Samples = { samples: Array<SampleView> };
export type SaveRequest = { keys?: StoreKeys };
export type SavedFileView = { path: string; size: number; sha256: string; changed: string; url: string };
export type SavedSummary = { place: string; state: "waiting" | "saving" | "saved" | "incomplete" | "nothing"; saved_at: string | null; files: number; bytes: number; missing: number; trouble: string; done: number; total: number; restored: RestoredView | null };
export type SavedTableList = { views: Array<SavedTableView>; projects: Array<string> };
export type SavedTableName = { project: string; name: string; user?: string };
export type SavedTableRequest = { project: string; name: string; query: string; default: boolean };
export type SavedTableView = { user: string; project: string; name: string; query: string; default: boolean };
export type SavedView = { place: string; state: "waiting" | "saving" | "saved" | "incomplete" | "nothing"; saved_at: string | null; files: number; bytes: number; missing: number; trouble: string; done: number; total: number; restored: RestoredView | null; id: string; manifest: Array<SavedFileView>; missing_paths: Array<string>; left_out: Array<LeftOutFile> };
export type SearchView = { method: string; metric: string; goal: "maximize" | "minimize"; objective: string; objectives: Array<ObjectiveView>; seed: number; trials: number; repeat: number; made: number; running: number; complete: number; stopped: number; failed: number; best: BestTrial | null; front: Array<string>; end: string | null; message: string; next: string; variables: Array<string> };
export type SecretList = { secrets: Array<SecretView> };
export type SecretValue = { value: string };
export type SecretView = { name: string; owner: string; owner_kind: "user" | "project"; set_at: string; set_by: string; used_at: string | null };
export type ServerView = { version: string; revision: string; package: string; id: string; pid: number; started_at: string; home: string; executor: string; note: string; missing_engine: string; engine: string; output: string; data: string; problem: string; active: number; closing: number; searches: number; state: string; holder: string; holder_since: string; holder_address: string };
export type SessionView = { id: string; user: string; kind: "page" | "device"; created_at: string; used_at: string; expires_at: string; user_agent: string; address: string; key: string | null };
export type Sessions = { user: string; sessions: Array<SessionView> };
export type SetChangeRequest = { paused: boolean | null; concurrency: number | null; stop: boolean };
export type SetExplanation = { id: string; state: StateName; counts: Record<string, number>; search: string | null; members: Array<ExplanationView> };
export type ShortageView = { lack: "cpus" | "mem" | "gpus" | "label" | "gpu"; needs: number; free: number; total: number; held_by: Array<string>; text: string };
export type StackFrameView = { function: string; file: string; line: number; native: boolean; variables: Array<LocalVariableView> };
export type StackGroupView = { ranks: Array<string>; place: string | null; idle: boolean; remark: string };
export type StacksRequest = { native?: boolean; variables?: boolean };
export type StacksView = { id: string; time: string; summary: string; groups: Array<StackGroupView>; jobs: Array<JobStacksView> };
export type StateEntry = { type: "state"; cursor: string; id: string; time: string; state: StateName; reason: string; sentence: string; message: string; exit_code: number | null };
export type StoreKeys = { AWS_ACCESS_KEY_ID: string; AWS_SECRET_ACCESS_KEY: string; AWS_SESSION_TOKEN?: string };
export type StragglerView = { job: string; text: string; kind: "behind" | "full-link" };
export type Stragglers = { stragglers: Array<StragglerView> };
export type Submission = { project: string; file: string; config: string; key?: string; snapshot?: string; parameters?: Array<[string, string]>; pull?: boolean; settings?: Array<[string, string]>; environment?: Record<string, string>; notebook?: NotebookRequest; executor?: "docker" | "process" | "slurm"; git?: GitState; pinned?: Array<PinnedImage>; annotation?: RunAnnotation; after?: Array<string>; rerun_of?: string };
export type SystemView = { server: ServerView; hosts: Array<HostView> };
export type TableColumn = { name: string; kind: "own" | "parameters" | "metrics"; part: string; differs: boolean };
export type TableLine = { id: string; group: string; count: number; ended: number; open: boolean; inside: boolean; user: string; team_project: string | null; may_change: boolean; state: StateName | null; progress: ProgressView | null; latest: string; cells: Array<string | number | null>; mixed: Array<number> };
export type TableView = { objectives: Array<ObjectiveView>; total: number; archived: number; matched: number; lines: number; columns: Array<string>; available: Array<TableColumn>; rows: Array<TableLine>; notes: Array<string> };
export type TeamProjectList = { projects: Array<TeamProjectView> };
export type TeamProjectView = { name: string; open: boolean; created_at: string; members: Array<MemberView> };
export type TensorBoardRequest = { experiments: Array<string>; key?: string; left_after?: number; executor?: "docker" | "process" | "slurm" };
export type TestedGpuView = { index: number; uuid: string; model: string; driver: string; mem_mib: number; watts: number | null; celsius: number | null; errors: Array<string> };
export type TfConfigs = { id: string; configs: Record<string, Record<string, unknown> | null> };
export type ThreadStackView = { name: string; thread: number; idle: boolean; holds_gil: boolean; frames: Array<StackFrameView> };
export type TrialRequest = { trials: number; environment: Record<string, string> };
export type UsageList = { by: "user" | "project"; since: string; until: string; rows: Array<UsageRow> };
export type UsageRow = { name: string; experiments: number; gpu_hours: number; gpu_hours_used: number | null; core_hours: number; waited: number; waiting: number };
export type UserChangeRequest = { role?: "viewer" | "member" | "admin"; uid?: number; gid?: number; email?: string; disabled?: boolean; shared_uid?: boolean };
export type UserLinkRequest = { subject: string };
export type UserList = { users: Array<UserView> };
export type UserView = { name: string; role: "viewer" | "member" | "admin"; uid: number | null; gid: number | null; disabled: boolean; email: string; created_at: string };
export type WebRequest = { port?: number };
export type WebSessionView = { id: string; opened_at: string; until: string };
export type WebSessions = { sessions: Array<WebSessionView> };
export type WebView = { open: boolean; port: number | null; url: string | null };
export type WrittenView = { kept_files: number; kept_bytes: number; kept_names: Array<string>; lost_files: number; lost_bytes: number; lost_names: Array<string>; more: boolean; sentences: Array<string> };
export type AnswerTo<Request extends string> =
  Request extends `POST /projects/${string}/members/${string}/remove` ? TeamProjectView :
  Request extends `GET /experiments/${string}/lines/matches` ? LineMatches :
  Request extends `GET /experiments/${string}/metrics/history` ? MetricHistoryView :
  Request extends `GET /pool/hosts/${string}/keys` ? HostKeys :
  Request extends `POST /experiments/${string}/output/remove` ? OutputView :
  Request extends `POST /pool/hosts/${string}/drain` ? HostView :
  Request extends `POST /pool/hosts/${string}/keys` ? HostKeys :
  Request extends `POST /pool/hosts/${string}/remove` ? RemovedHost :
  Request extends `POST /pool/hosts/${string}/resume` ? HostView :
  Request extends `POST /projects/${string}/members/${string}` ? TeamProjectView :
  Request extends `POST /web/sessions/${string}/end` ? WebSessions :
  Request extends `GET /experiments/${string}/capsule` ? CapsuleView :
  Request extends `GET /experiments/${string}/curves` ? CurveList :
  Request extends `GET /experiments/${string}/diagnosis` ? DiagnosisView :
  Request extends `GET /experiments/${string}/environment` ? JobEnvironments :
  Request extends `GET /experiments/${string}/events` ? EventList :
  Request extends `GET /experiments/${string}/explain` ? ExplanationView :
  Request extends `GET /experiments/${string}/importance` ? ImportanceView :
  Request extends `GET /experiments/${string}/lines` ? LinePage :
  Request extends `GET /experiments/${string}/media` ? MediaView :
  Request extends `GET /experiments/${string}/metrics` ? MetricsList :
  Request extends `GET /experiments/${string}/samples` ? Samples | SampleHistory :
  Request extends `GET /experiments/${string}/saved` ? SavedView :
  Request extends `GET /experiments/${string}/stragglers` ? Stragglers :
  Request extends `GET /experiments/${string}/tfconfig` ? TfConfigs :
  Request extends `POST /experiments/${string}/address` ? ProxiedAppAddress :
  Request extends `POST /experiments/${string}/annotation` ? AnnotationView :
  Request extends `POST /experiments/${string}/diagnosis` ? DiagnosisView :
  Request extends `POST /experiments/${string}/keep` ? KeptView :
  Request extends `POST /experiments/${string}/kill` ? ExperimentView :
  Request extends `POST /experiments/${string}/profile` ? ProfileView :
  Request extends `POST /experiments/${string}/save` ? SavedView :
  Request extends `POST /experiments/${string}/search` ? ExperimentView :
  Request extends `POST /experiments/${string}/stacks` ? StacksView :
  Request extends `POST /experiments/${string}/trials` ? ExperimentView :
  Request extends `POST /keys/${string}/revoke` ? KeyView :
  Request extends `POST /projects/${string}/remove` ? TeamProjectView :
  Request extends `POST /quotas/${string}/${string}` ? QuotaView :
  Request extends `POST /sessions/${string}/end` ? Sessions :
  Request extends `POST /snapshots/${string}/contents` ? MissingContents :
  Request extends `POST /table/views/remove` ? SavedTableView :
  Request extends `POST /users/${string}/link` ? UserView :
  Request extends `PUT /snapshots/${string}/manifest` ? MissingContents :
  Request extends `DELETE /registries/${string}` ? RemovedSecret :
  Request extends `DELETE /secrets/${string}` ? RemovedSecret :
  Request extends `GET /audit/check` ? AuditCheckView :
  Request extends `GET /experiments/${string}` ? ExperimentView :
  Request extends `GET /metrics/names` ? MetricNames :
  Request extends `GET /metrics/values` ? MetricLastValues :
  Request extends `GET /names/find` ? FoundName :
  Request extends `GET /pool/queue` ? QueueView :
  Request extends `GET /pool/usage` ? PoolUsage :
  Request extends `GET /projects/${string}` ? TeamProjectView :
  Request extends `GET /reports/${string}` ? ReportView :
  Request extends `GET /results/curves` ? GroupCurveList :
  Request extends `GET /results/groups` ? GroupList :
  Request extends `GET /table/views` ? SavedTableList :
  Request extends `GET /users/${string}` ? UserView :
  Request extends `GET /web/sessions` ? WebSessions :
  Request extends `POST /files/folder` ? FileView :
  Request extends `POST /files/link` ? FileView :
  Request extends `POST /files/remove` ? RemovalView :
  Request extends `POST /leftovers/remove` ? LeftoversView :
  Request extends `POST /pool/check` ? PoolFindings :
  Request extends `POST /pool/hosts` ? AddedHost :
  Request extends `POST /pool/join` ? PoolMembers :
  Request extends `POST /pool/recover` ? PoolRecovery :
  Request extends `POST /projects/${string}` ? TeamProjectView :
  Request extends `POST /reports/preview` ? ReportBlocks :
  Request extends `POST /reports/remove` ? ReportSummary :
  Request extends `POST /reruns/check` ? MissingParts :
  Request extends `POST /server/stop` ? ServerView :
  Request extends `POST /table/views` ? SavedTableView :
  Request extends `POST /users/${string}` ? UserView :
  Request extends `POST /web/close` ? WebView :
  Request extends `PUT /files/content` ? FileView :
  Request extends `PUT /registries/${string}` ? RegistryView :
  Request extends `PUT /secrets/${string}` ? SecretView :
  Request extends `GET /audit` ? AuditList :
  Request extends `GET /comparison` ? ComparisonView :
  Request extends `GET /experiments` ? ExperimentList :
  Request extends `GET /files` ? FileListing :
  Request extends `GET /gpus` ? GpuList :
  Request extends `GET /kept` ? KeptView :
  Request extends `GET /keys` ? KeyList :
  Request extends `GET /leftovers` ? LeftoversView :
  Request extends `GET /names` ? NameList :
  Request extends `GET /outputs` ? OutputPage :
  Request extends `GET /pool` ? PoolView :
  Request extends `GET /projects` ? TeamProjectList :
  Request extends `GET /quotas` ? QuotaList :
  Request extends `GET /registries` ? RegistryList :
  Request extends `GET /reports` ? ReportList :
  Request extends `GET /results` ? ResultList :
  Request extends `GET /samples` ? Samples :
  Request extends `GET /secrets` ? SecretList :
  Request extends `GET /server` ? ServerView :
  Request extends `GET /sessions` ? Sessions :
  Request extends `GET /system` ? SystemView :
  Request extends `GET /table` ? TableView :
  Request extends `GET /usage` ? UsageList :
  Request extends `GET /users` ? UserList :
  Request extends `GET /whoami` ? CallerView :
  Request extends `POST /experiments` ? ExperimentView :
  Request extends `POST /keys` ? NewKeyView :
  Request extends `POST /plans` ? PlanView :
  Request extends `POST /projects` ? TeamProjectView :
  Request extends `POST /reports` ? ReportView :
  Request extends `POST /tensorboards` ? ExperimentView :
  Request extends `POST /users` ? NewUserView :
  Request extends `POST /web` ? WebView :
  unknown;
