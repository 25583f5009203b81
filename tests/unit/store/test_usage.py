"""When experiments last used environments."""

from __future__ import annotations

from dataclasses import replace

from riseml.model import Image, Owner, copy_name
from riseml.planning.plan import first_jobs
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.schema import experiments as tables
from riseml.store.usage import LastUseReader
from tests.support.stores import go_back
from tests.unit.store.submissions import NOW, PLAN, submit


def test_what_a_base_image_stood_for_is_kept_from_an_earlier_version(database: Database, store: str) -> None:
    first, second = submit(ExperimentStore(database)), submit(ExperimentStore(database))
    with database.write_transaction() as connection:
        changed = {"resolved": "base@sha256:1"}
        connection.execute(tables.update().where(tables.c.id == first.id).values(**changed))
        go_back(connection, "0005")
    database.close()
    again = Database(store)
    found = ExperimentStore(again).load_world().experiments
    assert [one.resolved for one in found] == [(("base", "base@sha256:1"),), ()]
    assert [one.reference for one in found[0].images] == ["base@sha256:1"]
    assert set(LastUseReader(again).load_last_uses().environments) == {copy_name("base@sha256:1"), "base"}
    again.close()
    assert second.resolved == ()


def test_environments_of_roles_are_stored_and_in_use(experiments: ExperimentStore, database: Database) -> None:
    plan = replace(PLAN, role_images=(("worker", Image("other", ("pip install b",), (), "cd" * 32)),))
    order = NewExperiments(Owner("paul", 1000, 1000), "toaster", "project: toaster", "", ((plan, first_jobs(plan)),))
    made = experiments.add_experiments(order, NOW)[0][0].experiment
    resolved = (("base", "base@sha256:1"), ("other", "other@sha256:2"))
    assert experiments.save_decision(made, replace(made, resolved=resolved), NOW)
    (found,) = experiments.load_world().experiments
    assert (found.plan, found.resolved) == (plan, resolved)
    used = LastUseReader(database).load_last_uses().environments
    assert set(used) == {copy_name(one.reference) for one in found.images}
