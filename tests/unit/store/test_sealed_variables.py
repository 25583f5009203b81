"""The values of variables as the store has them: sealed with a key that only the home has."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from riseml.errors import EngineError, Refused, StoreError
from riseml.store.sealed_variables import KEY_FILE, open_variables, seal_variables

VARIABLES = (("TOKEN", "s3cret" * 50), ("EMPTY", ""), ("NAME", "töaster \udcff"), ("OWN", "sealed:1:AAAA"))


def test_values_are_read_with_the_key_of_the_home_alone(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    sealed = seal_variables(home, VARIABLES)
    assert [name for name, _ in sealed] == [name for name, _ in VARIABLES]
    hidden = b"".join(base64.b64decode(value.removeprefix("sealed:1:")) for _, value in sealed)
    assert b"s3cret" not in hidden
    assert seal_variables(home, VARIABLES) != sealed, "equal values do not look equal"
    assert open_variables(home, sealed) == VARIABLES
    assert (home / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.iterdir()] == [KEY_FILE]
    seal_variables(other, VARIABLES)
    (home / KEY_FILE).unlink()
    for place in (home, other):
        with pytest.raises(EngineError, match="the value of TOKEN cannot be read") as raised:
            open_variables(place, sealed)
        assert raised.value.permanent


def test_a_value_that_was_changed_or_moved_is_refused(tmp_path: Path) -> None:
    ((_, token), (_, name)) = seal_variables(tmp_path, (("TOKEN", "secret"), ("NAME", "toaster")))
    middle = len(token) - 5
    changed = token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]
    for broken in (changed, name, token[:20], "sealed:1:", "sealed:1:ü"):
        with pytest.raises(EngineError, match="the value of TOKEN cannot be read"):
            open_variables(tmp_path, (("TOKEN", broken),))


def test_what_earlier_versions_stored_is_read_as_it_is(tmp_path: Path) -> None:
    assert open_variables(tmp_path, (("TOKEN", "secret"),)) == (("TOKEN", "secret"),)
    assert seal_variables(tmp_path, ()) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_home_gets_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        sealed = list(pool.map(lambda _: seal_variables(tmp_path, VARIABLES), range(8)))
    assert {open_variables(tmp_path, one) for one in sealed} == {VARIABLES}


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    seal_variables(tmp_path, VARIABLES)
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(Refused, match="not a file of yours alone"):
        seal_variables(tmp_path, VARIABLES)


@pytest.mark.parametrize("size", [16, 33])
def test_a_damaged_key_seals_nothing(size: int, tmp_path: Path) -> None:
    sealed = seal_variables(tmp_path, VARIABLES)
    (tmp_path / KEY_FILE).write_bytes(bytes(size))
    with pytest.raises(StoreError, match=f"it has {size} bytes, and a key has 32"):
        seal_variables(tmp_path, VARIABLES)
    with pytest.raises(EngineError, match="is not the key that it was stored with") as raised:
        open_variables(tmp_path, sealed)
    assert raised.value.permanent
