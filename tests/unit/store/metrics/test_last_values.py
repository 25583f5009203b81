"""The last values of a metric over many experiments."""

from __future__ import annotations

import math

import sqlalchemy as sa

from riseml.base.roles import Role, Scope
from riseml.model import Caller
from riseml.planning.plan import first_jobs
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.metrics.last_values import LastValues
from riseml.store.metrics.metric_rows import MetricRows
from tests.support.stores import count_given_lines_again
from tests.unit.control.simulation import make_plan
from tests.unit.store.metrics.tally_rows import ODD_NAME, count
from tests.unit.store.submissions import ANN, NOW


def test_last_values_are_found_in_what_an_earlier_version_stored(
    experiments: ExperimentStore, database: Database, store: str
) -> None:
    """There are more experiments than the migration reads at once, and not each of them has counts."""
    plan = make_plan("train")
    rows = ((plan, first_jobs(plan)),) * 102
    details, _ = experiments.add_experiments(NewExperiments(ANN, "toaster", "", "", rows, concurrency=2), NOW)
    values = {one.experiment.id: (math.nan if at == 7 else at / 2) for at, one in enumerate(details) if at != 1}
    MetricRows(database).save_tallies([(count(one, value), {}) for one, value in values.items()])
    with database.write_transaction() as connection:
        connection.execute(sa.text("ALTER TABLE metric_tallies DROP COLUMN last_values"))
        count_given_lines_again(connection, "0010")
    database.close()
    again = Database(store)
    caller = Caller(ANN, Role.MEMBER, Scope.READ)
    found = {sub: value for _, _, sub, value in LastValues(again).read_values(ODD_NAME, caller, of_all=False)}
    subs = {one.experiment.id: one.experiment.sub for one in details}
    assert found == {subs[one]: None if math.isnan(value) else -value for one, value in values.items()}
    again.close()
