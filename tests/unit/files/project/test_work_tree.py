"""What travels is what git would carry: files that it tracks, without those that it ignores for the user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.files.archives.entries import EntryKind
from riseml.files.project.git_config import find_last, parse_config
from riseml.files.project.git_files import find_repository
from riseml.files.project.git_index import LazyIndex
from riseml.files.project.git_state import ask_git
from riseml.files.project.index_parser import BadIndex, parse_index
from riseml.files.project.listing import Listing, ReservedName, Surroundings, list_project_files
from tests.unit.files.project.builders import fill_folder, list_paths

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0123456789abcdef" * 4 + "\nsize 12345678\n"
LONG_POINTER = POINTER.replace(
    "oid", "ext-0-crypt sha256:{0}\next-1-zip sha256:{0}\noid".format("0123456789abcdef" * 4)
)


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout


def commit_all(folder: Path, *words: str) -> Path:
    """Make a repository of a folder, whose files git tracks although a rule ignores them."""
    git(folder, "init", "-q", *words)
    git(folder, "add", "-Af")
    git(folder, "commit", "-qm", "one")
    return folder


def list_files(folder: Path, around: Surroundings | None = None) -> list[str]:
    found = list_project_files(folder, around=around)
    return [entry.path for entry in found.entries if entry.kind is not EntryKind.FOLDER]


def is_clean(folder: Path) -> bool | None:
    question = ask_git(folder, os.environ)
    assert question is not None
    return question.read_answer()


def tell_incomplete(found: Listing) -> list[str]:
    return [f"{part.message}: {part.hint}" for part in found.incomplete]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository with files that git tracks although rules ignore them, and with files that it ignores."""
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "x.train", "data/one.bin", "data/deep/two.bin", "docs/x.train", "out/kept.txt")
    (folder / ".gitignore").write_text("*.train\ndata/\nout\n.venv\n__pycache__\n")
    commit_all(folder)
    fill_folder(folder, "y.train", "data/new.bin", "data/deep/new.bin", "data/empty/x.train", ".venv/b.py", "new.py")
    return folder


TRACKED = [".gitignore", "a.py", "data/deep/two.bin", "data/one.bin", "docs/x.train", "out/kept.txt", "x.train"]


@pytest.mark.parametrize("kind", ["index.version=2", "index.version=4", "core.splitIndex=true"])
def test_files_that_git_tracks_travel_although_a_rule_ignores_them(project: Path, kind: str) -> None:
    git(project, "config", *kind.split("="))
    fill_folder(project, "more.train", "data/more.bin", "libs/b.train")
    git(project, "add", "-f", "more.train", "data/more.bin", "libs/b.train")
    if kind == "core.splitIndex=true":
        git(project, "update-index", "--split-index")
        git(project, "rm", "-q", "--cached", "data/more.bin", "docs/x.train")
        git(project, "update-index", "--chmod=+x", "x.train")
        assert list((project / ".git").glob("sharedindex.*"))
    else:
        git(project, "update-index", "--force-write-index")
    expected = git(project, "ls-files", "-z").split("\0")[:-1]
    assert list_files(project) == sorted({*expected, "new.py"})
    assert list_files(project / "libs") == ["b.train"], "as a project in a folder of the repository"


def test_the_index_says_the_same_however_it_is_asked(project: Path) -> None:
    data = (project / ".git" / "index").read_bytes()
    for path, answer in {b"x.train": True, b"y.train": False, b"data": True, b"dat": False, b"train": False}.items():
        assert LazyIndex(data, 20, lambda _: b"").tracks(path, is_folder=True) is answer
        assert parse_index(data, 20, lambda _: b"").tracks(path, is_folder=True) is answer
    index = LazyIndex(data, 20, lambda _: b"")
    assert not index.tracks(b"data", is_folder=False), "a file in the place of a folder"
    assert [index.tracks(b"none%d" % number, is_folder=False) for number in range(50)] == [False] * 50


def test_repositories_with_sha_256_and_work_trees_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "b.train")
    (folder / ".gitignore").write_text("*.train\n")
    commit_all(folder, "--object-format=sha256")
    git(folder, "worktree", "add", "-q", "../other")
    fill_folder(tmp_path / "other", "new.train", "ours.txt")
    (folder / ".git" / "info" / "exclude").write_text("ours.txt\n")
    for place in (folder, tmp_path / "other"):
        assert list_files(place) == [".gitignore", "a.py", "b.train"]
        assert is_clean(place) is True


