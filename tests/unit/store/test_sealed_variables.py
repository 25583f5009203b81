"""The values of variables as the store has them: sealed with a key that only the home has."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from riseml.base.errors import EngineError, Refused, StoreError
from riseml.base.settings import Settings
from riseml.model import Environment, Experiment, Owner
from riseml.planning.plan import first_jobs
from riseml.store import sealed_variables
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.sealed_variables import _MARK, Reseal, ResealText, VariableSeals
from tests.unit.control.simulation import make_experiment, make_plan

VARIABLES = (("TOKEN", "s3cret" * 50), ("EMPTY", ""), ("NAME", "töaster \udcff"), ("OWN", "sealed:2:AAAA"))
KEY_FILE = "variables.key"
OWNER = Owner("paul", 1000, 1000)
PLAN = make_plan("train")
NOW = datetime(2026, 11, 27, tzinfo=UTC)


def make_seals(home: Path, server: str = "5e17e4") -> VariableSeals:
    home.mkdir(exist_ok=True)
    return VariableSeals(home / KEY_FILE, server)


def keep(environment: Environment, number: int = 4, user: str = "paul") -> Experiment:
    """Return an experiment as the store has it."""
    return make_experiment(number, PLAN, owner=replace(OWNER, user=user), environment=environment)


def test_values_are_read_with_the_key_of_the_home_alone(tmp_path: Path) -> None:
    seals, other = make_seals(tmp_path / "home"), make_seals(tmp_path / "other")
    sealed = seals.seal("paul", 4, VARIABLES)
    assert [name for name, _ in sealed] == [name for name, _ in VARIABLES]
    hidden = b"".join(base64.b64decode(value.removeprefix("sealed:2:")) for _, value in sealed)
    assert b"s3cret" not in hidden
    assert seals.seal("paul", 4, VARIABLES) != sealed, "equal values do not look equal"
    assert seals.open(keep(sealed)) == VARIABLES
    assert (seals.file).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in seals.file.parent.iterdir()] == [KEY_FILE]
    other.seal("paul", 4, VARIABLES)
    (seals.file).unlink()
    for one in (seals, other):
        with pytest.raises(EngineError, match="the value of TOKEN cannot be read") as raised:
            one.open(keep(sealed))
        assert raised.value.permanent


def test_values_from_before_another_file_was_named_open_with_their_own_key(tmp_path: Path) -> None:
    """As when the admin of a home with sealed values writes `secrets_key` into its server.yml."""
    home = tmp_path / "home"
    before = make_seals(home)
    stored = before.seal("paul", 4, VARIABLES)
    text = before.seal_text(("secret", "user", "paul", "hf"), "token-of-paul")
    settings = Settings(home, home, home, secrets_key=tmp_path / "secrets.key")
    variables, texts = [stored], [text]

    def reseal_all(reseal: Reseal) -> None:
        variables.append(reseal("paul", 4, variables[-1]))

    def reseal_texts(reseal: ResealText) -> None:
        texts.append(reseal(("secret", "user", "paul", "hf"), texts[-1]))

    after = sealed_variables.make_seals(settings, "5e17e4")
    assert after.file == tmp_path / "secrets.key"
    after.seal_earlier_values(reseal_all)
    alone = VariableSeals(after.file, "5e17e4")
    assert alone.open(keep(variables[-1])) == VARIABLES
    assert after.open(keep(stored)) == VARIABLES, "a former value, as in a backup"
    assert after.open_text(("secret", "user", "paul", "hf"), texts[-1]) == "token-of-paul"
    with pytest.raises(EngineError):
        alone.open_text(("secret", "user", "paul", "hf"), texts[-1])
    after.rotate(reseal_all, reseal_texts)
    assert alone.open_text(("secret", "user", "paul", "hf"), texts[-1]) == "token-of-paul"
    with pytest.raises(EngineError):
        before.open(keep(after.seal("paul", 4, VARIABLES)))


def test_a_value_that_was_changed_or_is_not_sealed_is_refused(tmp_path: Path) -> None:
    seals = make_seals(tmp_path)
    ((_, token), (_, name)) = seals.seal("paul", 4, (("TOKEN", "secret"), ("NAME", "toaster")))
    middle = len(token) - 5
    changed = token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]
    for broken in (changed, name, token[:20], "sealed:2:", "sealed:2:ü", "sealed:1:AAAA", "secret", ""):
        with pytest.raises(EngineError, match="the value of TOKEN cannot be read"):
            seals.open(keep((("TOKEN", broken),)))
    assert seals.open(keep((("TOKEN", token),))) == (("TOKEN", "secret"),)


def test_a_value_opens_in_its_place_alone(tmp_path: Path) -> None:
    seals = make_seals(tmp_path)
    sealed = seals.seal("paul", 4, (("TOKEN", "secret"),))
    assert seals.open(replace(keep(sealed), sub=7, set_id=1)) == (("TOKEN", "secret"),), "a set has one number"
    moved = [
        (seals, keep(sealed, number=5)),
        (seals, keep(sealed, user="anna")),
        (seals, keep((("OTHER", sealed[0][1]),))),
        (make_seals(tmp_path, server="another"), keep(sealed)),
    ]
    for one, experiment in moved:
        with pytest.raises(EngineError, match="it was not sealed for this experiment"):
            one.open(experiment)


def add(store: ExperimentStore, environment: Environment) -> Experiment:
    new = NewExperiments(OWNER, "toaster", "project: a", "", ((PLAN, first_jobs(PLAN)),), environment=environment)
    return store.add_experiments(new, NOW)[0][0].experiment


def test_what_earlier_versions_stored_is_sealed_once_and_then_refused(
    tmp_path: Path, experiments: ExperimentStore
) -> None:
    key, nonce = bytes(range(32)), bytes(12)
    (tmp_path / KEY_FILE).write_bytes(key)
    (tmp_path / KEY_FILE).chmod(0o600)
    earlier = "sealed:1:" + base64.b64encode(nonce + AESGCM(key).encrypt(nonce, b"secret", b"TOKEN")).decode()
    made = [add(experiments, one) for one in ((("TOKEN", earlier), ("CLEAR", "value")), (), (("OTHER", "x"),))]
    seals = VariableSeals(tmp_path / KEY_FILE, "5e17e4")
    seals.seal_earlier_values(experiments.reseal_variables)
    first, second, third = experiments.load_world().experiments
    assert seals.open(first) == (("TOKEN", "secret"), ("CLEAR", "value"))
    assert (seals.open(second), seals.open(third)) == ((), (("OTHER", "x"),))
    assert (first.version, second.version) == (made[0].version + 1, made[1].version)
    assert (tmp_path / KEY_FILE).read_bytes() == _MARK + key
    planted = add(experiments, (("TOKEN", earlier), ("CLEAR", "value")))
    seals.seal_earlier_values(experiments.reseal_variables)
    for name, value in planted.environment:
        with pytest.raises(EngineError, match=f"the value of {name} cannot be read"):
            seals.open(replace(planted, environment=((name, value),)))


def test_a_new_home_has_a_key_that_opens_nothing_unsealed(tmp_path: Path, experiments: ExperimentStore) -> None:
    seals = VariableSeals(tmp_path / KEY_FILE, "5e17e4")
    seals.seal_earlier_values(experiments.reseal_variables)
    planted = add(experiments, (("TOKEN", "planted"),))
    seals.seal_earlier_values(experiments.reseal_variables)
    with pytest.raises(EngineError, match="the value of TOKEN cannot be read"):
        seals.open(planted)


def test_after_a_rotation_no_copy_of_the_former_key_opens_a_value(tmp_path: Path, experiments: ExperimentStore) -> None:
    seals = make_seals(tmp_path / "home")
    made = add(experiments, seals.seal("paul", 1, VARIABLES))
    stolen = make_seals(tmp_path / "stolen")
    (stolen.file).write_bytes((seals.file).read_bytes())
    (stolen.file).chmod(0o600)
    assert stolen.open(made) == VARIABLES
    seals.rotate(experiments.reseal_variables)
    (fresh,) = experiments.load_world().experiments
    assert seals.open(fresh) == VARIABLES
    with pytest.raises(EngineError, match="the value of TOKEN cannot be read"):
        stolen.open(fresh)
    with pytest.raises(EngineError, match="the value of TOKEN cannot be read"):
        seals.open(made)


@pytest.mark.parametrize("commits", [False, True])
def test_a_server_that_dies_while_it_rotates_the_key_loses_no_value(
    *, commits: bool, tmp_path: Path, experiments: ExperimentStore
) -> None:
    seals = make_seals(tmp_path)
    add(experiments, seals.seal("paul", 1, VARIABLES))

    def die(reseal: Reseal) -> None:
        if commits:
            experiments.reseal_variables(reseal)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seals.rotate(die)
    (left,) = experiments.load_world().experiments
    assert seals.open(left) == VARIABLES
    seals.rotate(experiments.reseal_variables)
    (left,) = experiments.load_world().experiments
    assert seals.open(left) == VARIABLES
    assert (tmp_path / KEY_FILE).stat().st_size == len(_MARK) + 32


def test_a_home_gets_one_key(tmp_path: Path) -> None:
    seals = make_seals(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        sealed = list(pool.map(lambda _: seals.seal("paul", 4, VARIABLES), range(8)))
    assert {seals.open(keep(one)) for one in sealed} == {VARIABLES}


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    seals = make_seals(tmp_path)
    seals.seal("paul", 4, VARIABLES)
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(Refused, match="not a file of yours alone"):
        seals.seal("paul", 4, VARIABLES)


@pytest.mark.parametrize("content", [bytes(16), bytes(33), _MARK + bytes(31), _MARK])
def test_a_damaged_key_seals_nothing(content: bytes, tmp_path: Path) -> None:
    seals = make_seals(tmp_path)
    sealed = seals.seal("paul", 4, VARIABLES)
    (tmp_path / KEY_FILE).write_bytes(content)
    with pytest.raises(StoreError, match=f"it has {len(content)} bytes, and is not a file of keys"):
        seals.seal("paul", 4, VARIABLES)
    with pytest.raises(EngineError, match="was not sealed for this experiment") as raised:
        seals.open(keep(sealed))
    assert raised.value.permanent
