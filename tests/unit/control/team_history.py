"""The same random histories on a team's server: quotas change, and some experiments borrow what is idle."""

from __future__ import annotations

from dataclasses import replace

from riseml.control.decide import Decision
from riseml.control.quotas import Account, AccountKind, OwnQuota, QuotaRules, QuotaTable
from riseml.model import Experiment, Plan
from tests.unit.control.history import MOST, History
from tests.unit.control.simulation import change_policy
from tests.unit.control.steps import choice, rule

_PROJECT = "vision"


class TeamHistory(History):
    """Two users, who share a project. Every rule of `History` happens here, too."""

    @rule(
        user=choice("paul", "anna"),
        running=choice(None, 1, 2),
        gpus=choice(None, 0, 1, 2, 3),
        of_project=choice(None, None, 1, 2),
        hours=choice(0.0, 5.0),
    )
    def an_admin_sets_quotas(
        self, user: str, running: int | None, gpus: int | None, of_project: int | None, hours: float
    ) -> None:
        """The quotas of one user and of the project change; what runs goes on."""
        own = {
            Account(AccountKind.USER, user): OwnQuota({"running": running, "gpus": gpus}),
            Account(AccountKind.PROJECT, _PROJECT): OwnQuota({"running": of_project, "cpus": of_project}),
        }
        self.simulation.team = QuotaRules(QuotaTable(own=own), {user: hours})
        self._turn()

    def make_experiment_of(self, user: str, identity: int, plan: Plan) -> Experiment:
        borrows = identity == MOST
        experiment = super().make_experiment_of(user, identity, change_policy(plan, priority=-1) if borrows else plan)
        return replace(experiment, team_project=None if identity % 2 else _PROJECT)

    def _turn(self, seconds: float = 1.0) -> Decision:
        before = self.simulation.world()
        decision = super()._turn(seconds)
        if self.simulation.team is not None:  # otherwise a priority below 0 only comes last
            self.laws.check_no_early_loan(before, decision.world)
        return decision

    def _remove_faults(self) -> None:
        self.simulation.team = None
        super()._remove_faults()