def test_a_sparse_checkout_names_nothing_that_it_leaves_out(tmp_path: Path) -> None:
    fill_folder(tmp_path / "part", "p.py")
    commit_all(tmp_path / "part")
    folder = tmp_path / "project"
    fill_folder(folder, "src/a.py", "src/b.train", "far/c.py")
    (folder / ".gitignore").write_text("*.train\n")
    commit_all(folder)
    git(folder, "submodule", "add", "-q", str(tmp_path / "part"), "far/part")
    git(folder, "commit", "-qm", "two")
    git(folder, "submodule", "deinit", "-q", "-f", "far/part")
    git(folder, "sparse-checkout", "set", "--cone", "--sparse-index", "src")
    found = list_project_files(folder)
    assert [entry.path for entry in found.entries] == [".gitignore", ".gitmodules", "src/a.py", "src/b.train"]
    assert found.incomplete == ()


def test_risemlignore_leaves_out_what_git_tracks(project: Path) -> None:
    (project / ".risemlignore").write_text("/x.train\ndata/deep\n")
    fill_folder(project, "data/.risemlignore")
    (project / "data" / ".risemlignore").write_text("one.bin\n")
    left = [path for path in TRACKED if path not in ("x.train", "data/deep/two.bin", "data/one.bin")]
    assert list_files(project) == sorted([*left, ".risemlignore", "new.py"])
    (project / ".risemlignore").write_text("!y.train\n")
    assert "y.train" in list_files(project)


def test_a_file_that_git_tracks_no_more_is_ignored_again(project: Path) -> None:
    git(project, "rm", "-q", "--cached", "x.train", "-r", "data")
    assert list_files(project) == sorted([*TRACKED[:2], "docs/x.train", "out/kept.txt", "new.py"])


def test_a_damaged_index_is_named_and_tracks_nothing(project: Path) -> None:
    data = (project / ".git" / "index").read_bytes()
    for damaged in (b"DIRC" + data[4:8] + b"\xff" * 4 + data[12:], b"nothing", data[:4] + b"\0\0\0\x09"):
        (project / ".git" / "index").write_bytes(damaged)
        found = list_project_files(project)
        assert "x.train" not in [entry.path for entry in found.entries]
        assert found.left_out == (
            "git's index cannot be read: files that git tracks although a rule excludes them are not sent",
        )


def test_an_index_whose_names_grow_without_end_is_refused() -> None:
    entry = bytes(26) + b"\x81\xa4" + bytes(12 + 20) + b"\0\0"
    long = b"DIRC\0\0\0\4" + (2).to_bytes(4, "big") + entry + b"\0" + b"a" * 5000 + b"\0" + entry + b"\0b\0" + bytes(20)
    with pytest.raises(BadIndex, match="too long"):
        parse_index(long, 20, lambda _: b"")


def test_what_git_ignores_for_the_user_stays_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "project"
    fill_folder(folder, "a.py", "token.txt", "b.key", "c.swp", "d.tmp", "sub/e.py", "sub/token.txt", "sub/b.key")
    commit_all(folder)
    git(folder, "rm", "-q", "--cached", "-r", ".")
    (folder / ".git" / "info" / "exclude").write_text("token.txt\n/sub/e.py\n")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    fill_folder(home, "xdg/git/ignore", ".gitconfig", "more", "mine", "theirs")
    (home / "xdg" / "git" / "ignore").write_text("*.key\n")
    (home / ".gitconfig").write_text("[user]\n")
    assert list_files(folder) == ["a.py", "c.swp", "d.tmp"], "git's default for core.excludesFile"
    assert list_files(folder / "sub") == [], "a project in a folder of the repository"
    (home / ".gitconfig").write_text("[include] path = more\n")
    (home / "more").write_text("[core]\n\texcludesFile = ~/mine # of all\n")
    (home / "mine").write_text("*.swp\n!token.txt\n")
    assert list_files(folder) == ["a.py", "b.key", "d.tmp", "sub/b.key"], "the repository's rules come after the user's"
    (home / ".gitconfig").write_text(f'[includeIf "gitdir:{tmp_path}/*/"]\n\tpath = "~/more"\n')
    assert list_files(folder) == ["a.py", "b.key", "d.tmp", "sub/b.key"]
    (home / ".gitconfig").write_text('[includeIf "gitdir:/elsewhere/"]\n\tpath = ~/more\n')
    assert "c.swp" in list_files(folder)
    git(folder, "config", "core.excludesFile", str(home / "theirs"))
    (home / "theirs").write_text("*.tmp\n")
    assert list_files(folder) == ["a.py", "b.key", "c.swp", "sub/b.key"]
    listed = git(folder, "ls-files", "-co", "--exclude-standard")
    assert list_files(folder) == sorted(listed.splitlines())
    git(folder, "worktree", "add", "-q", "-f", "../other")
    fill_folder(tmp_path / "other", "token.txt", "x.tmp")
    git(tmp_path / "other", "rm", "-q", "--cached", "-r", ".")
    assert list_files(tmp_path / "other") == ["a.py", "b.key", "c.swp", "sub/b.key"], "info/exclude is that of all"


