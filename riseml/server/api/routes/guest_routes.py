"""The route that gives a browser the address of an experiment's TensorBoard, on a separate origin
(`server.web.guests`)."""

from __future__ import annotations

from fastapi import APIRouter

from riseml import wire
from riseml.base.errors import Conflict
from riseml.base.names import experiment_name, parse_id
from riseml.server.access.stream_relay import end_in_thread
from riseml.server.api.guest_program import find_program
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.services import Services
from riseml.server.web.guest_gate import OWN_PLACE


def add_guest_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/address."""

    @router.post("/experiments/{name}/address")
    def invite_browser(name: Name) -> wire.GuestAddress:
        port = services.web.port
        if port is None:
            raise Conflict("the web page is closed", "`riseml web` opens it")
        canonical_id = parse_id(name)
        title = experiment_name(canonical_id.number, canonical_id.sub)
        door, program_port = find_program(title, services)
        with services.attendance.attend(door.experiment):
            stream = door.open_port(program_port)  # it listens
        stream.socket.close()
        end_in_thread(stream)
        invitation = services.web.guests.invite(title)
        place = f"{invitation.label}.localhost:{port}"
        return {"url": f"http://{place}{OWN_PLACE}enter?token={invitation.token}"}
