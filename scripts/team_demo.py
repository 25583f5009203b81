"""Show a team on two machines: an admin, two members and a viewer, and what each may do.

Usage: .venv/bin/python -m scripts.team_demo [EPOCHS]

`scripts/demo-team` brings the engine and the images first. Exit codes: 0, all was as said; 1, something was not.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import docker

from riseml.base.records import dataclass
from riseml.executors.docker import labels
from scripts.stage import NotAsSaidError, Person, Stage, find_commands
from tests.real.pool.engines import EngineHost, engine_hosts
from tests.support.hosts import Engine, remove_left
from tests.support.kernel import explain_missing_encryption
from tests.support.ports import find_free_port
from tests.support.rig import BASE
from tests.support.wheels import fetch_wheels

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "ai-toaster"
TENSORFLOW = "tensorflow/tensorflow:2.21.0"
EPOCHS = 3
_TERMINATED = 143  # the exit code of a program that SIGTERM has ended
LIMIT = 300  # seconds of one command
_LEAST_ACCURACY = 0.6  # after one epoch
SECRET = "hf_k2FvQ9demo+team/7Xw"  # of nobody: the demo searches for it everywhere
ENCODED = base64.b64encode(SECRET.encode()).decode()
SUM = hashlib.sha256(SECRET.encode()).hexdigest()

HELLO = f"""\
project: hello
train:
  image: {BASE}
  resources: {{cpus: 0.1, mem: 64MiB}}
  run: echo hello from uid $(id -u)
"""
PUBLISH = f"""\
project: publish
train:
  image: {BASE}
  resources: {{cpus: 0.1, mem: 64MiB}}
  env:
    HF_TOKEN: {{secret: hf}}
  run:
    - echo "the token is $HF_TOKEN"
    - printf %s "$HF_TOKEN" | base64
    - printf %s "$HF_TOKEN" | sha256sum
"""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who is on the stage."""

    alice: Person  # the admin, at the machine of the server
    paul: Person
    ann: Person
    vera: Person  # a viewer