def test_settings_that_git_includes_under_a_condition_count_when_it_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "Project"
    fill_folder(folder, "a.py", "b.key")
    git(folder, "init", "-q", "-b", "topic/one")
    git(folder, "remote", "add", "origin", "https://example.org/lab/x.git")
    fill_folder(home, ".gitconfig", "mine")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.setenv("HOME", str(home))
    (home / "mine").write_text("*.key\n")
    (home / "more").write_text("[core]\n\texcludesFile = ~/mine\n")
    conditions = {
        f"gitdir:{tmp_path}/Project/": True,
        f"gitdir:{tmp_path}/project/": False,
        f"gitdir/i:{tmp_path}/project/": True,
        "gitdir:Project/": True,
        "gitdir:./../Project/": False,
        "onbranch:topic/": True,
        "onbranch:topic/*": True,
        "onbranch:*": False,
        "onbranch:one": False,
        "hasconfig:remote.*.url:https://example.org/lab/**": True,
        "hasconfig:remote.*.url:https://example.org/*": False,
        "hasconfig:remote.*.url:https://*/lab/?.git": True,
        "hasconfig:remote.*.pushurl:**": False,
        "unknown:x": False,
    }
    for condition, is_met in conditions.items():
        (home / ".gitconfig").write_text(f'[includeIf "{condition}"]\n\tpath = more\n')
        listed = git(folder, "ls-files", "-co", "--exclude-standard").split()
        assert (list_files(folder), condition) == (sorted(listed), condition)
        assert ("b.key" not in listed) is is_met, condition
    (home / ".gitconfig").write_text("")
    for index, (name, value) in enumerate({"Core.ExcludesFile": "~/mine"}.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{index}", name)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{index}", value)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    assert list_files(folder) == ["a.py"]
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "includeIf.onbranch:topic/One.path")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(home / "more"))
    assert list_files(folder) == ["a.py", "b.key"]
    git(folder, "branch", "-m", "topic/One")
    assert list_files(folder) == ["a.py"]


def test_a_clean_project_stays_clean_with_files_that_git_ignores_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    fill_folder(folder, "a.py")
    commit_all(folder)
    fill_folder(tmp_path, "home/git/ignore", "project/b.key")
    assert is_clean(folder) is False
    (tmp_path / "home" / "git" / "ignore").write_text("*.key\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    assert is_clean(folder) is True
    git(folder, "update-index", "--split-index")
    assert is_clean(folder) is True
    git(folder, "update-index", "--assume-unchanged", "a.py")
    (folder / "a.py").write_text("changed\n")
    assert is_clean(folder) is None, "git status says nothing of such a file"


def test_submodules_that_are_not_checked_out_are_named_with_the_command(tmp_path: Path) -> None:
    fill_folder(tmp_path / "deep", "d.py")
    commit_all(tmp_path / "deep")
    fill_folder(tmp_path / "part", "p.py", "ours.train")
    (tmp_path / "part" / ".gitignore").write_text("*.train\n")
    commit_all(tmp_path / "part")
    git(tmp_path / "part", "submodule", "add", "-q", str(tmp_path / "deep"), "inner")
    git(tmp_path / "part", "commit", "-qm", "two")
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "sub/b.py")
    commit_all(folder)
    git(folder, "submodule", "add", "-q", str(tmp_path / "part"), "sub/libs/my part")
    git(folder, "commit", "-qm", "two")
    found = list_project_files(folder)
    assert tell_incomplete(found) == [
        "sub/libs/my part/inner is a submodule that is not checked out, so the jobs do not get its files: check it out"
        " with `git -C 'sub/libs/my part' submodule update --init inner`"
    ]
    assert "sub/libs/my part/ours.train" in [entry.path for entry in found.entries], "its own index counts"
    assert is_clean(folder) is False
    git(folder, "submodule", "update", "--init", "--recursive", "-q")
    assert list_project_files(folder).incomplete == ()
    assert is_clean(folder) is True
    (folder / "sub/libs/my part/p.py").write_text("changed\n")
    assert is_clean(folder) is False
    git(folder / "sub/libs/my part", "commit", "-qam", "three")
    assert is_clean(folder) is False, "it is at another commit"

    git(folder, "worktree", "add", "-q", "../other")
    [told] = tell_incomplete(list_project_files(tmp_path / "other"))
    assert told.endswith("check it out with `git submodule update --init 'sub/libs/my part'`")
    assert is_clean(tmp_path / "other") is False
    (tmp_path / "other/sub/libs/my part").rmdir()
    [told] = tell_incomplete(list_project_files(tmp_path / "other" / "sub"))
    assert told.endswith("`git submodule update --init 'libs/my part'`"), "a folder that is gone, from the project"
    (tmp_path / "other" / "sub" / ".risemlignore").write_text("libs\n")
    assert tell_incomplete(list_project_files(tmp_path / "other" / "sub")) == []


