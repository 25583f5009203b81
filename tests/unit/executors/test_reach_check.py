"""What `riseml pool check` says about what jobs reach besides the network."""

from __future__ import annotations

from riseml.executors.capabilities import Outcome
from riseml.executors.docker.reach_check import describe_reach


def test_each_thing_that_jobs_reach_comes_with_the_rule_that_closes_it() -> None:
    both = describe_reach({"host": True, "metadata": True}, "10.213.0.0/16")
    assert [one.outcome for one in both] == [Outcome.NOTE, Outcome.NOTE]
    assert "`iptables -I DOCKER-USER -d 169.254.169.254 -j DROP` closes it" in both[0].message
    assert "`iptables -I INPUT -s 10.213.0.0/16 -m conntrack --ctstate NEW -j DROP` closes them" in both[1].message
    assert [one.topic for one in both] == ["reach", "reach"]
    for reached in ({"host": True, "metadata": False}, {"host": False, "metadata": True}):
        assert len(describe_reach(reached, "10.213.0.0/16")) == 1
    (closed,) = describe_reach({"host": False, "metadata": False}, "10.213.0.0/16")
    assert closed.outcome is Outcome.OK
