"""Tokens open one session each; sessions survive a restart, and end with the door."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.server.web.access import WebAccess
from tests.unit.server.web.sessions import Clock, open_session, prove


def test_a_token_opens_one_session_within_ten_minutes(tmp_path: Path) -> None:
    clock = Clock()
    access = WebAccess(tmp_path / "web.json", clock)
    token, late = access.make_token(), access.make_token()
    assert access.open_session(token) is not None
    assert access.open_session(token) is None
    clock.now += 601
    assert access.open_session(late) is None
    assert access.open_session("") is None
    first = access.make_token()
    for _ in range(20):
        access.make_token()
    assert access.open_session(first) is None, "the oldest of too many tokens is dropped"


def test_a_session_survives_a_restart_and_ends_after_a_month(tmp_path: Path) -> None:
    clock = Clock()
    access = WebAccess(tmp_path / "web.json", clock)
    access.remember(4321)
    session = open_session(access)
    later = WebAccess(tmp_path / "web.json", clock)
    assert later.port == 4321
    name = later.find_session(session.cookie)
    assert name is not None
    proof = prove(later, session, "GET /api/v1/server")
    assert later.proofs.is_proven(name, proof, "GET /api/v1/server")
    assert not later.proofs.is_proven(name, proof, "GET /api/v1/server"), "a proof holds once"
    proof = prove(later, session, "GET /api/v1/server")
    assert not later.proofs.is_proven(name, proof, "GET /api/v1/system")
    assert not access.proofs.is_proven(name, proof, "GET /api/v1/server"), "another process has another challenge"
    clock.now += 31 * 86_400
    assert later.find_session(session.cookie) is None


def test_after_many_proofs_there_is_another_challenge(tmp_path: Path) -> None:
    access = WebAccess(tmp_path / "web.json")
    access.remember(4321)
    session, first = open_session(access), access.proofs.challenge
    name = session.cookie.partition(".")[0]
    proofs = [prove(access, session, "GET /") for _ in range(10_000)]
    assert all(access.proofs.is_proven(name, proof, "GET /") for proof in proofs)
    assert access.proofs.challenge != first
    assert not any(access.proofs.is_proven(name, proof, "GET /") for proof in proofs[:10])
    assert access.proofs.is_proven(name, prove(access, session, "GET /"), "GET /")


def test_one_session_ends_and_the_others_go_on(tmp_path: Path) -> None:
    clock = Clock()
    access = WebAccess(tmp_path / "web.json", clock)
    access.remember(4321)
    stolen, own = open_session(access), open_session(access)
    first, second = access.list_sessions()
    assert (first.until - first.opened_at, len(first.name)) == (30 * 86_400, 8)
    assert first.name == stolen.cookie[:8]
    assert access.end_session(first.name)
    assert not access.end_session(first.name)
    assert not access.end_session("")
    for one in (access, WebAccess(tmp_path / "web.json", clock)):
        assert one.find_session(stolen.cookie) is None
        assert one.find_session(own.cookie) is not None
        assert one.list_sessions() == [second]


def test_sessions_have_a_greatest_number(tmp_path: Path) -> None:
    access = WebAccess(tmp_path / "web.json")
    access.remember(4321)
    first = open_session(access)
    others = [open_session(access) for _ in range(100)]
    assert access.find_session(first.cookie) is None
    assert all(access.find_session(one.cookie) for one in others)


def test_sessions_end_when_the_door_is_closed(tmp_path: Path) -> None:
    access = WebAccess(tmp_path / "web.json")
    access.remember(4321)
    session, token = open_session(access), access.make_token()
    access.forget()
    assert access.port is None
    assert access.find_session(session.cookie) is None
    assert access.open_session(token) is None
    assert not (tmp_path / "web.json").exists()


@pytest.mark.parametrize(
    "cookie", ["", ".", "a.b.c", "a.9999999999.c", "a.²²².c", "\udcff.9999999999.\udcff", "a." + "9" * 99]
)
def test_a_made_up_cookie_is_not_a_session(tmp_path: Path, cookie: str) -> None:
    assert WebAccess(tmp_path / "web.json").find_session(cookie) is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "7", '{"port": 0, "key": ""}', '{"port": 80, "key": "00"}', '{"port": "x"}']
)
def test_a_damaged_file_is_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "web.json").write_text(text)
    assert WebAccess(tmp_path / "web.json").port is None
