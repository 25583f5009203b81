"""What jobs have used, as the API gives it, and warnings about jobs that slow others down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import httpx
import pytest

from riseml.analysis.stragglers import StragglerKind
from riseml.base.names import JobName
from riseml.base.settings import Settings
from riseml.base.states import State
from riseml.model import JobKey, Sample
from riseml.server.api.routes import sample_routes
from riseml.server.api.routes.sample_routes import SeenTrends
from riseml.server.app import Application, make_application
from riseml.store.samples.sample_rows import Span
from tests.support.callers import ME
from tests.support.waiting import DEADLINE
from tests.support.without_tls import NO_AUTHORITIES
from tests.unit.analysis.live_samples import make_sample
from tests.unit.server.api.conftest import ARCHIVE, DIGEST, NOW, SUBMISSION, serve

SAMPLES = "/v1/experiments/1/samples"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Application]]:
    """A server with two experiments that wait."""
    home = tmp_path_factory.mktemp("samples")
    settings = Settings(home, home / "output", home / "data", executor="process")
    made = make_application(settings, threading.Event())
    made.services.hosts.pool.observe_hosts(frozenset(), NOW)
    with serve(made.api) as url, httpx.Client(base_url=url, timeout=DEADLINE, verify=NO_AUTHORITIES) as client:
        assert client.put(f"/v1/snapshots/{DIGEST}", content=ARCHIVE).status_code == 201
        for _ in range(2):
            assert client.post("/v1/experiments", json=SUBMISSION).status_code == 201
        yield client, made
    made.database.close()


@pytest.fixture
def client(served: tuple[httpx.Client, Application]) -> httpx.Client:
    return served[0]


@pytest.fixture(scope="module")
def created(served: tuple[httpx.Client, Application]) -> datetime:
    """Keep six samples of experiment 1, ten seconds apart, and return when it was submitted."""
    services = served[1].services
    experiment = services.stores.experiments.find_by_number(ME.owner.user, 1)[0].experiment
    for at in range(6):
        found = Sample(experiment.created_at + timedelta(seconds=10 * at), 10.0 * at, 2**20, 2**30)
        services.watchers.samples.store.add_sample(JobKey(experiment.id, JobName("train"), 1), found)
    return experiment.created_at


def test_a_span_is_read_with_a_step(client: httpx.Client, created: datetime) -> None:
    until = (created + timedelta(seconds=120)).isoformat()
    found = client.get(SAMPLES, params={"until": until, "step": 1}).json()
    (job,) = found["jobs"]
    assert (job["id"], job["cpu"], found["step"]) == ("1.train", [0.0, 10.0, 20.0, 30.0, 40.0, 50.0], 1)
    assert job["gpu"] == [None] * 6
    assert job["time"][1] - job["time"][0] == 10
    whole = client.get(SAMPLES, params={"until": until, "step": 86400}).json()["jobs"][0]
    assert sum(whole["cpu"]) / len(whole["cpu"]) == pytest.approx(25.0, abs=20)
    late = (created + timedelta(seconds=30)).isoformat()
    assert client.get(SAMPLES, params={"since": late, "until": until, "step": 1}).json()["jobs"][0]["cpu"][0] == 30.0
    assert client.get("/v1/experiments/2/samples", params={"step": 60}).json()["jobs"] == []


def test_the_server_chooses_a_step_and_moments_without_a_zone_are_utc(client: httpx.Client, created: datetime) -> None:
    naive = created.astimezone(UTC).replace(tzinfo=None)
    found = client.get(SAMPLES, params={"until": (naive + timedelta(hours=2)).isoformat()}).json()
    assert found["step"] == 30
    assert datetime.fromisoformat(found["since"]) == created.replace(microsecond=0)


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({"since": "2026-08-31T07:00:00Z", "until": "1999-01-01T00:00:00Z"}, 400, "until is before since"),
        ({"until": "2100-01-01T00:00:00Z", "step": 1}, 400, "an answer has at most 200,000"),
        ({"step": 0}, 422, "step"),
        ({"since": "yesterday"}, 422, "since"),
        ({"since": "0001-01-01T00:00:00+23:59"}, 200, ""),
    ],
)
def test_odd_spans_are_refused_or_read(
    client: httpx.Client, params: dict[str, str | int], code: int, words: str
) -> None:
    answer = client.get(SAMPLES, params=params)
    assert answer.status_code == code, answer.text
    assert words in answer.text


def test_many_jobs_get_fewer_points() -> None:
    span = Span(0, 86400)
    assert sample_routes._choose_step(span, 1) == 300
    assert sample_routes._choose_step(span, 10_000) == 7200
    assert sample_routes._choose_step(Span(0, 2**32 - 1), 10**9) == 366 * 86400


def test_several_looks_tell_which_job_is_behind() -> None:
    ticks: Iterator[int] = count(0, 10)
    seen = SeenTrends(lambda: float(next(ticks)))
    found = []
    for at in range(4):
        counted = {"4.master": 100 * at, "4.worker.1": 90 * at, "4.worker.2": 20 * at}
        samples = [make_sample(name, state=State.RUNNING.value, lines=lines) for name, lines in counted.items()]
        found.append([one.job for one in seen.find_warnings(4, samples)])
    assert found == [[], [], ["4.worker.2"], ["4.worker.2"]], "two looks of ten seconds are too few"
    assert seen.find_warnings(5, samples) == [], "another experiment has its own trends"


def test_looks_at_the_interval_of_a_page_report_a_full_link() -> None:
    """The page looks every 15 seconds, and the server keeps a sample every ten."""
    ticks: Iterator[int] = count(0, 15)
    seen = SeenTrends(lambda: float(next(ticks)))
    found = []
    for rate in (118e6, 118e6, 120e6, 60e6, 118e6):
        ps = make_sample("4.ps.1", host="gpu1", net_out=rate)
        found.append(
            [one.kind for one in seen.find_warnings(4, [ps, make_sample("4.master", host="gpu2", net_out=0.0)])]
        )
    assert found == [[], [], [StragglerKind.FULL_LINK], [], []]


def test_looks_at_few_experiments_are_remembered() -> None:
    seen = SeenTrends(lambda: 0.0)
    for experiment in range(100):
        seen.find_warnings(experiment, [])
    assert len(seen._trends) == 32
