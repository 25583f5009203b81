"""The tables. Times are UTC; JSON columns hold frozen dataclasses as `codec` writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC. SQLite does not store the zone, so that reading adds it."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


metadata = MetaData()


def _make_moment_column(name: str, **options: Any) -> Column[datetime]:
    return Column(name, UtcDateTime(), **options)


facts = Table(
    "facts",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)
"""Single facts about this store: the id of its server, and the server that holds the claim."""

sets = Table(
    "sets",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user", String(64), nullable=False),
    Column("number", Integer, nullable=False),  # number of the set; its experiments have it too
    Column("project", String(128), nullable=False),
    Column("concurrency", Integer, nullable=False),  # experiments that run at the same time
    Column("paused", Boolean, nullable=False, server_default=false()),  # no further experiment of it starts
    _make_moment_column("created_at", nullable=False),
    # The columns below have values only for a set with a search.
    Column("search", JSON(none_as_null=True)),  # `model.SearchPlan`; NULL: every combination of the parameters
    Column("templates", JSON(none_as_null=True)),  # `insertion.Template`s: what each trial runs
    Column("environment", JSON(none_as_null=True)),  # sealed variables of the caller, erased when the search ends
    Column("variables", JSON(none_as_null=True)),  # `spec.config.types.EnvVariable`s, without values of the caller
    Column("most_trials", Integer, nullable=False, server_default="0"),  # trials in all
    Column("wanted", String(16), nullable=False, server_default="RUN"),  # `base.states.Wanted`
    Column("search_end", String(32)),  # `model.SearchEnd`; NULL: further trials may follow
    UniqueConstraint("user", "number"),
)

experiments = Table(
    "experiments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user", String(64), nullable=False),  # name of the owner
    Column("uid", Integer, nullable=False),
    Column("gid", Integer, nullable=False),
    Column("number", Integer, nullable=False),  # counts per user from 1
    Column("sub", Integer),  # number within the set, from 1; NULL without a set
    Column("set_id", Integer, ForeignKey("sets.id")),
    Column("project", String(128), nullable=False),
    Column("config", Text, nullable=False),  # text of the riseml.yml
    Column("plan", JSON, nullable=False),  # `model.Plan`
    Column("snapshot", String(64), nullable=False),  # digest of the project archive, or empty
    Column("resolved", Text, nullable=False, server_default=""),  # `Experiment.resolved` as JSON, or empty
    Column("environment", JSON, nullable=False),  # sealed variables of the caller; they may be secrets
    Column("notes", JSON, nullable=False),  # warnings about the riseml.yml
    Column("key", String(64)),  # from the client; a submission with it is stored once
    Column("wanted", String(16), nullable=False),  # `base.states.Wanted`
    Column("state", String(16), nullable=False),  # `base.states.State`
    Column("reason", String(32), nullable=False),  # `base.states.Reason`
    Column("message", Text, nullable=False),
    Column("verdict", JSON),  # `model.Verdict`
    Column("network", String(16), nullable=False, server_default="bridge"),  # `base.states.Network`
    # `Experiment.network_host`: the host whose engine creates the network. The column keeps the name of earlier
    # releases, because another name would need a migration of every existing store and change nothing for users.
    Column("fabric", String(64)),
    Column("subnet", String(64)),  # subnet of the network, for example 10.201.0.0/28
    Column("closed", Boolean, nullable=False),  # ended, and nothing of it is left on any host
    Column("version", Integer, nullable=False),  # grows with every write; for optimistic locking
    _make_moment_column("created_at", nullable=False),
    _make_moment_column("placed_at"),
    _make_moment_column("started_at"),
    _make_moment_column("ended_at"),
    Column("waited", Float, nullable=False, server_default="0"),  # seconds between attempts
    _make_moment_column("waits_since"),
    Column("team_project", String(32)),  # whose members see it; NULL: it belongs to its user alone
    UniqueConstraint("user", "number", "sub"),
    Index("experiments_open", "closed", "user"),
    Index("experiments_project", "user", "project", "number"),
    Index("experiments_team_project", "team_project", "user", "number"),
    Index("experiments_key", "user", "key"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("position", Integer, nullable=False),  # in the order of the plan
    Column("record", JSON, nullable=False),  # `model.Job`
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    Column("job", String(64)),  # NULL: the experiment itself
    Column("attempt", Integer, nullable=False),
    _make_moment_column("at", nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("message", Text, nullable=False),
    Column("exit_code", Integer),
    Index("events_experiment", "experiment_id", "id"),
    sqlite_autoincrement=True,
)

metric_tallies = Table(
    "metric_tallies",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), primary_key=True),
    Column("counted", BigInteger, nullable=False),  # bytes of the log that are counted
    # bytes before `counted` at which the oldest line begins that is open there; 0: none is open
    Column("open_bytes", BigInteger, nullable=False, server_default="0"),
    Column("complete", Boolean, nullable=False),  # the experiment is closed, and its whole log is counted
    Column("dropped", BigInteger, nullable=False),  # values that were not kept, because there were too many names
    Column("summaries", Text, nullable=False),  # JSON of the metrics and of the slow patterns, read at once
    # JSON of the last value of each metric, by name; null is nan or infinite. It repeats what is in `summaries`,
    # where the database needs 60 ms instead of 20 to find the values of 10,000 experiments.
    Column("last_values", Text, nullable=False, server_default="{}"),
)

metric_histories = Table(
    "metric_histories",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), primary_key=True),
    Column("metric", String(64), primary_key=True),
    Column("buckets", Text, nullable=False),  # JSON of `MetricHistory.to_rows`
)

trials = Table(
    "trials",
    metadata,
    Column("set_id", Integer, ForeignKey("sets.id"), primary_key=True),
    Column("number", Integer, primary_key=True),  # number of the experiment within its set
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    Column("point", JSON, nullable=False),  # `model.Point`
    Column("asked_after", Integer, nullable=False),  # trials whose results the search had when this one was made
    Column("reached", JSON(none_as_null=True)),  # steps and values (texts: JSON has no NaN) at which it was compared
    Column("stopped", Boolean, nullable=False, server_default=false()),  # the search has stopped it early
    Column("outcome", String(16)),  # `model.TrialOutcome`; NULL: the search has no result yet
    Column("told", Integer),  # its position in the order in which the search got results
    Column("value", Float(53)),  # value of the metric
    Column("scores", JSON(none_as_null=True)),  # of several objectives, `value` first; NULL: `value` is all
    Column("excess", Float(53), nullable=False, server_default="0"),  # by how much its metrics fail the constraints
    Column("message", Text, nullable=False, server_default=""),  # why it counts as failed
)
"""The points that searches try. The key makes sure that no trial is made twice."""

milestones = Table(
    "milestones",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    Column("condition", String(200), nullable=False),  # `spec.config.types.MetricCondition` as text
    Column("value", Float(53), nullable=False),  # that was reported
    Column("step", BigInteger),
    _make_moment_column("at", nullable=False),
    UniqueConstraint("experiment_id", "condition"),
    sqlite_autoincrement=True,
)
"""Metrics that have reached a value of `train.notify`, each once."""

remarks = Table(
    "remarks",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    Column("kind", String(32), nullable=False),  # `analysis.remarks.RemarkKind`
    Column("job", String(128)),  # None: it is about the whole experiment
    Column("text", Text, nullable=False),
    _make_moment_column("at", nullable=False),
    UniqueConstraint("experiment_id", "kind"),
    sqlite_autoincrement=True,
)
"""What was remarked about experiments for webhooks, each kind once."""

drained_hosts = Table(
    "drained_hosts",
    metadata,
    Column("name", String(64), primary_key=True),
    _make_moment_column("at", nullable=False),
)
"""Hosts of the pool that get no new jobs."""

kept_outputs = Table(
    "kept_outputs",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), primary_key=True),
    _make_moment_column("at", nullable=False),
)
"""Experiments whose outputs nothing removes."""

experiment_annotations = Table(
    "experiment_annotations",
    metadata,
    Column("user", String(64), primary_key=True),
    Column("number", Integer, primary_key=True),  # of the experiment or set
    Column("sub", Integer, primary_key=True),  # of a member of a set; 0: the experiment, or the set as a whole
    Column("name", String(64), nullable=False, server_default=""),
    Column("note", Text, nullable=False, server_default=""),
    Column("starred", Boolean, nullable=False, server_default=false()),
    Column("archived", Boolean, nullable=False, server_default=false()),
    Index("experiment_annotations_name", "user", "name"),
)
"""What users say about experiments. The loop neither reads nor writes it: a change never meets a decision."""

experiment_tags = Table(
    "experiment_tags",
    metadata,
    Column("user", String(64), primary_key=True),
    Column("number", Integer, primary_key=True),  # as in `experiment_annotations`, and `sub`, too
    Column("sub", Integer, primary_key=True),
    Column("tag", String(64), primary_key=True),
    Column("position", Integer, nullable=False),  # in the order in which they were added
    Index("experiment_tags_tag", "user", "tag"),
)
"""The tags of experiments and sets."""

table_views = Table(
    "table_views",
    metadata,
    Column("user", String(64), primary_key=True),  # who has saved it
    Column("project", String(128), primary_key=True),  # empty: the table of all experiments
    Column("name", String(64), primary_key=True),
    Column("query", Text, nullable=False),  # what the address of the page says
    Column("is_default", Boolean, nullable=False, server_default=false()),
    Column("team_project", String(128)),  # whose members see it; NULL: nobody but its user
)
"""Views of the table of experiments that users have saved."""

reports = Table(
    "reports",
    metadata,
    Column("user", String(64), primary_key=True),  # who has made it
    Column("name", String(64), primary_key=True),
    Column("project", String(128), nullable=False, server_default=""),
    Column("team_project", String(128)),  # whose members see it; NULL: nobody but its user
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),  # Markdown
    Column("version", Integer, nullable=False),
    _make_moment_column("changed_at", nullable=False),
)
"""Reports that users have written."""

written_files = Table(
    "written_files",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), primary_key=True),
    Column("job", String(64), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("record", JSON, nullable=False),  # `store.written_files.WrittenRecord`
)
"""What jobs wrote outside of OUTPUT_DIR. Attempts that wrote nothing there have no row."""

users = Table(
    "users",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("role", String(16), nullable=False),  # `base.roles.Role`: VIEWER, MEMBER or ADMIN
    Column("uid", BigInteger),  # of their jobs and outputs; NULL: server.yml says it, or nobody does
    Column("gid", BigInteger),
    Column("disabled", Boolean, nullable=False, server_default=false()),
    Column("email", String(254), nullable=False, server_default=""),
    _make_moment_column("created_at", nullable=False),
)
"""The users of a team's server. A row is never removed: a name that experiments have is not given away again."""