def test_pointers_of_git_lfs_are_named_with_the_command(tmp_path: Path) -> None:
    fill_folder(tmp_path, "a.py")
    (tmp_path / "weights.bin").write_text(POINTER)
    (tmp_path / "same size.txt").write_text("x" * len(POINTER))
    (tmp_path / "ignored.bin").write_text(POINTER)
    (tmp_path / ".risemlignore").write_text("ignored.bin\n")
    assert tell_incomplete(list_project_files(tmp_path)) == [
        "weights.bin is a pointer of Git LFS, so the jobs do not get what is behind: fetch it with `git lfs pull`"
    ]


def test_pointers_of_git_lfs_with_lines_of_extensions_are_named(tmp_path: Path) -> None:
    fill_folder(tmp_path, "sub/a.py")
    commit_all(tmp_path)
    (tmp_path / ".gitattributes").write_text('*.bin filter=lfs diff=lfs -text\n"my data/*" text filter=lfs\n')
    (tmp_path / "sub" / ".gitattributes").write_text("# one kind\nweights filter=lfs\n*.py text\n")
    fill_folder(tmp_path, "sub/weights", "sub/x.bin", "my data/x", "weights", "large.bin")
    for path in ("sub/weights", "sub/x.bin", "my data/x", "weights"):
        (tmp_path / path).write_text(LONG_POINTER)
    (tmp_path / "large.bin").write_text("x" * len(LONG_POINTER))
    [found] = list_project_files(tmp_path).incomplete
    assert found.paths == ("my data/x", "sub/weights", "sub/x.bin"), "no rule says that Git LFS keeps weights"
    [found] = list_project_files(tmp_path / "sub").incomplete
    assert found.paths == ("weights", "x.bin"), "a rule above the project counts"


def test_the_rules_above_a_project_that_is_a_link_are_those_of_its_repository(tmp_path: Path) -> None:
    fill_folder(tmp_path, "repository/a.py", "elsewhere/x.bin", "elsewhere/weights")
    commit_all(tmp_path / "repository")
    (tmp_path / "repository" / ".gitattributes").write_text("*.bin filter=lfs\n")
    (tmp_path / ".gitattributes").write_text("weights filter=lfs\n")
    for name in ("x.bin", "weights"):
        (tmp_path / "elsewhere" / name).write_text(LONG_POINTER)
    (tmp_path / "repository" / "link").symlink_to("../elsewhere")
    [found] = list_project_files(tmp_path / "repository" / "link").incomplete
    assert found.paths == ("x.bin",)


def test_attributes_that_are_a_pipe_with_a_writer_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_text(LONG_POINTER)
    os.mkfifo(tmp_path / ".gitattributes")
    writer = os.open(tmp_path / ".gitattributes", os.O_RDWR)
    try:
        assert list_project_files(tmp_path).incomplete == ()
    finally:
        os.close(writer)


