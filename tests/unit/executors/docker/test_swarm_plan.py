"""Which hosts of a swarm manage it, for every number of hosts, with dead ones among them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from riseml.base.names import HostName
from riseml.executors.docker.swarm_plan import SwarmNode, count_managers, find_next_change, keeps_majority, parse_node


def worker(number: int) -> SwarmNode:
    return SwarmNode(f"n{number}", manager=False, has_vote=False, answers=True, claims=_claim(number))


def manager(number: int, *, answers: bool = True, leader: bool = False) -> SwarmNode:
    return SwarmNode(f"n{number}", manager=True, has_vote=True, answers=answers, leader=leader, claims=_claim(number))


def _claim(number: int) -> tuple[tuple[str, HostName], ...]:
    return (("5e17e4", HostName(f"h{number}")),)


def arrange(*nodes: SwarmNode, **said: tuple[str, ...]) -> list[SwarmNode]:
    """Return the nodes after all changes. After each of them the swarm has a leader."""
    swarm = list(nodes)
    for _ in range(60):
        change = find_next_change(swarm, **said)
        if change is None:
            return swarm
        swarm = [
            replace(node, manager=change.manager, has_vote=change.manager, leader=node.leader and change.manager)
            if node.id == change.node
            else node
            for node in swarm
        ]
        managers = [node for node in swarm if node.manager and node.has_vote]
        assert 2 * sum(node.answers for node in managers) > len(managers), f"no majority after {change}"
    raise AssertionError("the changes do not end")


def managers_of(nodes: list[SwarmNode]) -> list[str]:
    return [node.id for node in nodes if node.manager]


@pytest.mark.parametrize(("hosts", "managers"), [(1, 1), (2, 1), (3, 3), (6, 3), (7, 5), (40, 5)])
def test_a_swarm_has_one_three_or_five_managers(hosts: int, managers: int) -> None:
    assert count_managers(hosts) == managers
    added = arrange(manager(1, leader=True), *(worker(number) for number in range(2, hosts + 1)))
    assert len(managers_of(added)) == managers
    too_many = arrange(*(manager(number, leader=number == 1) for number in range(1, hosts + 1)))
    assert len(managers_of(too_many)) == managers


def test_two_managers_become_three_with_a_third_host_and_one_without() -> None:
    assert managers_of(arrange(manager(1, leader=True), manager(2), worker(3))) == ["n1", "n2", "n3"]
    assert managers_of(arrange(manager(1, leader=True), manager(2))) == ["n1"]
    dead = replace(worker(3), answers=False)
    assert managers_of(arrange(manager(1, leader=True), manager(2), dead)) == ["n1"], "two survive the loss of neither"


def test_a_dead_manager_is_replaced_once_it_is_given_up() -> None:
    swarm = (manager(1, leader=True), manager(2), manager(3, answers=False), worker(4))
    assert managers_of(arrange(*swarm)) == ["n1", "n2", "n3"], "it may come back soon"
    assert managers_of(arrange(*swarm, given_up=("n3",))) == ["n1", "n2", "n4"]
    assert managers_of(arrange(*swarm[:3], given_up=("n3",))) == ["n1", "n2", "n3"], "no other host can replace it"


def test_a_host_that_leaves_manages_nothing_and_the_majority_stays() -> None:
    three = (manager(1, leader=True), manager(2), manager(3))
    assert managers_of(arrange(*three, leaving=("n3",))) == ["n1"]
    assert managers_of(arrange(*three, leaving=("n1",))) == ["n2"]
    assert managers_of(arrange(manager(1, leader=True), worker(2), leaving=("n1",))) == ["n2"]
    alone = (manager(1, leader=True), replace(worker(2), answers=False))
    assert managers_of(arrange(*alone, leaving=("n1",))) == ["n1"], "nothing else can manage the swarm"


def test_a_host_that_made_networks_manages_until_they_are_gone() -> None:
    swarm = (manager(1, leader=True), manager(2))
    assert managers_of(arrange(*swarm, creators=("n2",))) == ["n1", "n2"]
    assert managers_of(arrange(*swarm, creators=("n2",), leaving=("n2",))) == ["n1"]


def test_the_managers_of_a_swarm_that_has_others_stay() -> None:
    """An administrator's own swarm, or hosts of a pool whose server has not labelled them yet."""
    others = (manager(1, leader=True), replace(manager(2), claims=()), worker(3), worker(4))
    assert managers_of(arrange(*others)) == ["n1", "n2"]
    assert managers_of(arrange(*others, leaving=("n1",))) == ["n2"]


def test_a_manager_from_before_a_new_majority_is_left_until_it_has_its_vote_again() -> None:
    left = replace(manager(2), has_vote=False)
    assert arrange(manager(1, leader=True), left, worker(3)) == [manager(1, leader=True), left, worker(3)]
    two = (manager(1, leader=True), manager(2), replace(manager(3), has_vote=False))
    assert arrange(*two) == list(two), "it may get its vote from either of them"
    assert managers_of(arrange(*two[:2], replace(two[2], answers=False))) == ["n1", "n3"], "n3 has no vote"


def test_random_swarms_keep_their_majority_and_come_to_rest() -> None:
    random = Random(7)
    for _ in range(2000):
        hosts = random.randint(1, 9)
        nodes = [manager(1, leader=True)]
        nodes += [random.choice([worker, manager])(number) for number in range(2, hosts + 1)]
        for place in range(1, hosts):
            fallen = [*nodes[:place], replace(nodes[place], answers=False), *nodes[place + 1 :]]
            if random.random() < 0.3 and keeps_majority(fallen_managers(fallen), ""):
                nodes = fallen
        dead = tuple(node.id for node in nodes if not node.answers)
        found = arrange(*nodes, given_up=dead)
        living = [node for node in found if node.manager and node.answers]
        able = [node for node in found if node.answers]
        assert len(managers_of(found)) % 2 == 1
        assert len(managers_of(found)) <= count_managers(hosts)
        assert len(living) == min(len(able), count_managers(hosts)) or len(living) == len(able) - 1


def fallen_managers(nodes: list[SwarmNode]) -> list[SwarmNode]:
    return [node for node in nodes if node.manager]


def test_a_node_is_read_from_the_engines_answer() -> None:
    found = {
        "ID": "n1",
        "Spec": {"Role": "manager", "Labels": {"riseml.server.5e17e4": "gpu1", "rack": "b2"}},
        "Status": {"State": "ready"},
        "ManagerStatus": {"Leader": True, "Reachability": "reachable"},
    }
    node = parse_node(found)
    assert (node.leader, node.answers, node.find_name("5e17e4"), node.find_name("0")) == (True, True, "gpu1", None)
    assert not parse_node({**found, "ManagerStatus": None}).has_vote
    assert not parse_node({**found, "ManagerStatus": {"Reachability": "unreachable"}}).answers
