"""The client of the HTTP API (see `wire`): one method for each endpoint, a deadline for each request.

Not here: starting a server, printing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar, cast
from urllib.parse import quote

from riseml import __version__
from riseml.base.errors import RisemlError, Unreachable
from riseml.base.records import dataclass
from riseml.client.answer_check import AnswerCheck
from riseml.client.exchange import (
    LOG_SILENCE,
    Address,
    AnswerLost,
    Exchange,
    OnCut,
    RetryPolicy,
    RetryTimer,
    ServerAbsent,
    read_address,
)
from riseml.client.exchange import (
    format_path as _format_path,
)
from riseml.client.foreign_ids import find_user, name_entry, name_experiment, name_explanation
from riseml.client.refusals import make_error
from riseml.client.silence_watch import HEARTBEAT
from riseml.client.socket_http import PATIENCE

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.account_client import AccountClient
    from riseml.client.file_client import FileClient, StoragePlace
    from riseml.client.report_client import ReportClient
else:
    from riseml.client.answer_check import WIRE_NAMES as wire  # the import of `riseml.wire` would take 30 ms

Answer = TypeVar("Answer")

__all__ = ["Address", "Client", "LogQuery", "RetryPolicy", "make_error", "read_address"]

_SLOW_ANSWER = 120.0  # seconds; for a plan the server asks the hosts, and it stores and lists an upload
_NO_CONDITIONS: Mapping[str, object] = MappingProxyType({})
_REPEATS = 3  # tries of a request that the server recognises by its key


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which part of a log the server sends, and how."""

    follow: bool = True  # wait for more lines, to the log's end
    tail: int | None = None  # at most this many of the last lines that jobs printed, and no changes of state
    since: str | None = None  # no older entries; RFC 3339
    batch: bool = False  # adjacent lines as one entry, several times faster for server and client
    reports: bool = False  # also send an entry for each report of metrics
    beats: bool = False  # when following, also yield the heartbeats, so that a caller can stop at a deadline
    cursor: str = ""  # continue after the entry that has this cursor; empty: begin as the others say


