"""What a team's server checks of a submission, beside what every server does; and whose files a caller may use."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.control.permissions import choose_team_project
from riseml.model import Caller, Plan, Resolved
from riseml.server.gate.user_ids import check_owner
from riseml.server.hosts.host_set import HostSet
from riseml.server.services import Services
from riseml.store.projects.spaces import ProjectSpaces, name_project_space, name_user_space


def find_project_spaces(caller: Caller, hosts: HostSet) -> ProjectSpaces | None:
    """Return the spaces whose files of projects a caller may use; None: the server is for one user, who has all.

    A key that is bound to a team project uses what was given to that project, and nothing of its user.
    """
    if hosts.rules is None:
        return None
    if caller.project is not None:
        return ProjectSpaces(name_project_space(caller.project))
    return ProjectSpaces(name_user_space(caller.user), tuple(name_project_space(name) for name, _ in caller.projects))


def find_holder(project: str, caller: Caller, hosts: HostSet) -> str:
    """Return who shares the environments of an experiment; empty: the server is for one user."""
    if hosts.rules is None:
        return ""
    team_project = choose_team_project(caller, project)
    return name_user_space(caller.user) if team_project is None else name_project_space(team_project)


def check_for_team(plans: Sequence[Plan], resolved: Resolved, caller: Caller, services: Services) -> None:
    """Check that a caller may run these plans on a team's server; nothing on another server.

    Raises:
        Refused: an image is not for users, the data is another project's, the key is for another project, or nobody
            has said under which uid the caller's jobs run.
    """
    rules = services.hosts.rules
    if rules is None:
        return
    project = plans[0].project
    rules.check_plans(plans, resolved)
    check_owner(caller.owner)
    services.data.fetcher.check_team_data(
        plans, caller.user, choose_team_project(caller, project), is_bound=caller.project is not None
    )


def give_to_project(snapshot: str, project: str, caller: Caller, services: Services) -> None:
    """Give the files of an accepted submission to the members of its team project, if it belongs to one."""
    spaces = find_project_spaces(caller, services.hosts)
    team_project = choose_team_project(caller, project)
    if spaces is not None and team_project is not None and snapshot:
        services.stores.snapshots.give_state(snapshot, spaces, name_project_space(team_project))
