"""Project folders: found, listed, packed."""

from __future__ import annotations

import io
import os
import shutil
import socket
import stat
import subprocess
import tarfile
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riseml.errors import NotFound, UsageError
from riseml.project import collect, find_name, find_project, format_size, list_files, pack, read_config, take_snapshot

NAMES = (
    st.binary(min_size=1, max_size=40)
    .map(lambda raw: raw.replace(b"/", b"_").replace(b"\0", b"_"))
    .filter(lambda raw: raw not in (b".", b"..", b".git", b".gitignore", b".risemlignore"))
)


def _paths(folder: Path) -> list[str]:
    return [item.path for item in collect(folder)]


def _tar(folder: Path) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(b"".join(pack(take_snapshot(list_files(folder))))), errors="surrogateescape")


def _fill(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


def test_a_project_is_found_by_its_file_or_its_folder(tmp_path: Path) -> None:
    _fill(tmp_path, "riseml.yml", "sub/other.yml", "sub/riseml.yml")
    assert find_project(tmp_path).file == tmp_path / "riseml.yml"
    assert find_project(tmp_path, Path("sub/other.yml")).folder == tmp_path / "sub"
    assert find_project(tmp_path, Path("sub")).file == tmp_path / "sub" / "riseml.yml"


def test_a_missing_project_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(NotFound) as raised:
        find_project(tmp_path / "a" / "b")
    assert "riseml init" in (raised.value.hint or "")
    _fill(tmp_path, "riseml.yml")
    with pytest.raises(NotFound) as raised:
        find_project(tmp_path / "a" / "b")
    assert "`cd ../..`" in (raised.value.hint or "")
    with pytest.raises(NotFound, match=r"no file gone\.yml"):
        find_project(tmp_path, Path("gone.yml"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("project: a-b_c.d\n", "a-b_c.d"),
        ("# x\n\nproject:   'toast'  # mine\r\ntrain:\n", "toast"),
        ('train:\n  run: |\n    project: no\nproject: "yes"\n', "yes"),
    ],
)
def test_the_name_is_found_without_the_rest(text: str, name: str) -> None:
    assert find_name(text) == name


@pytest.mark.parametrize("text", ["", "train: {}\n", "project: a\nproject: b\n", "project: [a]\n", "{project: a}\n"])
def test_a_name_that_is_not_plain_is_left_to_yaml(text: str) -> None:
    assert find_name(text) is None


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "riseml.yml").write_bytes(b"project: a\n# \xff\n")
    with pytest.raises(UsageError, match=r"riseml\.yml:2: this is not UTF-8"):
        read_config(find_project(tmp_path))


def test_git_stays_out_and_ignored_files_too(tmp_path: Path) -> None:
    _fill(tmp_path, ".git/config", "sub/.git", "a.py", "b.pyc", "data/x", "sub/c.py", "sub/keep.pyc", "sub/raw/y")
    (tmp_path / ".gitignore").write_text("*.pyc\n/data\n")
    (tmp_path / ".risemlignore").write_text("raw/\n")
    (tmp_path / "sub" / ".gitignore").write_text("!keep.pyc\n")
    assert _paths(tmp_path) == [".gitignore", ".risemlignore", "a.py", "sub/.gitignore", "sub/c.py", "sub/keep.pyc"]


def test_the_rules_of_the_repository_above_count(tmp_path: Path) -> None:
    _fill(tmp_path, ".git/HEAD", "p/a.py", "p/a.log", "p/sub/out/x")
    (tmp_path / ".gitignore").write_text("*.log\np/sub/out\n")
    assert _paths(tmp_path / "p") == ["a.py"]


def test_a_project_that_git_ignores_as_a_whole_is_sent_all_the_same(tmp_path: Path) -> None:
    _fill(tmp_path, ".git/HEAD", "p/a.py", "p/b.log")
    (tmp_path / ".gitignore").write_text("p\n*.log\n")
    assert _paths(tmp_path / "p") == ["a.py", "b.log"]


def test_rules_above_end_at_the_repository(tmp_path: Path) -> None:
    _fill(tmp_path, "repo/.git/HEAD", "repo/a.py")
    (tmp_path / ".gitignore").write_text("*\n")
    assert _paths(tmp_path / "repo") == ["a.py"]


