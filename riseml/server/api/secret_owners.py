"""Whose secrets a request means: those of the user, or of a project."""

from __future__ import annotations

from riseml.base.errors import NotFound, Refused
from riseml.base.roles import Role
from riseml.control.permissions import choose_team_project
from riseml.model import Caller
from riseml.server.api.submissions.submit import check_text
from riseml.server.services import Services
from riseml.store.secret_store import OwnerKind, SecretOwner


def choose_owner(caller: Caller, project: str | None, services: Services) -> SecretOwner:
    """Return whose secret a request sets or removes: that of the project it names, else that of the user.

    Raises:
        NotFound: on a team's server, the caller is no member of such a project.
        Refused: the caller is a member and no maintainer of it; or the key is bound to a project, and none is named.
    """
    if project is None:
        if caller.project is not None:
            raise Refused(
                f"this key is bound to the project {caller.project}, and changes nothing that is yours alone",
                f"name the project with `--project {caller.project}`, or use another key",
            )
        return SecretOwner(OwnerKind.USER, caller.user)
    check_text(project)
    if services.config is not None:
        role = dict(caller.projects).get(project, Role.VIEWER)
        if role < Role.MEMBER or caller.project not in (None, project):
            raise NotFound(f"there is no project {project}", "`riseml project list` shows them")
        if role < Role.MAINTAINER:
            raise Refused(f"you are not a maintainer of {project}", f"`riseml project show {project}` shows who is")
    return SecretOwner(OwnerKind.PROJECT, project)


def list_submission_owners(caller: Caller, project: str, services: Services) -> list[SecretOwner]:
    """Return whose secrets and credentials a submission of a caller uses, the first ones first.

    Raises:
        Refused: the key of the caller is bound to another project.
    """
    team_project = choose_team_project(caller, project)
    if caller.project is not None:
        return [SecretOwner(OwnerKind.PROJECT, caller.project)]
    return services.stores.secrets.list_new_owners(caller.user, project, team_project)


def check_key_file(services: Services) -> None:
    """Check that the server has a place for the key that seals what users want to keep secret.

    Raises:
        Refused: server.yml of a team's server names none.
    """
    if services.config is not None and services.config.secrets_key is None:
        raise Refused(
            "this server keeps no secrets: its server.yml names no file for their key",
            "its admin writes `secrets_key: /etc/riseml/secrets.key` there, a file outside of riseml's home, and "
            "starts the server again",
        )
