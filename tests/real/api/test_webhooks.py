"""A real server tells a webhook of an end, again after it was killed while the address did not answer."""

from __future__ import annotations

import json

from tests.support.receiver import open_receiver
from tests.support.rig import Rig, single

SECRET = "canary-5e1f-webhook"


def test_a_project_asks_for_a_metric_and_the_log_names_the_webhook_that_got_it(process_rig: Rig) -> None:
    rig = process_rig
    with open_receiver() as receiver:
        file = rig.home / "notify.yml"
        file.write_text(json.dumps({"webhooks": [{"name": "team", "url": receiver.url, "events": []}]}))
        file.chmod(0o600)
        report = 'printf \'riseml.report {"step": %s, "accuracy": %s}\\n\' {{step}} {{step}}'
        notify = {"on": ["accuracy >= 2", "finished"], "to": ["team"]}
        rig.submit(single(report, notify=notify, parameters={"step": [1, 2]}, concurrency=2))
        rig.wait_closed("1")
        told = rig.wait("both events are told", lambda: receiver.received[1:] and receiver.received)
        found = {(one := json.loads(each.body))["event"]: one for each in told}
        assert found["metric.reached"]["experiment"]["id"] == "1.2"
        assert found["metric.reached"]["metric"]["value"] == 2.0
        assert (found["set.ended"]["experiment"]["state"], found["set.ended"]["experiment"]["experiments"]) == (
            "FINISHED",
            2,
        )
        said = "1.2.webhook webhook team got the notice: accuracy >= 2 (200)"
        rig.wait("the log of the experiment says it", lambda: said in rig.lines("1"))
        ended = "webhook team got the notice: FINISHED (200)"
        rig.wait("so does that of the last one", lambda: any(ended in line for line in rig.lines("1")))
        assert len(receiver.received) == 2


def test_the_next_server_sends_an_end_when_the_first_one_is_killed(process_rig: Rig) -> None:
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
        line = "1: webhook mine got the notice: FAILED (200)"
        rig.wait("the log says so", lambda: line in (rig.home / "server.log").read_text() or None)
        kept = b"".join(path.read_bytes() for path in rig.home.glob("*") if path.is_file() and path != file)
        assert SECRET.encode() not in kept, "neither the log nor the store has the address or the secret"