TREES = {
    "negations": (
        "*.o\n/out/\n!keep/*.o\nb/*\n!b/e\n",
        ["a.py", "b/c.o", "b/d.py", "b/e/f.o", "b/e/g", "out/x", "b/out/y", "keep/z.o", "k.o"],
    ),
    "only some kinds of files": ("*\n!*/\n!*.py\n", ["a.py", "a.txt", "p/b.py", "p/q/c.py", "p/d.bin"]),
    "only one folder": ("/*\n!/src\n", ["x", "src/a.py", "src/d/b.py", "other/y"]),
    "a path to one file": (
        "*\n!/models/\n!/models/best/\n!/models/best/*.h5\n",
        ["models/best/a.h5", "models/best/b.txt", "models/c.h5", "d.h5"],
    ),
    "folders kept, their content not": (
        "logs/**\n!logs/**/\n!logs/**/.gitkeep\n",
        ["logs/.gitkeep", "logs/a/.gitkeep", "logs/a/b.log", "logs/x.log"],
    ),
    "nothing comes back from an ignored folder": (
        "secrets\n!*.json\n",
        ["secrets/a.json", "p/secrets/b/c.json", "d.json"],
    ),
    "classes of characters": ("run[[:digit:]]\nckpt-[0-9]*\n", ["run1/x", "runs/x", "ckpt-12.data", "ckpt-a"]),
}