team_projects = Table(
    "team_projects",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("open", Boolean, nullable=False, server_default=false()),  # every user sees its experiments
    _make_moment_column("created_at", nullable=False),
)
"""The projects that several users share."""

project_members = Table(
    "project_members",
    metadata,
    Column("project", String(32), ForeignKey("team_projects.name"), primary_key=True),
    Column("user", String(32), ForeignKey("users.name"), primary_key=True),
    Column("role", String(16), nullable=False),  # `base.roles.Role`: VIEWER, MEMBER or MAINTAINER
    Index("project_members_user", "user"),
)
"""Who may do what in which team project."""

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),  # as people write it; it lets no one in
    Column("user", String(32), ForeignKey("users.name"), nullable=False),
    Column("digest", String(64), nullable=False),  # `store.key_digests.KeyDigests`: nobody can compute the key from it
    Column("tail", String(8), nullable=False),  # the last characters of the key
    Column("name", String(64), nullable=False, server_default=""),  # what it is for, in the words of its user
    Column("scope", String(16), nullable=False),  # `base.roles.Scope`
    Column("project", String(32)),  # the team project to which it is bound; NULL: to none
    _make_moment_column("created_at", nullable=False),
    _make_moment_column("expires_at", nullable=False),
    _make_moment_column("used_at"),  # written at most once a minute
    _make_moment_column("revoked_at"),
    UniqueConstraint("digest"),
    Index("api_keys_user", "user"),
)
"""The API keys. Expired and revoked ones stay, so that their last use can be read."""

