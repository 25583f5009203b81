"""A real server tells a webhook of an end, again after it was killed while the address did not answer."""

from __future__ import annotations

import json

from tests.support.receiver import open_receiver
from tests.support.rig import Rig, single

SECRET = "canary-5e1f-webhook"


def test_an_end_is_told_by_the_next_server_when_the_first_one_dies(process_rig: Rig) -> None:
    rig = process_rig
    with open_receiver() as receiver:
        receiver.hangs = True
        file = rig.home / "notify.yml"
        file.write_text(
            json.dumps({"webhooks": [{"name": "mine", "url": f"{receiver.url}/{SECRET}", "secret": SECRET}]})
        )
        file.chmod(0o600)
        rig.submit(single("exit 7"))
        closed = rig.wait_closed("1")
        assert closed["state"] == "FAILED", "an address that does not answer changes nothing"
        rig.wait("the address is asked", lambda: receiver.received or None)
        rig.kill()
        receiver.hangs = False
        count = len(receiver.received)
        rig.start()
        told = rig.wait("the next server tells it", lambda: receiver.received[count:] or None)
        assert told[0].headers["Riseml-Delivery"] == receiver.received[0].headers["Riseml-Delivery"]
        assert json.loads(told[0].body)["experiment"]["state"] == "FAILED"
        line = "1: webhook mine was told: FAILED (200)"
        rig.wait("the log says so", lambda: line in (rig.home / "server.log").read_text() or None)
        kept = b"".join(path.read_bytes() for path in rig.home.glob("*") if path.is_file() and path != file)
        assert SECRET.encode() not in kept, "neither the log nor the store has the address or the secret"