def test_sockets_pipes_and_the_folders_of_riseml_stay_here(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "rm/home/riseml.db", ".riseml/output/4/x")
    os.mkfifo(folder / "pipe")
    commit_all(folder)
    git(folder, "rm", "-rq", "--cached", "rm", ".riseml")
    git(folder, "commit", "-qm", "two")
    homes = ("RISEML_HOME", folder / "rm" / "home"), ("RISEML_OUTPUT", folder / ".riseml")
    found = list_project_files(folder, around=Surroundings(os.environ, homes))
    assert [entry.path for entry in found.entries] == ["a.py"]
    assert found.left_out == (
        ".riseml is riseml's own folder (RISEML_OUTPUT), and is not sent",
        "rm/home is riseml's own folder (RISEML_HOME), and is not sent",
        "not sent, because git has only files and links: pipe (a named pipe)",
    )
    question = ask_git(folder, os.environ, ["rm/home", ".riseml"])
    assert question is not None
    assert question.read_answer() is True


@pytest.mark.parametrize("kind", ["file", "folder", "empty folder", "link"])
def test_the_name_of_riseml_s_own_folder_is_refused(tmp_path: Path, kind: str) -> None:
    fill_folder(tmp_path, "a.py", "sub/.riseml")
    place = tmp_path / ".riseml"
    if kind == "link":
        place.symlink_to("a.py")
    elif kind == "empty folder":
        place.mkdir()
    else:
        fill_folder(tmp_path, ".riseml" if kind == "file" else ".riseml/x")
    with pytest.raises(ReservedName, match=f"the project has a {kind.split()[-1]} named .riseml: that is the name"):
        list_project_files(tmp_path)
    (tmp_path / ".risemlignore").write_text("/.riseml\n")
    assert list_paths(tmp_path) == [".risemlignore", "a.py", "sub/.riseml"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[core]\n\texcludesFile = ~/x\n", "~/x"),
        ("[CORE] ExcludesFile=a b  ; mine\n", "a b"),
        ('[core]\nexcludesFile = "a # b " \\\n c\n', "a # b   c"),
        ('[core]\nexcludesFile = a\\\\b\\"c\n', 'a\\b"c'),
        ("[core]\nexcludesFile\n", "true"),
        ("[core]\nexcludesFile = a\n[core]\nexcludesFile = b\n", "b"),
        ('[core "x"]\nexcludesFile = a\n', None),
        ("[core\nexcludesFile = a\n", None),
        ("# [core]\nexcludesFile = a\n", None),
        ('[remote "]"]\n[core]\nexcludesFile = a\n', "a"),
        ("[core]\nexcludesFile =\n", ""),
    ],
)
def test_the_configuration_is_read_as_git_reads_it(tmp_path: Path, text: str, value: str | None) -> None:
    assert find_last(parse_config(text), "core.excludesfile") == value
    file = tmp_path / "config"
    file.write_text(text)
    asked = subprocess.run(
        ["git", "config", "-f", str(file), "--get", "core.excludesFile"], capture_output=True, text=True, check=False
    )
    if asked.returncode in (0, 1):  # git refuses a malformed file
        assert (asked.stdout[:-1] or "true" if asked.returncode == 0 and value else value) == value
        assert asked.returncode == (1 if value is None else 0)


@pytest.mark.timeout(20)
def test_a_hostile_repository_takes_no_time(tmp_path: Path) -> None:
    spaces = " " * 3000
    for text in (
        f"worktree{spaces}=\n",
        f"[core]\nworktree ={spaces}x{spaces}\n",
        "[" * 2**20,
        '[a "' * 2**18,
        "\\\n" * 2**19,
    ):
        own = tmp_path / "elsewhere"
        own.mkdir(exist_ok=True)
        (own / "config").write_text(text)
        (tmp_path / ".git").write_text(f"gitdir: {own}\n")
        assert find_repository(tmp_path) is None
    (tmp_path / ".git").unlink()
    fill_folder(tmp_path, ".git/HEAD", "a.py")
    os.symlink("/dev/zero", tmp_path / ".git" / "index")
    (tmp_path / ".git" / "config").write_text("[core]\nexcludesFile = /dev/zero\n[include]\npath = config\n")
    assert "a.py" in list_files(tmp_path)
    with open(tmp_path / "rules", "wb") as file:
        file.truncate(2**21)
    (tmp_path / ".git" / "config").write_text("[core]\nexcludesFile = rules\n")
    with pytest.raises(UsageError, match="1 MiB"):
        list_files(tmp_path)
