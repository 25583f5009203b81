"""Names of users and projects, uids and e-mail addresses: what is allowed."""

from __future__ import annotations

import pytest

from riseml.base.accounts import check_account_name, check_email, check_ids
from riseml.base.errors import UsageError


@pytest.mark.parametrize("name", ["a", "paul", "vision-lab", "a1-", "a" * 32])
def test_names_of_letters_digits_and_hyphens_are_allowed(name: str) -> None:
    assert check_account_name("user", name) == name


@pytest.mark.parametrize("name", ["", "Paul", "1a", "-a", "a.b", "a_b", "a" * 33, "paul\n", "pául", "../x", "a b"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a name for a project"):
        check_account_name("project", name)


@pytest.mark.parametrize("number", [1000, 2001, 61_183, 65_536, 2**31 - 2])
def test_uids_of_people_are_allowed(number: int) -> None:
    check_ids(number, 1000)
    check_ids(1000, number)


@pytest.mark.parametrize("number", [0, -1, 1, 999, 61_184, 65_534, 65_535, 2**31 - 1, 2**32 - 1])
def test_uids_of_root_and_of_services_are_refused(number: int) -> None:
    with pytest.raises(UsageError, match=f"uid {number} is not for users"):
        check_ids(number, 1000)
    with pytest.raises(UsageError, match=f"gid {number} is not for users"):
        check_ids(1000, number)


def test_an_email_address_has_one_at_sign_and_no_spaces() -> None:
    for text in "", "paul@example.org", "p.m+x@localhost":
        assert check_email(text) == text
    for text in "paul", "a@b@c", "paul @example.org", "paul@example.org\n", "@", "x" * 65 + "@example.org":
        with pytest.raises(UsageError, match="is not an e-mail address"):
            check_email(text)
