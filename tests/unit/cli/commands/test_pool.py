"""`pool recover`: what it costs comes before a yes."""

from __future__ import annotations

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

RECOVERY = {
    "leader": "gpu1",
    "keeps_swarm": True,
    "lost": ["gpu2", "gpu3"],
    "breaks": ["4", "anna.7"],
    "done": False,
    "members": [],
}


def test_pool_recover_says_what_it_costs_before_a_yes(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /pool/recover"] = (200, RECOVERY)
    for options in ((), ("--json",)):
        refused = riseml("pool", "recover", *options)
        assert (refused.code, refused.out) == (4, "")
        assert "the jobs of these experiments lose the network between them: 4, anna.7" in refused.err
        assert "managers that do not answer (gpu2, gpu3) lose their votes" in refused.err
        assert "`--yes` agrees" in refused.err
    assert all("dry_run=true" in one for one in fake_server.asked if "recover" in one)
    done = [{"host": "gpu1", "membership": "recovered"}, {"host": "gpu2", "membership": "silent"}]
    fake_server.answers["POST /pool/recover"] = (200, {**RECOVERY, "done": True, "members": done})
    shown = riseml("pool", "recover", "--yes").out
    assert "gpu1  manages the swarm alone, until others answer" in shown
    fake_server.answers["POST /pool/recover"] = (200, {**RECOVERY, "keeps_swarm": False})
    assert "the members leave the swarm and make a new one" in riseml("pool", "recover").err