@pytest.mark.parametrize("name", TREES)
def test_a_whole_tree_is_what_git_would_add(tmp_path: Path, name: str) -> None:
    rules, paths = TREES[name]
    _fill(tmp_path, *paths)
    (tmp_path / ".gitignore").write_text(rules)
    git = ["git", "-C", str(tmp_path), "-c", "core.excludesFile=/dev/null"]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run([*git, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True)
    found = [item.path for item in collect(tmp_path) if item.kind != "folder"]
    assert found == sorted(listed.stdout.splitlines())


def test_links_inside_are_kept_as_links(tmp_path: Path) -> None:
    _fill(tmp_path, "data/x", "sub/y")
    (tmp_path / "sub" / "link").symlink_to("../data/x")
    (tmp_path / "folder").symlink_to("data")
    (tmp_path / "nowhere").symlink_to("gone")
    with _tar(tmp_path) as tar:
        links = {member.name: member.linkname for member in tar if member.issym()}
    assert links == {"sub/link": "../data/x", "folder": "data", "nowhere": "gone"}


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../x", "sub/../../x", "up/x"])
def test_links_that_leave_are_refused_by_name(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "p"
    _fill(folder, "sub/a")
    (folder / "bad").symlink_to(target)
    if target.startswith("up"):
        (folder / "up").symlink_to("../elsewhere")
    with pytest.raises(UsageError, match=r"bad \(a link to .*outside the project"):
        collect(folder)


def test_what_cannot_be_sent_is_named_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
    for number in range(9):
        (tmp_path / f"link{number}").symlink_to("/etc")
    with pytest.raises(UsageError) as raised:
        collect(tmp_path)
    assert "door (a socket)" in raised.value.message
    assert "and 6 more" in raised.value.message
    (tmp_path / ".risemlignore").write_text("pipe\ndoor\nlink*\n")
    assert _paths(tmp_path) == [".risemlignore"]


def test_a_link_in_a_loop_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert _paths(tmp_path) == ["a", "b"]


def test_empty_folders_go_along(tmp_path: Path) -> None:
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    _fill(tmp_path, "emptied/x.o")
    (tmp_path / ".gitignore").write_text("*.o\n")
    assert _paths(tmp_path) == [".gitignore", "logs/deep"]
    assert take_snapshot(list_files(tmp_path)).count == 1


def test_the_tar_is_the_project(tmp_path: Path) -> None:
    _fill(tmp_path, "a.py", "sub/deep/b.py")
    (tmp_path / "run.sh").write_bytes(b"x" * 700_001)
    (tmp_path / "run.sh").chmod(0o700)
    (tmp_path / "zero").touch()
    os.utime(tmp_path / "a.py", (1, 1_700_000_000))
    with _tar(tmp_path) as tar:
        members = {member.name: member for member in tar}
        assert list(members) == ["a.py", "run.sh", "sub/deep/b.py", "zero"]
        extracted = tar.extractfile("run.sh")
        assert extracted is not None
        assert extracted.read() == b"x" * 700_001
    assert [stat.S_IMODE(members[name].mode) for name in ("a.py", "run.sh")] == [0o644, 0o755]
    assert {(member.uid, member.gid) for member in members.values()} == {(0, 0)}
    assert members["a.py"].mtime == 1_700_000_000


@given(names=st.sets(NAMES, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_survives(tmp_path_factory: pytest.TempPathFactory, names: set[bytes]) -> None:
    folder = os.fsencode(tmp_path_factory.mktemp("names"))
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(name)
    with _tar(Path(os.fsdecode(folder))) as tar:
        assert [os.fsencode(name) for name in tar.getnames()] == sorted(names)


def test_a_long_path_survives(tmp_path: Path) -> None:
    path = "/".join(["d" * 100] * 5) + "/" + "f" * 200
    _fill(tmp_path, path)
    with _tar(tmp_path) as tar:
        assert tar.getnames() == [path]


def test_the_digest_names_the_content(tmp_path: Path) -> None:
    _fill(tmp_path, "a", "b")
    (tmp_path / "link").symlink_to("a")
    digests = [take_snapshot(list_files(tmp_path)).digest]

    def changed() -> bool:
        digests.append(take_snapshot(list_files(tmp_path)).digest)
        return digests[-1] not in digests[:-1]

    os.utime(tmp_path / "a", (5, 5))
    (tmp_path / "b").chmod(0o600)
    assert not changed()
    (tmp_path / "b").chmod(0o755)
    assert changed()
    (tmp_path / "a").write_text("other")
    assert changed()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("b")
    assert changed()
    (tmp_path / "a").rename(tmp_path / "c")
    assert changed()
    (tmp_path / "empty").mkdir()
    assert changed()


@pytest.mark.parametrize("content", ["longer than before", "x", "aB"])
def test_a_file_that_changes_under_our_hands_is_noticed(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").write_text("ab")
    snapshot = take_snapshot(list_files(tmp_path))
    (tmp_path / "a").write_text(content)
    with pytest.raises(UsageError, match="a changed while"):
        list(pack(snapshot))


def test_a_file_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ab")
    snapshot = take_snapshot(list_files(tmp_path))
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="a changed while"):
        list(pack(snapshot))


def test_too_much_is_told_before_anything_is_read(tmp_path: Path) -> None:
    for number in range(7):
        with open(tmp_path / f"big{number}", "wb") as file:
            file.truncate((number + 1) * 2**20)
    with pytest.raises(UsageError) as raised:
        list_files(tmp_path, limit=2**20)
    assert "nothing was sent" in raised.value.message
    assert "big6 (7.3 MB), big5" in raised.value.message
    assert "big1" not in raised.value.message
    assert "RISEML_SYNC_LIMIT" in (raised.value.hint or "")


def test_a_large_file_never_sits_in_memory(tmp_path: Path) -> None:
    with open(tmp_path / "big", "wb") as file:
        file.truncate(64 * 2**20)
    tracemalloc.start()
    try:
        total = sum(len(piece) for piece in pack(take_snapshot(list_files(tmp_path))))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total > 64 * 2**20
    assert peak < 8 * 2**20


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (5_700_000, "5.7 MB"), (999_960, "1.0 MB"), (3e12, "3.0 TB")],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert format_size(size) == text


def test_files_that_nobody_may_read_are_all_named(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="riseml-test-"))
    try:
        folder.chmod(0o755)
        _fill(folder, "a.py", "keys/b.pem", "c.key")
        for name in ("keys/b.pem", "c.key"):
            (folder / name).chmod(0o000)
        with (
            as_somebody(),
            pytest.raises(UsageError, match=r"c\.key \(Permission denied\), keys/b\.pem \(Permission denied\)"),
        ):
            list_files(folder)
    finally:
        shutil.rmtree(folder)


@contextmanager
def as_somebody() -> Iterator[None]:
    """Root may read everything, so that the test is somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("end", ["removed", "a folder", "a link", "a socket", "shorter", "longer", "other"])
def test_a_file_that_becomes_something_else_is_named(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 1000)
    listing = list_files(tmp_path)
    snapshot = take_snapshot(listing)
    path.unlink()
    match end:
        case "a folder":
            path.mkdir()
        case "a link":
            (tmp_path.parent / "outside").write_bytes(b"x" * 1000)
            path.symlink_to("../outside")
        case "a socket":
            _bind(path)
        case "shorter" | "longer" | "other":
            path.write_bytes(b"y" * {"shorter": 10, "longer": 2000, "other": 1000}[end])
    with pytest.raises(UsageError, match=r"a\.bin changed while the project was being synced") as raised:
        b"".join(pack(snapshot))
    assert raised.value.hint == "run the command again"
    if end != "other":
        with pytest.raises(UsageError, match=r"a\.bin changed"):
            take_snapshot(listing)


def _bind(path: Path) -> None:
    """A socket at a path that may be too long for one."""
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(path.name)
    finally:
        os.chdir(here)


def test_a_path_that_the_system_cannot_name_is_refused(tmp_path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    os.chdir(tmp_path)
    try:
        for _ in range(25):  # 25 x 200 bytes are more than a path may have
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        Path("x").touch()
        with pytest.raises(UsageError, match="File name too long"):
            list_files(tmp_path)
    finally:
        os.fchdir(here)
        os.close(here)


def test_a_name_of_255_bytes_and_a_leading_dash(tmp_path: Path) -> None:
    _fill(tmp_path, "n" * 255, "-rf", "--help", " ", "a\nb", "\t", "*", "'\"$(id)`")
    with _tar(tmp_path) as tar:
        assert sorted(tar.getnames()) == sorted(_paths(tmp_path))
        assert len(tar.getnames()) == 8