class Client:
    """Sends requests to one server.

    Raises:
        RisemlError: every method raises the error that the server refused with, or `Unreachable`.

    Example:
        with Client(read_address(read_settings(os.environ), os.environ)) as client:
            print(client.get_experiment("4")["state"])
    """

    def __init__(self, address: Address, retry: RetryPolicy | None = None) -> None:
        self.address = address
        self._retry = retry or RetryPolicy()
        self._exchange = Exchange(address)
        self._server: wire.ServerView | None = None  # the last answer of `get_server`

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The client stays usable: the next request opens a new connection."""
        self._exchange.close()

    def find_serving(self) -> Address:
        """Return the address with the URL first that answered last, and is not one of a standby."""
        return self._exchange.find_serving()

    def call_on_silence(self, tell: Callable[[int], object], on_answer: Callable[[], object] | None = None) -> None:
        """Call `tell` with the pid of the server, or 0, when an answer does not begin for some seconds, or the
        heartbeat of a followed log stays away; and `on_answer` when the server answers again.
        """
        self._exchange.silence.on_silence = tell
        self._exchange.silence.on_answer = on_answer

    @contextmanager
    def watch_server(self) -> Iterator[None]:
        """Ask the server every second, beside two-way streams, so that `call_on_silence` works there, too.

        A stream into a job has no heartbeat, because a command in it may say nothing for hours.
        """
        stop = threading.Event()
        probe = Exchange(self.address, self._exchange.silence, PATIENCE - HEARTBEAT)

        def ask() -> None:
            while not stop.wait(HEARTBEAT):
                try:
                    probe.send("GET", "/server")
                except RisemlError:  # the stream says what is wrong
                    probe.close()

        threading.Thread(target=ask, name="probe", daemon=True).start()
        try:
            yield
        finally:
            stop.set()
            probe.close()

    def get_server(self) -> wire.ServerView:
        """Return the server that answers. One of another version may lack keys in its answers, this one included."""
        self._exchange.check = AnswerCheck(allows_absent=True)
        self._server = self._get("/server", wire.ServerView)
        self._exchange.check = AnswerCheck(allows_absent=self._server["version"] != __version__)
        return self._server

    def recall_server(self) -> wire.ServerView:
        """Return the last answer of `get_server`; call it first when there is none."""
        return self._server or self.get_server()

    def stop_server(self) -> wire.ServerView:
        """Stop the server; training goes on."""
        return self._post("/server/stop", wire.ServerView)

    def rotate_key(self) -> None:
        """Replace the key with which the server seals the variables of users."""
        self._send("POST", "/server/key")

    def list_audit_lines(self, user: str | None, since: str | None, limit: int) -> wire.AuditList:
        """Return the newest lines of the audit log, the newest first."""
        query = _drop_missing({"user": user, "since": since, "limit": limit})
        return self._get("/audit", wire.AuditList, params=query)

    def check_audit_log(self, head: tuple[int, str] | None) -> wire.AuditCheckView:
        """Return whether the audit log is what the server wrote.

        Args:
            head: number and hash of a line that was the last one, from elsewhere.
        """
        query = {} if head is None else {"number": head[0], "hash": head[1]}
        return self._get("/audit/check", wire.AuditCheckView, params=query, timeout=_SLOW_ANSWER)

    def list_secrets(self) -> wire.SecretList:
        """Return the secrets of the user and of the user's projects, without their values."""
        return self._get("/secrets", wire.SecretList)

    def set_secret(self, name: str, value: str, project: str | None) -> wire.SecretView:
        """Set a secret of the user, or of a project."""
        request = {"json": {"value": value}, "params": _choose_project(project)}
        return self._exchange.request_answer("PUT", _format_path("secrets", name), wire.SecretView, **request)

    def remove_secret(self, name: str, project: str | None) -> wire.RemovedSecret:
        """Remove a secret of the user, or of a project."""
        path = _format_path("secrets", name)
        return self._exchange.request_answer("DELETE", path, wire.RemovedSecret, params=_choose_project(project))

    def list_registries(self) -> wire.RegistryList:
        """Return the registries for which the user and the user's projects have credentials."""
        return self._get("/registries", wire.RegistryList)

    def log_in_at_registry(self, host: str, login: wire.RegistryLogin, project: str | None) -> wire.RegistryView:
        """Set the credential of a registry."""
        request = {"json": login, "params": _choose_project(project)}
        return self._exchange.request_answer("PUT", _format_path("registries", host), wire.RegistryView, **request)

    def log_out_of_registry(self, host: str, project: str | None) -> wire.RemovedSecret:
        """Remove the credential of a registry."""
        path = _format_path("registries", host)
        return self._exchange.request_answer("DELETE", path, wire.RemovedSecret, params=_choose_project(project))

    def has_snapshot(self, digest: str) -> bool:
        """Return True when the server has the project files with this digest."""
        with self._exchange.open_response("HEAD", f"/snapshots/{digest}") as response:
            if response.is_success or response.status_code == 404:
                return response.is_success
        # The answer to HEAD has no body that says why the server refused. This request asks the same.
        return not self.check_rerun({"code": digest})

    def put_snapshot(self, digest: str, pieces: Iterable[bytes]) -> None:
        """Send the tar of a project's files, whose digest is `digest`."""
        self._send("PUT", f"/snapshots/{digest}", content=pieces)

    def put_manifest(self, digest: str, manifest: bytes) -> list[str]:
        """Send the list of a project's files, and return the contents that the server lacks (SHA-256, hex)."""
        return self._send_pieces("PUT", f"/snapshots/{digest}/manifest", [manifest])

    def send_contents(self, digest: str, records: Iterable[bytes]) -> list[str]:
        """Send records of contents (see `files.archives.pieces`), and return what the server lacks now."""
        return self._send_pieces("POST", f"/snapshots/{digest}/contents", records)

    def hand_over_pack(self, name: str) -> None:
        """Let a server on this machine take a pack (see `riseml.files.project.handed_packs`)."""
        self._send("POST", f"/packs/{name}")

    def _send_pieces(self, method: str, path: str, data: Iterable[bytes]) -> list[str]:
        return self._exchange.request_answer(
            method, path, wire.MissingContents, timeout=_SLOW_ANSWER, content=self._cut_pieces(data)
        )["missing"]

    def _cut_pieces(self, data: Iterable[bytes]) -> Iterator[bytes]:
        from riseml.files.archives.pieces import write_pieces

        return write_pieces(data, compress=self.address.socket is None)  # a network is slower than zlib

    def plan_submission(self, submission: wire.Submission) -> wire.PlanView:
        """Return what `submit` would run."""
        return self._post("/plans", wire.PlanView, timeout=_SLOW_ANSWER, json=submission)

    def check_submission(self, submission: wire.Submission) -> None:
        """Raise the error that `submit` would raise, as far as the server knows it without the project's files."""
        self._send("POST", "/experiments/check", json=submission)

    def submit(self, submission: wire.Submission) -> wire.ExperimentView:
        """Run an experiment and return it.

        With a `key` in the submission, the client repeats a request whose answer was lost. The server starts one
        experiment for one key.
        """
        return self._submit("/experiments", submission)

    def submit_tensorboard(self, request: wire.TensorBoardRequest) -> wire.ExperimentView:
        """Run one TensorBoard over the outputs of experiments and return it; repeated as `submit` is."""
        return self._submit("/tensorboards", request)

    def _submit(self, path: str, request: wire.Submission | wire.TensorBoardRequest) -> wire.ExperimentView:
        lost: AnswerLost | None = None
        for turn in range(_REPEATS if "key" in request else 1):
            try:
                return self._post(path, wire.ExperimentView, timeout=_SLOW_ANSWER, json=request)
            except (AnswerLost, ServerAbsent) as error:
                lost = error if isinstance(error, AnswerLost) else lost
                if lost is None:  # else the server may have stored the first request before it ended
                    raise
            self.close()
            self._retry.wait(0.2 * 2**turn)
        raise cast("AnswerLost", lost)

    def list_experiments(
        self,
        *,
        ended: bool = False,
        project: str | None = None,
        limit: int | None = None,
        before: int | None = None,
        companions: bool = True,
        annotations: Mapping[str, object] = _NO_CONDITIONS,
    ) -> list[wire.ExperimentView]:
        """Return running experiments, with `ended` all of them; the newest is the last.

        With `limit` only so many, the newest; with `before`, only those with a smaller number; with `annotations`,
        only those about which this was said: parameters of the route (`tag`, `name`, `starred`, `archived`). They may
        also say whose: `user`, or `all_users`, user by user.
        """
        query: dict[str, object] = {"all": "true" if ended else None, "project": project, "limit": limit}
        query |= {"before": before, **({} if companions else {"companions": "false"}), **annotations}
        answer = self._get("/experiments", wire.ExperimentList, params=_drop_missing(query))
        return answer["experiments"]

    def get_experiment(self, identity: str) -> wire.ExperimentView:
        """Return one experiment or set."""
        experiment = self._get(_format_path("experiments", identity), wire.ExperimentView)
        return name_experiment(experiment, find_user(identity))

    def change_annotation(self, identity: str, change: wire.AnnotationChange) -> wire.AnnotationView:
        """Change what is said about an experiment or a set, and return all that is said now."""
        return self._post(_format_path("experiments", identity, "annotation"), wire.AnnotationView, json=change)

    def find_id(self, word: str) -> str:
        """Return the ID that a name or a tag stands for."""
        return self._get("/names/find", wire.FoundName, params={"word": word})["id"]

    def kill_experiment(self, identity: str) -> wire.ExperimentView:
        """Kill an experiment. The answer comes before its jobs have ended."""
        experiment = self._post(_format_path("experiments", identity, "kill"), wire.ExperimentView)
        return name_experiment(experiment, find_user(identity))

    def add_trials(self, identity: str, request: wire.TrialRequest) -> wire.ExperimentView:
        """Add trials to a set whose points a search chooses, and return the set. It is not repeated."""
        experiment = self._post(_format_path("experiments", identity, "trials"), wire.ExperimentView, json=request)
        return name_experiment(experiment, find_user(identity))

    def change_set(self, identity: str, change: wire.SetChangeRequest) -> wire.ExperimentView:
        """Pause, resume or stop a set, or change how many of its experiments run at the same time; return the set."""
        experiment = self._post(_format_path("experiments", identity, "search"), wire.ExperimentView, json=change)
        return name_experiment(experiment, find_user(identity))

    def list_quotas(self, user: str | None = None, project: str | None = None) -> wire.QuotaList:
        """Return quotas: of a user, of a team project, or all that the caller sees."""
        return self._get("/quotas", wire.QuotaList, params=_drop_missing({"user": user, "project": project}))

    def change_quota(self, kind: wire.AccountKindName, name: str, change: wire.QuotaChange) -> wire.QuotaView:
        """Change the quota of a user or a team project, and return it."""
        return self._post(_format_path("quotas", kind, name), wire.QuotaView, json=change)

    def get_usage(self, by: wire.AccountKindName, since: str | None) -> wire.UsageList:
        """Return what was used since a moment (RFC 3339), by user or by project."""
        return self._get("/usage", wire.UsageList, params=_drop_missing({"by": by, "since": since}))

    def compare_experiments(self, identities: Sequence[str]) -> wire.ComparisonView:
        """Return what differs between experiments."""
        return self._get("/comparison", wire.ComparisonView, params={"of": list(identities)})

    def get_results(self, query: Mapping[str, object]) -> wire.ResultList:
        """Return the results of experiments. `query` has the parameters of the route."""
        return self._get("/results", wire.ResultList, params=query)

    def get_groups(self, query: Mapping[str, object]) -> wire.GroupList:
        """Return experiments grouped by their parameters without the seed. `query` has the parameters of the route."""
        return self._get("/results/groups", wire.GroupList, params=query)

    def get_group_curves(self, query: Mapping[str, object]) -> wire.GroupCurveList:
        """Return the mean curves of groups of experiments. `query` has the parameters of the route."""
        return self._get("/results/curves", wire.GroupCurveList, params=query)

    def get_samples(self, identity: str | None) -> wire.Samples:
        """Return what the jobs of an experiment use now; None: every job that has a place."""
        path = "/samples" if identity is None else _format_path("experiments", identity, "samples")
        return self._get(path, wire.Samples)

    def get_sample_history(self, identity: str, span: Mapping[str, object]) -> wire.SampleHistory:
        """Return what jobs have used. `span` has the parameters of the route, one of them at least."""
        return self._get(_format_path("experiments", identity, "samples"), wire.SampleHistory, params=span)

    def get_metrics(self, identity: str) -> wire.MetricsList:
        """Return what the jobs of an experiment, or of each experiment of a set, have reported."""
        return self._get(_format_path("experiments", identity, "metrics"), wire.MetricsList)

    def get_metric_history(self, identity: str, metric: str) -> wire.MetricHistoryView:
        """Return the history of one metric of an experiment."""
        path = _format_path("experiments", identity, "metrics", "history")
        return self._get(path, wire.MetricHistoryView, params={"metric": metric})

    def get_tf_configs(self, identity: str) -> wire.TfConfigs:
        """Return the TF_CONFIG of each job of an experiment."""
        return self._get(_format_path("experiments", identity, "tfconfig"), wire.TfConfigs)

    def get_job_environments(self, identity: str) -> wire.JobEnvironments:
        """Return the variables of each job of an experiment, without secrets."""
        return self._get(_format_path("experiments", identity, "environment"), wire.JobEnvironments)

    def get_capsule(self, identity: str) -> wire.CapsuleView:
        """Return what is needed to run an experiment again; of a set, its first one's."""
        return self._get(_format_path("experiments", identity, "capsule"), wire.CapsuleView)

    def check_rerun(self, needs: wire.RerunNeeds) -> list[wire.MissingPart]:
        """Return the parts of a run that the server cannot get. Takes some seconds when the server asks a registry."""
        return self._post("/reruns/check", wire.MissingParts, timeout=_SLOW_ANSWER, json=needs)["missing"]

    def list_media(self, identity: str) -> wire.MediaView:
        """Return the pictures, sound, videos, texts and tables that an experiment has written."""
        return self._get(_format_path("experiments", identity, "media"), wire.MediaView)

    def get_saved(self, identity: str) -> wire.SavedView:
        """Return what of an experiment's output is in its store."""
        return self._get(_format_path("experiments", identity, "saved"), wire.SavedView)

    def save_output(self, identity: str, keys: wire.StoreKeys | None = None) -> None:
        """Let the server copy an experiment's output into its store now; it continues after the answer.

        Args:
            identity: of the experiment.
            keys: of the user, for this copy alone; None: those of the server, or that the experiment passed on.
        """
        request: wire.SaveRequest = {} if keys is None else {"keys": keys}
        self._send("POST", _format_path("experiments", identity, "save"), json=request)

    def open_accounts(self) -> AccountClient:
        """Return what asks for users, keys and team projects, over the connections of this client."""
        from riseml.client.account_client import AccountClient

        return AccountClient(self._exchange)

    def open_reports(self) -> ReportClient:
        """Return what asks for reports, over the connections of this client."""
        from riseml.client.report_client import ReportClient

        return ReportClient(self._exchange)

    def open_files(self, place: StoragePlace) -> FileClient:
        """Return what lists, reads and writes the files of a storage, over the connections of this client."""
        from riseml.client.file_client import FileClient

        return FileClient(self._exchange, place, self._retry)

    def fetch_snapshot(self, digest: str, target: IO[bytes], most: int) -> None:
        """Write the tar of a project's files, as the server has them, into a file of at most `most` bytes."""
        self._exchange.save_content(_format_path("snapshots", digest), target, most, timeout=_SLOW_ANSWER)

    def explain_experiment(self, identity: str) -> wire.ExplanationView:
        """Return why an experiment waits, or why its jobs run where they run."""
        explanation = self._get(_format_path("experiments", identity, "explain"), wire.ExplanationView)
        return name_explanation(explanation, find_user(identity))

    def diagnose_experiment(self, identity: str) -> wire.DiagnosisView:
        """Return why an experiment makes no progress. Takes some seconds."""
        path = _format_path("experiments", identity, "diagnosis")
        return self._post(path, wire.DiagnosisView, timeout=_SLOW_ANSWER)

    def get_diagnosis(self, identity: str) -> wire.DiagnosisView:
        """Return the last diagnosis of an experiment."""
        return self._get(_format_path("experiments", identity, "diagnosis"), wire.DiagnosisView)

    def read_stacks(self, identity: str, request: wire.StacksRequest) -> wire.StacksView:
        """Return what the processes of an experiment's running jobs do, or of one job. Takes some seconds."""
        path = _format_path("experiments", identity, "stacks")
        return self._post(path, wire.StacksView, timeout=_SLOW_ANSWER, json=request)

    def profile_job(self, identity: str, request: wire.ProfileOptions) -> wire.ProfileView:
        """Return where a running job is for some seconds. Takes so long."""
        path = _format_path("experiments", identity, "profile")
        return self._post(path, wire.ProfileView, timeout=_SLOW_ANSWER + request.get("seconds", 30), json=request)

    def get_system(self) -> wire.SystemView:
        """Return the server and its hosts."""
        return self._get("/system", wire.SystemView)

    def get_gpus(self, identity: str | None = None) -> wire.GpuList:
        """Return the GPUs of all hosts, or those of an experiment's jobs. Takes some seconds on hosts elsewhere."""
        query = {} if identity is None else {"of": identity}
        return self._get("/gpus", wire.GpuList, params=query, timeout=_SLOW_ANSWER)

    def get_pool(self) -> wire.PoolView:
        """Return the pool and its hosts."""
        return self._get("/pool", wire.PoolView)

    def check_pool(self) -> list[wire.PoolFinding]:
        """Check whether the hosts do what the pool needs. Takes some seconds."""
        return self._post("/pool/check", wire.PoolFindings, timeout=_SLOW_ANSWER)["findings"]

    def join_pool(self) -> list[wire.PoolMember]:
        """Make one Docker swarm of the hosts. Takes some seconds."""
        return self._post("/pool/join", wire.PoolMembers, timeout=_SLOW_ANSWER)["members"]

    def recover_pool(self, host: str, *, dry_run: bool) -> wire.PoolRecovery:
        """Give the swarm of the pool a new majority of managers; with `dry_run` only return what that costs.

        Args:
            host: the host that manages the swarm at first; empty: the server chooses.
            dry_run: change nothing.
        """
        query = {"host": host, "dry_run": str(dry_run).lower()}
        return self._post("/pool/recover", wire.PoolRecovery, params=query, timeout=_SLOW_ANSWER)

    def add_host(self, host: wire.NewHost) -> wire.AddedHost:
        """Check a host and add it to the pool. Takes some seconds; a host that does not answer takes longer."""
        return self._post("/pool/hosts", wire.AddedHost, timeout=_SLOW_ANSWER, json=host)

    def remove_host(self, name: str, *, force: bool, dry_run: bool) -> wire.RemovedHost:
        """Take a host out of the pool; with `dry_run` only return what would happen."""
        query = {"force": str(force).lower(), "dry_run": str(dry_run).lower()}
        path = _format_path("pool", "hosts", name, "remove")
        return self._post(path, wire.RemovedHost, params=query, timeout=_SLOW_ANSWER)

    def get_host_keys(self, name: str) -> wire.HostKeys:
        """Return the keys that the host shows to ssh now. Takes some seconds."""
        path = _format_path("pool", "hosts", name, "keys")
        return self._get(path, wire.HostKeys, timeout=_SLOW_ANSWER)

    def pin_host(self, name: str, fingerprints: Sequence[str]) -> wire.HostKeys:
        """Pin the keys of a host that have these fingerprints."""
        path = _format_path("pool", "hosts", name, "keys")
        query = {"fingerprint": list(fingerprints)}
        return self._post(path, wire.HostKeys, params=query, timeout=_SLOW_ANSWER)

    def drain_host(self, name: str) -> wire.HostView:
        """Let a host take no new jobs."""
        return self._post(_format_path("pool", "hosts", name, "drain"), wire.HostView)

    def resume_host(self, name: str) -> wire.HostView:
        """Let a drained host take new jobs again."""
        return self._post(_format_path("pool", "hosts", name, "resume"), wire.HostView)

    def open_web_page(self, port: int | None) -> wire.WebView:
        """Let the server listen for browsers, and return the address for one of them."""
        return self._post("/web", wire.WebView, json={} if port is None else {"port": port})

    def list_web_sessions(self) -> wire.WebSessions:
        """Return the sessions of the web page."""
        return self._get("/web/sessions", wire.WebSessions)

    def end_web_session(self, name: str) -> wire.WebSessions:
        """End one session of the web page; return the others."""
        return self._post(f"/web/sessions/{quote(name, safe='')}/end", wire.WebSessions)

    def close_web_page(self) -> wire.WebView:
        """Close the web page, and end its sessions."""
        return self._post("/web/close", wire.WebView)

    def list_leftovers(self, query: Mapping[str, str]) -> wire.LeftoversView:
        """Return what no experiment owns. `query` has the parameters of the route."""
        return self._get("/leftovers", wire.LeftoversView, timeout=_SLOW_ANSWER, params=query)

    def remove_leftovers(self, query: Mapping[str, str]) -> wire.LeftoversView:
        """Remove what no experiment owns, and return it. `query` has the parameters of the route."""
        return self._post("/leftovers/remove", wire.LeftoversView, timeout=_SLOW_ANSWER, params=query)

    def list_outputs(self, query: Mapping[str, str]) -> wire.OutputPage:
        """Return outputs that a clean-up may remove. `query` has the parameters of the route."""
        return self._get("/outputs", wire.OutputPage, timeout=_SLOW_ANSWER, params=query)

    def remove_output(self, identity: str) -> wire.OutputView:
        """Remove what is in the output of an experiment, or a part of it."""
        path = _format_path("experiments", identity, "output", "remove")
        return self._post(path, wire.OutputView, timeout=_SLOW_ANSWER)

    def list_kept(self) -> wire.KeptView:
        """Return the experiments whose outputs are kept."""
        return self._get("/kept", wire.KeptView)

    def keep_output(self, identity: str, *, keep: bool) -> wire.KeptView:
        """Keep an output, or keep it no longer."""
        path = _format_path("experiments", identity, "keep")
        return self._post(path, wire.KeptView, params={"keep": str(keep).lower()})

    def stream_log(
        self, identity: str, query: LogQuery | None = None, on_cut: OnCut | None = None
    ) -> Iterator[wire.Entry]:
        """Yield the entries of a log, without heartbeats unless the query asks for them.

        When following, the last entry is `end`; it comes when no job of the experiment runs. When the connection
        breaks, the client continues after the last entry: no entry is lost or repeated. It calls `on_cut` before each
        try with the number of failed tries; `on_cut` may start the server again.

        Raises:
            Unreachable: the server did not answer for too long. The experiment goes on.
        """
        query = query or LogQuery()
        user = find_user(identity)
        cursor = query.cursor
        timer = RetryTimer(self._retry)
        while True:
            cut: Unreachable | None = None
            waiting: list[wire.Entry] = []
            try:
                for entry in self._request_log(identity, query, cursor):
                    timer.reset()
                    waiting += [name_entry(entry, user)] if query.beats or entry["type"] != "ping" else []
                    if entry["cursor"] == cursor and entry["type"] not in ("ping", "end"):
                        continue  # the next cursor names this entry, too: both come again when the connection breaks
                    cursor = entry["cursor"] or cursor
                    yield from waiting
                    waiting = []
                    if entry["type"] == "end":
                        return
                if not query.follow:
                    yield from waiting
                    return
            except Unreachable as error:
                cut = error
            self.close()
            timer.wait(cut, on_cut)

    def ask_until_answered(self, ask: Callable[[], Answer], on_cut: OnCut | None = None) -> Answer:
        """Return what `ask` returns, and call it again while the server does not answer; `on_cut` as in `stream_log`.

        Raises:
            Unreachable: the server did not answer for too long.

        Example:
            client.ask_until_answered(lambda: client.get_experiment("4"))
        """
        timer = RetryTimer(self._retry)
        while True:
            try:
                return ask()
            except Unreachable as error:
                self.close()
                timer.wait(error, on_cut)

    def _send(self, method: str, path: str, **request: Any) -> None:
        """Send a request whose successful answer tells nothing."""
        self._exchange.send(method, path, timeout=_SLOW_ANSWER, **request)

    def _get(self, path: str, shape: type[Answer], **request: Any) -> Answer:
        return self._exchange.request_answer("GET", path, shape, **request)

    def _post(self, path: str, shape: type[Answer], **request: Any) -> Answer:
        return self._exchange.request_answer("POST", path, shape, **request)

    def _request_log(self, identity: str, query: LogQuery, cursor: str) -> Iterator[wire.Entry]:
        """Yield the entries that come over one connection."""
        parameters = {
            "follow": str(query.follow).lower(),
            "cursor": cursor or None,
            "tail": None if cursor else query.tail,
            "since": query.since,
            "batch": "true" if query.batch else None,
            "reports": "true" if query.reports else None,
            "closed": "false",
            "heartbeat": HEARTBEAT if query.follow else None,
        }
        path = _format_path("experiments", identity, "logs")
        present = _drop_missing(parameters)
        with self._exchange.open_response("GET", path, timeout=LOG_SILENCE, params=present) as response:
            self._exchange.raise_refusal(response)
            yield from self._exchange.read_entries(response)


def _drop_missing(values: Mapping[str, object]) -> dict[str, str | list[str]]:
    return {
        name: list(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in values.items()
        if value is not None
    }


def _choose_project(project: str | None) -> dict[str, str]:
    return {} if project is None else {"project": project}
