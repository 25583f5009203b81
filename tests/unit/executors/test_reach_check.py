"""What `riseml pool check` says about what jobs reach besides the network."""

from __future__ import annotations

from riseml.executors.capabilities import Outcome
from riseml.executors.docker.reach_check import Reach, describe_reach


def test_each_thing_that_jobs_reach_comes_with_the_rule_that_closes_it() -> None:
    both = describe_reach(Reach(metadata=True, host_from=("10.213.0.0/16",)))
    assert [one.outcome for one in both] == [Outcome.NOTE, Outcome.NOTE]
    assert "`iptables -I DOCKER-USER -d 169.254.169.254 -j DROP` closes it" in both[0].message
    assert "`iptables -I INPUT -s 10.213.0.0/16 -m conntrack --ctstate NEW -j DROP` closes them" in both[1].message
    assert [one.topic for one in both] == ["reach", "reach"]
    for reach in (Reach(metadata=False, host_from=("10.213.0.0/16",)), Reach(metadata=True, host_from=())):
        assert len(describe_reach(reach)) == 1
    (closed,) = describe_reach(Reach(metadata=False, host_from=()))
    assert closed.outcome is Outcome.OK


def test_each_network_by_which_jobs_go_out_has_its_own_rule() -> None:
    (found,) = describe_reach(Reach(metadata=False, host_from=("10.213.0.0/16", "172.18.0.0/16")))
    rule = "`iptables -I INPUT -s {} -m conntrack --ctstate NEW -j DROP`"
    assert f"{rule.format('10.213.0.0/16')} and {rule.format('172.18.0.0/16')} close them" in found.message