placements = Table(
    "placements",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), primary_key=True),
    _make_moment_column("placed_at", primary_key=True),
    _make_moment_column("waited_since", nullable=False),  # when it was submitted, or its last attempt ended
    _make_moment_column("ended_at"),  # NULL: it has the place now
    Column("gpus", Integer, nullable=False),
    Column("cpus", Float, nullable=False),  # cores
    Column("mem", Integer, nullable=False),  # MiB
    Index("placements_ended", "ended_at"),
)
"""When experiments had places, and what they held: written with the decisions that give and end places."""

quotas = Table(
    "quotas",
    metadata,
    Column("kind", String(16), primary_key=True),  # `control.quotas.AccountKind`
    Column("name", String(64), primary_key=True),  # of the user or the team project
    Column("record", JSON, nullable=False),  # `control.quotas.OwnQuota`
)
"""Quotas that an administrator has set; server.yml has those of all others."""

sessions = Table(
    "sessions",
    metadata,
    Column("id", String(32), primary_key=True),  # lets no one in
    Column("user", String(64), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),  # keyed hash of the secret
    Column("kind", String(16), nullable=False),  # value of `store.sessions.SessionKind`
    _make_moment_column("created_at", nullable=False),
    _make_moment_column("used_at", nullable=False),  # exact to a minute
    _make_moment_column("expires_at", nullable=False),
    Column("user_agent", String(200), nullable=False),
    Column("address", String(64), nullable=False),  # from which it was opened
    Column("key", String(64), nullable=False, server_default=""),  # id of the key that opened it; empty: the provider
    Column("refresh", Text),  # the provider's refresh token, sealed with the secret; NULL: none
    _make_moment_column("checked_at"),  # when the provider last said what the user may do; NULL: a key opened it
    Index("sessions_user", "user"),
)
"""Sessions of browsers and of commands at a team's server. A session that was ended has no row."""