def main() -> int:
    """Return 0 when everything was as said."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that it leaves nothing then, too
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else EPOCHS
    with engine_hosts(2) as hosts:
        return run_demo(hosts, os.environ["DOCKER_HOST"], Stage(sys.stdout, LIMIT), f"-p epochs={epochs}")


def run_demo(hosts: Sequence[EngineHost], engine: str, stage: Stage, options: str) -> int:
    """Show everything on two engines, and remove it again.

    Args:
        hosts: the two machines.
        engine: address of the one that has the images.
        stage: shows the commands.
        options: of each training, for `riseml train`.

    Returns:
        The exit code: 0, all was as said.
    """
    folder = Path(tempfile.mkdtemp(prefix="riseml-team-"))  # short: the path of a unix socket is
    try:
        with ExitStack() as stack:
            cast = _make_cast(folder)
            _provide_images(hosts, engine, (TENSORFLOW, BASE))
            stack.enter_context(_clean_hosts(hosts, folder))
            _show_team(stage, cast, folder, hosts, options)
        stage.note("\nEverything was as said, and nothing of it is left.")
    except NotAsSaidError as error:
        stage.note(f"\ndemo-team: {error}")
        return 1
    finally:
        shutil.rmtree(folder)
    return 0


def _show_team(stage: Stage, cast: Cast, folder: Path, hosts: Sequence[EngineHost], options: str) -> None:
    try:
        _start_server(stage, cast, folder, hosts)
        _make_users(stage, cast, folder)
        _train_together(stage, cast, options)
        _use_secret(stage, cast, folder)
        _keep_apart(stage, cast)
        stage.say("What was done", "Every change and every refusal has a line, and no line can change unseen.")
        stage.type_line(cast.alice, "riseml audit -n 12", r"vera .*refused|refused .*vera")
        stage.type_line(cast.alice, "riseml audit verify", "lines")
    finally:
        stage.say("The end", "Jobs would go on while no server runs; here nothing runs any more.")
        stage.type_line(cast.alice, "riseml server stop")


def _start_server(stage: Stage, cast: Cast, folder: Path, hosts: Sequence[EngineHost]) -> None:
    port = find_free_port()
    stage.say("A server for a team", "Alice makes it on one machine. Its jobs run on two others, h1 and h2.")
    answer = stage.type_line(
        cast.alice, f"riseml server init --listen 127.0.0.1:{port} --name localhost --admin alice", "SHA256:"
    )
    _write_key(folder / "alice.key", answer)
    home = folder / "server"
    (home / "pool.yml").write_text(_describe_pool(hosts, folder))
    with (home / "server.yml").open("a") as file:
        # the engines of this demo are reached without TLS, on a network that ends in this machine
        file.write(f"allow: [plaintext]\nsecrets_key: {folder}/keys/secrets.key\n")
    (folder / "keys").mkdir(mode=0o700)
    stage.type_line(cast.alice, "cat server/pool.yml")
    stage.type_line(cast.alice, "riseml server start")
    fingerprint = _find(r"SHA256:\S+", stage.type_line(cast.alice, "riseml server fingerprint"))
    (folder / "address").write_text(f"https://localhost:{port}\n{fingerprint}")


def _make_users(stage: Stage, cast: Cast, folder: Path) -> None:
    url, fingerprint = (folder / "address").read_text().splitlines()
    stage.say("Users", "Paul and Ann are members: their jobs run under uids of their own. Vera may only look.")
    for person, words in ((cast.paul, "--uid 2001"), (cast.ann, "--uid 2002"), (cast.vera, "--role viewer")):
        answer = stage.type_line(cast.alice, f"riseml user create {person.name} {words}")
        _write_key(person.folder / "key", answer)
    for person in (cast.paul, cast.ann, cast.vera):
        stage.type_line(
            person, f"riseml login {url} --fingerprint {fingerprint} --key-file key", f"Logged in .* as {person.name}"
        )
    stage.type_line(cast.alice, "riseml quota set --user paul --running 1")


def _train_together(stage: Stage, cast: Cast, options: str) -> None:
    stage.say(
        "Both train at once",
        "The same project, as it is for a single user: a master, two workers and a parameter server each.",
    )
    for person in (cast.paul, cast.ann):
        stage.type_line(person, "riseml cp digits data://")
        stage.type_line(person, "riseml ls -r data://", r"digits/mnist_5k\.csv\.gz")
    for person in (cast.paul, cast.ann):
        stage.type_line(person, f"cd ai-toaster && riseml train -d {options}")
    stage.await_line(cast.paul, "riseml status 1 | head -3", "STARTING|RUNNING")  # it counts from its place on
    stage.say("A quota", "Paul may run one experiment at the same time. His second one waits.")
    _write_project(cast.paul, "hello", HELLO)
    stage.type_line(cast.paul, "cd hello && riseml train -d")
    stage.await_line(cast.paul, "riseml explain 2", "paul runs 1 of 1 experiments")
    stage.type_line(cast.alice, "riseml status -u", r"paul\.1 ", r"paul\.2 .*PENDING", r"ann\.1 ")
    stage.say("They learn", "Each follows the log of the own experiment to its end.")
    for person in (cast.paul, cast.ann):
        answer = stage.type_line(person, "riseml logs 1 | grep '^master'", r"test accuracy: 0\.\d+")
        accuracy = float(_find(r"test accuracy: (0\.\d+)", answer))
        if accuracy < _LEAST_ACCURACY:
            raise NotAsSaidError(f"{person.name} has learned {accuracy} of the digits, and not {_LEAST_ACCURACY}")
        stage.type_line(person, "riseml status 1 | head -3", "FINISHED")
    stage.say("The quota frees", "Paul's first experiment has ended, so that his second one runs.")
    stage.type_line(cast.paul, "riseml logs 2", "hello from uid 2001")


def _use_secret(stage: Stage, cast: Cast, folder: Path) -> None:
    stage.say("A secret", "Ann's job gets a token. It prints it, and nobody sees it.")
    (cast.ann.folder / "token.txt").write_text(SECRET)
    (folder / "forms").write_text(f"{SECRET}\n{ENCODED}\n")
    _write_project(cast.ann, "publish", PUBLISH)
    stage.type_line(cast.ann, "riseml secret set hf < token.txt")
    hidden = (SECRET, ENCODED)
    stage.type_line(cast.ann, "riseml secret list", "hf", absent=hidden)
    stage.type_line(cast.ann, "cat publish/riseml.yml", r"secret: hf")
    stage.type_line(cast.ann, "cd publish && riseml train", r"the token is \*\*\*", SUM, absent=hidden)
    if _find(r"[0-9a-f]{64}", stage.type_line(cast.ann, "sha256sum < token.txt")) != SUM:
        raise NotAsSaidError("the job had another token")
    stage.note("The job had the right token: the sums are the same.")
    stage.type_line(cast.ann, "riseml logs 2 --no-follow", absent=hidden)
    for words in ("show 2 --json", "show 2 --capsule --json", "env 2 --json", "secret list --json"):
        _search(stage, cast, f"riseml {words}")
    stage.type_line(cast.alice, "grep -rlFf forms server storage; echo exit code $?", "^exit code 1$")
    stage.note("Neither the database, logs, snapshots and capsules of the server, nor the outputs have it.")
    url = (folder / "address").read_text().splitlines()[0]
    (cast.ann.folder / "header").write_text(f"Authorization: Bearer {(cast.ann.folder / 'key').read_text()}")
    shutil.copy(folder / "server" / "authority" / "authority.pem", cast.ann.folder)
    for path in ("", "/logs", "/capsule", "/environment", "/events"):
        line = f"curl -sS --cacert authority.pem -H @header {url}/v1/experiments/2{path}"
        _search(stage, cast, line)
    stage.note("The page shows what these answers say.")


def _search(stage: Stage, cast: Cast, line: str) -> None:
    """Search the answer to a command of ann for the secret, as it is and in base64."""
    stage.type_line(cast.ann, f"{line} | tee answer | grep -cFf ../forms", "^0$", code=1)
    answer = (cast.ann.folder / "answer").read_text()
    if not answer or '"error"' in answer:
        raise NotAsSaidError(f"`{line}` has no answer that could be searched: {answer}")


def _keep_apart(stage: Stage, cast: Cast) -> None:
    stage.say("What is of others", "For Ann, experiments of Paul do not exist; for Vera, neither do those of both.")
    stage.type_line(cast.ann, "riseml logs paul.1", r"there is no experiment paul\.1", code=3)
    stage.type_line(cast.ann, "riseml cat output://paul.1/riseml-configuration.yml", "names nothing", code=3)
    stage.type_line(cast.ann, "riseml kill paul.1", r"there is no experiment paul\.1", code=3)
    stage.type_line(cast.vera, "riseml status -u -a", absent=("paul", "ann."))
    stage.type_line(cast.vera, "cd ai-toaster && riseml train", "viewer", code=4)
    stage.type_line(cast.vera, "riseml audit", code=4)


def _make_cast(folder: Path) -> Cast:
    """Make the terminals of all people, and the project and the data that they bring."""
    return Cast(*(_make_person(folder, name) for name in ("alice", "paul", "ann", "vera")))


def _make_person(folder: Path, name: str) -> Person:
    own = folder if name == "alice" else folder / name
    home = folder / "server" if name == "alice" else own / "home"
    own.mkdir(exist_ok=True)
    inherited = {key: os.environ[key] for key in ("LANG", "HOME") if key in os.environ}
    environ = {
        **inherited,
        "PATH": find_commands(),
        "RISEML_HOME": str(home),
        "COLUMNS": "120",
        "RISEML_EXECUTOR": "docker",
    }
    environ |= {"RISEML_OUTPUT": str(folder / "storage" / "output"), "RISEML_DATA": str(folder / "storage" / "data")}
    if name != "alice":
        _copy_project(own)
    return Person(name, own, environ)


def _write_project(person: Person, name: str, config: str) -> None:
    (person.folder / name).mkdir()
    (person.folder / name / "riseml.yml").write_text(config)


def _copy_project(folder: Path) -> None:
    """Copy the example and the packages that it installs: the machines of the demo reach no index."""
    shutil.copytree(EXAMPLE, folder / "ai-toaster", ignore=shutil.ignore_patterns("__pycache__"))
    required = folder / "ai-toaster" / "requirements.txt"
    packages = required.read_text().split()
    cache = _find_cache()
    fetch_wheels(cache / "wheels", *packages)
    shutil.copytree(cache / "wheels", folder / "ai-toaster" / "wheels")
    required.write_text("\n".join(["--no-index", "--find-links wheels", *packages, ""]))
    digits = cache / "data" / "digits"
    words = [sys.executable, str(EXAMPLE / "get_data.py"), str(digits)]
    download = subprocess.run(words, check=False, capture_output=True, text=True)
    if download.returncode != 0:
        raise NotAsSaidError(f"get_data.py brought no digits: {download.stderr.strip()}")
    shutil.copytree(digits, folder / "digits")


def _find_cache() -> Path:
    return Path(os.environ.get("RISEML_TEST_CACHE") or Path.home() / ".cache" / "riseml")


def _describe_pool(hosts: Sequence[EngineHost], folder: Path) -> str:
    storage = folder / "storage"
    for name in ("output", "data"):
        (storage / name).mkdir(parents=True)
    rows = [f"  - {{name: {host.name}, url: '{host.url}', insecure: true, cpus: 2, mem: 4GiB}}" for host in hosts]
    encrypted = "" if explain_missing_encryption() is None else "encrypted: false\n"
    return "\n".join(["hosts:", *rows, f"storage: {{output: {storage}/output, data: {storage}/data}}", encrypted])


def _provide_images(hosts: Sequence[EngineHost], engine: str, names: Sequence[str]) -> None:
    """Copy images from an engine to hosts that lack them."""
    for host in hosts:
        present = {tag for image in host.api.images() for tag in image["RepoTags"] or ()}
        for name in [name for name in names if name not in present]:
            with docker.APIClient(base_url=engine, version="auto", timeout=LIMIT) as source:
                host.api.load_image(source.get_image(name))


@contextmanager
def _clean_hosts(hosts: Sequence[EngineHost], folder: Path) -> Iterator[None]:
    """Remove what the server has left on the hosts: its environments, and what a demo that failed has there."""
    try:
        yield
    finally:
        identity = folder / "server" / "server.id"
        server = identity.read_text().strip() if identity.exists() else ""
        engines = [Engine(host.socket) for host in hosts]
        if server:
            remove_left(engines, server)
        for host in hosts:
            _remove_images(host.api, server)
        left = [name for engine in engines for name in (*engine.jobs(server), *engine.shared(server))] if server else []
        for engine in engines:
            engine.close()
    if left:
        raise NotAsSaidError(f"this is left on the hosts: {', '.join(left)}")


def _remove_images(api: docker.APIClient, server: str) -> None:
    for mark in (labels.SERVER, labels.STEP_SERVER):
        for row in api.images(filters={"label": f"{mark}={server}"}) if server else ():
            for name in row["RepoTags"] or ():
                api.remove_image(name, force=True)


def _write_key(file: Path, answer: str) -> None:
    file.write_text(_find(r"riseml_\w+", answer))
    file.chmod(0o600)


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise NotAsSaidError(f"an answer has no {pattern!r}")
    return match.group(match.re.groups and 1)


if __name__ == "__main__":
    sys.exit(main())
