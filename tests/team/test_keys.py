"""Keys and users of a team's server over HTTP: sentences 5, 6, 7, 8 and 13 of what such a server must prove."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from riseml.base.api_keys import KEY_PREFIX, is_key, make_key
from riseml.base.errors import RisemlError, Unauthenticated
from riseml.cli.context import CommandContext
from riseml.cli.main import execute
from riseml.cli.output.printer import make_printer
from riseml.client.server_client import LogQuery
from riseml.model import Owner
from riseml.server.clock import now
from riseml.server.gate.failed_attempts import MOST_FAILURES
from riseml.store.accounts import KeyRequest
from tests.support.waiting import DEADLINE
from tests.team.key_scene import KeyScene, open_key_scene
from tests.unit.store.submissions import submit


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyScene]:
    with open_key_scene(tmp_path_factory.mktemp("team")) as made:
        made.add_user("paul", uid=2001)
        made.add_user("ann", uid=2002)
        yield made


def test_sentence_05_a_key_is_random_and_found_by_scanners_and_shown_once(scene: KeyScene) -> None:
    answer = scene.ask("POST", "/keys", "paul", body={"name": "laptop"})
    key = answer.json()["secret"]
    assert is_key(key)
    assert key.startswith(KEY_PREFIX)
    hidden = len(key) - len(KEY_PREFIX) - 8
    assert hidden * math.log2(62) >= 160, "beside the last eight characters, which lists show"
    assert scene.ask("GET", "/whoami", key=key).json()["user"] == "paul"

    shown = [scene.ask("GET", path, "admin").text for path in ("/keys?all_users=true", "/users", "/users/paul")]
    shown.append(scene.ask("POST", f"/keys/{answer.json()['key']['id']}/revoke", "paul").text)
    with scene.application.database.read_transaction() as connection:
        shown += [str(connection.execute(sa.text(f"SELECT * FROM {table}")).all()) for table in ("api_keys", "users")]
    assert all(key[-9:] not in text for text in shown)
    assert key[-8:] in shown[0]
    files = [path for path in scene.home.rglob("*") if path.is_file()]
    assert [path.name for path in files if key[len(KEY_PREFIX) : -8].encode() in path.read_bytes()] == []


def test_sentence_06_a_key_has_a_scope_a_project_an_expiry_and_a_last_use(scene: KeyScene) -> None:
    scene.ask("POST", "/projects", "admin", body={"name": "vision"})
    scene.ask("POST", "/projects/vision/members/paul", "admin", body={"role": "member"})
    made = scene.ask("POST", "/keys", "paul", body={"scope": "read", "project": "vision"}).json()
    view = made["key"]
    life = datetime.fromisoformat(view["expires_at"]) - datetime.fromisoformat(view["created_at"])
    assert (view["scope"], view["project"], view["used_at"], life) == ("read", "vision", None, timedelta(days=90))
    caller = scene.ask("GET", "/whoami", key=made["secret"]).json()
    assert (caller["scope"], caller["project"]) == ("read", "vision")
    assert caller["projects"] == [{"project": "vision", "role": "member"}]

    for days, status in ((1, 200), (366, 200), (0, 422), (367, 422)):
        assert scene.ask("POST", "/keys", "paul", body={"days": days}).status_code == status
    absent = scene.ask("POST", "/keys", "ann", body={"project": "vision"})
    nowhere = scene.ask("POST", "/keys", "ann", body={"project": "nowhere"})
    assert (absent.status_code, absent.text.replace("vision", "nowhere")) == (404, nowhere.text)

    (used,) = (key for key in scene.ask("GET", "/keys", "paul").json()["keys"] if key["id"] == view["id"])
    assert used["used_at"] is not None


def revoke(scene: KeyScene, user: str) -> None:
    (key,) = scene.ask("GET", f"/keys?user={user}", "admin").json()["keys"]
    assert scene.ask("POST", f"/keys/{key['id']}/revoke", "admin").status_code == 200


def disable(scene: KeyScene, user: str) -> None:
    assert scene.ask("POST", f"/users/{user}", "admin", body={"disabled": True}).status_code == 200


@pytest.mark.parametrize("end", [revoke, disable])
def test_sentence_07_a_revoked_key_or_disabled_user_fails_with_open_streams(
    scene: KeyScene, end: Callable[[KeyScene, str], None]
) -> None:
    user = f"to-{end.__name__}"
    key = scene.add_user(user)
    numbers = {name: submit(scene.application.services.stores.experiments, user=name).number for name in (user, "paul")}
    ends = {name: threading.Event() for name in numbers}
    errors: dict[str, RisemlError] = {}

    def follow(name: str) -> None:
        try:
            with scene.open_client(name) as client:
                for _ in client.stream_log(str(numbers[name]), LogQuery()):
                    ends[name].clear()
        except RisemlError as error:
            errors[name] = error
        ends[name].set()

    for name in numbers:
        threading.Thread(target=follow, args=(name,), daemon=True).start()
    path = f"{scene.url.replace('http', 'ws')}/v1/experiments/{numbers[user]}/presence"
    with connect(path, additional_headers={"Authorization": f"Bearer {key}"}) as stream:
        assert stream.recv(DEADLINE)
        end(scene, user)
        assert scene.ask("GET", "/whoami", key=key).status_code == 401, "a new request fails at once"
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                stream.recv(DEADLINE)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
    assert ends[user].wait(DEADLINE)
    assert isinstance(errors[user], Unauthenticated)
    assert not ends["paul"].is_set(), "streams of other users go on"


def test_sentence_08_ten_failures_make_an_address_wait_and_all_bad_keys_are_answered_alike(tmp_path: Path) -> None:
    with open_key_scene(tmp_path) as scene:
        scene.add_user("paul")
        accounts = scene.application.services.stores.accounts
        expired = accounts.add_key(KeyRequest("paul", days=1), now() - timedelta(days=2))
        revoked = accounts.add_key(KeyRequest("paul"), now())
        accounts.revoke_key(revoked.key.id, now())
        scene.add_user("tim")
        disable(scene, "tim")
        bad = [make_key(), expired.secret, revoked.secret, scene.keys["tim"], "riseml_", "x" * 3000, "two words", "é"]
        answers = [scene.ask("GET", "/whoami", key=key) for key in bad]
        assert {(one.status_code, one.text, len(one.headers)) for one in answers} == {
            (401, answers[0].text, len(answers[0].headers))
        }
        error = json.loads(answers[0].text)["error"]
        assert (error["kind"], error["message"]) == ("Unauthenticated", "this key is not valid")
        fresh = accounts.add_key(KeyRequest("paul"), now()).secret
        for _ in range(MOST_FAILURES - len(bad)):
            assert scene.ask("GET", "/server", key=make_key()).status_code == 401
        for key in make_key(), fresh, revoked.secret:
            waits = scene.ask("GET", "/whoami", key=key)
            assert waits.status_code == 429
            assert 1 <= int(waits.headers["Retry-After"]) <= 60
        assert scene.ask("GET", "/whoami", "admin").status_code == 200, "who came in from there before goes on"


@pytest.mark.parametrize(
    "values",
    [
        {"name": "root", "uid": 0},
        {"name": "tom", "uid": 999},
        {"name": "tom", "uid": 2010, "gid": 0},
        {"name": "tom", "uid": 65534},
        {"name": "tom", "uid": -1},
        {"name": "tom", "gid": 2010},
        {"name": "Tom", "uid": 2010},
        {"name": "tom.b", "uid": 2010},
        {"name": "t" * 33, "uid": 2010},
        {"name": "", "uid": 2010},
        {"name": "tom", "uid": "x"},
        {"name": "tom", "uid": 2010, "role": "maintainer"},
        {"name": "tom", "uid": 2001},  # paul's
    ],
    ids=str,
)
def test_sentence_13_a_user_has_one_uid_that_an_admin_set_and_that_is_not_of_the_system(
    scene: KeyScene, values: dict[str, object]
) -> None:
    refused = scene.ask("POST", "/users", "admin", body=values)
    assert refused.status_code in (400, 409, 422), refused.text
    assert set(refused.json()) == {"error"}
    assert scene.ask("GET", "/users/tom", "admin").status_code == 404
    if "uid" in values and values["name"] == "tom":
        changed = scene.ask("POST", "/users/ann", "admin", body={key: values[key] for key in values if key != "name"})
        assert changed.status_code in (400, 409, 422), changed.text
    keys = scene.application.services.keys
    assert keys is not None
    caller = keys.find_caller(scene.keys["ann"], "")
    assert caller.owner == Owner("ann", 2002, 2002)


def test_a_key_may_do_no_more_than_its_scope_and_its_user(scene: KeyScene) -> None:
    keys = {
        scope: scene.ask("POST", "/keys", "paul", body={"scope": scope}).json()["secret"] for scope in ("read", "run")
    }
    for key in keys.values():
        assert scene.ask("GET", "/keys", key=key).status_code == 200
        for path in "/keys", "/keys/0123456789/revoke", "/users", "/projects", "/projects/vision/members/paul":
            assert scene.ask("POST", path, key=key, body={}).status_code == 403, path
    for method, path, body in (
        ("GET", "/users", None),
        ("POST", "/users", {"name": "tim"}),
        ("POST", "/users/paul", {"role": "admin"}),
        ("GET", "/keys?user=ann", None),
        ("GET", "/keys?all_users=true", None),
        ("POST", "/keys", {"user": "ann"}),
        ("POST", "/projects", {"name": "mine"}),
    ):
        assert scene.ask(method, path, "paul", body=body).status_code == 403, path


def test_what_belongs_to_another_user_is_answered_as_what_does_not_exist(scene: KeyScene) -> None:
    scene.ask("POST", "/projects", "admin", body={"name": "secret"})
    (key,) = scene.ask("GET", "/keys", "ann").json()["keys"]
    pairs = [
        ("GET", "/users/{}", "ann", "absent"),
        ("POST", "/keys/{}/revoke", key["id"], "0000000000"),
        ("GET", "/projects/{}", "secret", "absent"),
        ("POST", "/projects/{}/members/paul", "secret", "absent"),
        ("POST", "/projects/{}/members/ann/remove", "secret", "absent"),
        ("POST", "/projects/{}/members/paul/remove", "secret", "absent"),
    ]
    for method, path, foreign, absent in pairs:
        body = {"role": "member"} if path.endswith("/paul") else None
        answers = [scene.ask(method, path.format(name), "paul", body=body) for name in (foreign, absent)]
        assert answers[0].status_code == 404, path
        assert answers[0].text.replace(foreign, absent) == answers[1].text
    assert "secret" not in [one["name"] for one in scene.ask("GET", "/projects", "paul").json()["projects"]]
    assert "secret" in [one["name"] for one in scene.ask("GET", "/projects", "admin").json()["projects"]]


def test_a_maintainer_changes_who_is_in_a_project_and_a_member_does_not(scene: KeyScene) -> None:
    scene.ask("POST", "/projects", "admin", body={"name": "words"})
    scene.ask("POST", "/projects/words/members/ann", "admin", body={"role": "maintainer"})
    scene.ask("POST", "/projects/words/members/paul", "ann", body={"role": "member"})
    for path, body in ("/members/paul", {"role": "maintainer"}), ("", {"open": True}), ("/members/ann/remove", None):
        assert scene.ask("POST", f"/projects/words{path}", "paul", body=body).status_code == 403, path
    assert scene.ask("POST", "/projects/words/members/nobody", "ann", body={"role": "member"}).status_code == 404
    opened = scene.ask("POST", "/projects/words", "ann", body={"open": True}).json()
    assert (opened["open"], [one["user"] for one in opened["members"]]) == (True, ["ann", "paul"])
    scene.add_user("bob")
    assert scene.ask("GET", "/whoami", "bob").json()["projects"] == [{"project": "words", "role": "viewer"}]
    left = scene.ask("POST", "/projects/words/members/paul/remove", "paul").json()
    assert [one["user"] for one in left["members"]] == ["ann"]
    assert scene.ask("POST", "/projects/words/remove", "ann").status_code == 403
    assert scene.ask("POST", "/projects/words/remove", "admin").status_code == 200
    assert scene.ask("GET", "/projects/words", "admin").status_code == 404


def test_lists_of_other_users_name_them_and_ids_with_users_work_in_commands(
    scene: KeyScene, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    experiments = scene.application.services.stores.experiments
    scene.add_user("eve")
    first = submit(experiments, user="eve")
    second = submit(experiments, user="eve")

    def call(user: str, *words: str) -> tuple[int, str, str]:
        environ = {"RISEML_HOME": str(tmp_path), "RISEML_SERVER": scene.url, "RISEML_API_KEY": scene.keys[user]}
        code = execute(words, CommandContext(make_printer(environ), environ, tmp_path))
        return code, *capsys.readouterr()

    for words in (".eve",), ("eve",), ("eve", "-n", "0"), (".eve", "-a"):
        code, out, err = call("admin", "status", *words)
        assert (code, err) == (0, "")
        assert [line.split()[0] for line in out.splitlines()[1:]] == [f"eve.{one.number}" for one in (first, second)]
    assert "eve.1" in call("admin", "status", "-u")[1]
    assert "eve." not in call("ann", "status", "-u")[1]
    assert "No experiment is running" in call("ann", "status", ".eve")[1]
    code, _, err = call("ann", "status", "eve")
    assert (code, err.splitlines()[0]) == (
        2,
        "error: 'eve' is not an experiment ID, and no experiment has this name or tag",
    )
    identity = f"eve.{first.number}"
    for verb in ("show",), ("logs", "--no-follow"), ("tfconfig",):
        for shown in identity, f"{identity}.worker.1":
            assert call("admin", *verb, shown)[0] == 0, verb
        foreign = call("ann", *verb, identity)
        absent = call("ann", *verb, "eve.999")
        assert foreign[0] == 3
        assert foreign[2].replace(identity, "eve.999") == absent[2]
    assert call("admin", "show", identity)[1].startswith(f"ID: {identity}\n"), "an ID with which commands go on"
    assert f"eve.{first.number}.worker.1" in call("admin", "show", identity)[1]
    assert call("eve", "show", identity)[1].startswith(f"ID: {first.number}\n"), "one's own needs no user"
    assert f"Output: output://{identity}\n" in call("admin", "show", identity)[1], "what `riseml cp` takes"
    assert "names nothing" in call("admin", "ls", f"output://eve/toaster/{first.number}")[2]
    assert f"experiment {identity} is not of eve/x" in call("admin", "ls", f"output://eve/x/{first.number}")[2]
    assert f"there is no experiment {identity}" in call("ann", "ls", f"output://eve/toaster/{first.number}")[2]
    own = str(submit(experiments, user="admin").number)
    for word in "results", "compare":
        code, out, err = call("admin", word, own, identity)
        assert (code, err) == (0, "")
        assert {own, identity} <= set(out.split()), "experiments of two users side by side"
    newest = call("admin", "status", "-u", "-n", "2")[1].splitlines()[1:]
    assert [line.split()[0] for line in newest if line.startswith(("eve", "admin"))] == [
        f"eve.{second.number}",
        f"admin.{own}",
    ]
    assert call("eve", "kill", "--force", f"eve.{second.number}")[0] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("status .Paul", "'Paul' is not a name for a user"),
        ("status .", "'' is not a name for a user"),
        ("status .paul.4", "'paul.4' is not a name for a user"),
        ("status .paul -u", "one user and all users contradict each other"),
        ("status 4 -u", "--all-users is for the list of experiments"),
        ("status --capsule -u", "--all-users is for the list of experiments"),
    ],
)
def test_wrong_words_about_users_are_said(
    scene: KeyScene, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, sentence: str
) -> None:
    environ = {"RISEML_HOME": str(tmp_path), "RISEML_SERVER": scene.url, "RISEML_API_KEY": scene.keys["paul"]}
    assert execute(words.split(), CommandContext(make_printer(environ), environ, tmp_path)) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")