provider_subjects = Table(
    "provider_subjects",
    metadata,
    Column("issuer", String(255), primary_key=True),
    Column("subject", String(255), primary_key=True),
    Column("user", String(64), nullable=False, unique=True),
)
"""Which person of the provider a user is, since their first login."""

secrets = Table(
    "secrets",
    metadata,
    Column("owner_kind", String(16), primary_key=True),  # `store.secret_store.OwnerKind`
    Column("owner", String(128), primary_key=True),  # name of the user or project
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),  # sealed
    _make_moment_column("set_at", nullable=False),
    Column("set_by", String(64), nullable=False),  # user
    _make_moment_column("used_at"),
)
"""Values that users give to the server and that jobs read."""

registries = Table(
    "registries",
    metadata,
    Column("owner_kind", String(16), primary_key=True),  # as in `secrets`, and `owner`, too
    Column("owner", String(128), primary_key=True),
    Column("host", String(255), primary_key=True),  # with its port
    Column("login", String(255), nullable=False),  # name of the user at the registry
    Column("value", Text, nullable=False),  # the password, sealed
    _make_moment_column("set_at", nullable=False),
    Column("set_by", String(64), nullable=False),  # user
    _make_moment_column("used_at"),
)
"""The credentials with which images are pulled."""

run_secrets = Table(
    "run_secrets",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    Column("name", String(64), nullable=False),  # of the secret
    Column("value", Text, nullable=False),  # sealed
    Index("run_secrets_experiment", "experiment_id"),
    sqlite_autoincrement=True,
)
"""The values of secrets that the jobs of open runs were given: they are masked in their logs."""
