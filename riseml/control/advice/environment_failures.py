"""Failures of the code's environment: commands, files, shared libraries, packages of pip and apt, images."""

from __future__ import annotations

import re

from riseml.control.advice.known_failure import KnownFailure
from riseml.control.advice.package_names import APT_COMMANDS, APT_LIBRARIES, PIP_COMMANDS
from riseml.job_programs.held_packages import HELD_NAMES
from riseml.job_programs.script_shell import NO_BASH

_HELD = rf"(?P<name>{HELD_NAMES})==(?P<version>[\w.+!]+)"
_NOT_FOUND_NAME = r"(?:line \d+: |sh: \d+: |(?:ba)?sh: )(?P<name>[\w.+-]+): (?:command )?not found"
_BASH_COMMAND = r"(?:source|\[\[|function|declare|typeset|let|shopt|pushd|popd|mapfile|readarray|[A-Za-z_]\w*\+=\S*)"
_COMMANDS = (
    _NOT_FOUND_NAME,
    r"exec: \"(?P<name>[\w.+-]+)\": executable file not found",
    r"Cannot find command '(?P<name>[\w+-]+)'",
    r"error: command '(?P<name>[\w+-]+)' failed: No such file",
    r"No such file or directory: '(?P<name>git|gcc|g\+\+|cmake|make|nvcc|ninja|unzip|ffmpeg)'",
)


ENVIRONMENT_FAILURES: tuple[KnownFailure, ...] = (
    KnownFailure(
        "apt-not-root",
        "apt needs root, and jobs do not run as root: move `apt-get install` from `train.run` to `train.install`,"
        " whose steps run as root in containers",
        patterns=(r"are you root\?", r"/var/lib/(?:dpkg|apt)/\S+ .*Permission denied"),
    ),
    KnownFailure(
        "horovod-alone",
        "no rank met the others: call `hvd.init()` in the script, and use an image whose Horovod was built with Gloo",
        patterns=(r"riseml: no process called hvd\.init\(\)",),
    ),
    KnownFailure(
        "apt-no-package",
        "apt does not know `{name}`: write `apt-get update && apt-get install -y {name}` as one step, and check the"
        " package's name for the distribution of the image",
        patterns=(
            r"E: Unable to locate package (?P<name>\S+)",
            r"E: Package '(?P<name>\S+)' has no installation candi",
        ),
    ),
    KnownFailure(
        "pip-no-version",
        "pip found no `{name}` for the image's Python, system and index: check the spelling and the version, and"
        " choose an image with the Python that this version needs",
        patterns=(r"No matching distribution found for (?P<name>[^\s(]+)",),
    ),
    KnownFailure(
        "pip-conflict",
        "the packages need versions that exclude each other: loosen the versions that `train.install` asks for",
        patterns=(r"ERROR: ResolutionImpossible|conflicting dependencies",),
    ),
    KnownFailure(
        "held-package",
        "install steps keep {name} {version}, which the image or the `version` of the framework brought, and something"
        " asks for another one: choose a package that fits it, name an image or a `version` with the other {name}, or"
        " begin the step with `PIP_CONSTRAINT= UV_CONSTRAINT=` to let it be replaced",
        patterns=(
            rf"The user requested \(constraint\) {_HELD}$",
            rf" and {_HELD}, we can conclude",  # uv names a constraint without `you require`
            rf"there is no version of {_HELD} and (?!you require)",
        ),
        explains="pip-conflict",
    ),
    KnownFailure(
        "pip-managed",
        "the image keeps pip away from its own Python: add `--break-system-packages` to `pip install`, or choose an"
        " image that is made for Python (`python:3.11`)",
        patterns=(r"error: externally-managed-environment",),
    ),
    KnownFailure(
        "python-header",
        "a package is compiled, and the image has no `{name}`: add `apt-get update && apt-get install -y"
        " build-essential python3-dev` to `train.install`, or choose a version that has a wheel",
        patterns=(r"fatal error: (?P<name>\S+\.h): No such file or directory",),
    ),
    KnownFailure(
        "no-bash",
        "there is no bash, and `shell: bash` asks for it: install it in `train.install` (`apk add bash`, `apt-get"
        " install -y bash`), choose an image that has it, or write the lines for `shell: sh`",
        patterns=(re.escape(NO_BASH),),
    ),
    KnownFailure(
        "bash-words-in-sh",
        "sh read these lines, and they have words that only bash knows: write `shell: bash`, or choose an image that"
        " has bash",
        patterns=(
            rf"sh: (?:\d+: |line \d+: )?{_BASH_COMMAND}: not found",
            r"sh: (?:\d+: )?[Ss]yntax error: (?:unexpected )?(?:\"\(\"|redirection|Bad fd number)",
            r"sh: (?:\d+: )?(?:syntax error: )?[Bb]ad substitution",
            r"sh: (?:\d+: )?set: (?:[Ii]llegal|invalid) option.* (?:-o )?pipefail",
        ),
    ),
    KnownFailure(
        "missing-apt-command",
        "there is no command `{name}`: add `apt-get update && apt-get install -y {known}` to `train.install`; without"
        " Docker, install it on the machine",
        patterns=_COMMANDS,
        replacements=APT_COMMANDS,
    ),
    KnownFailure(
        "missing-pip-command",
        "the environment has no `{name}`: add `pip install {known}` to `train.install`",
        patterns=_COMMANDS,
        replacements=PIP_COMMANDS,
    ),
    KnownFailure(
        "missing-python",
        "the image has no `{name}`: choose an image with Python (`python:3.11`), or write the name that it has there"
        " (`python3`)",
        patterns=_COMMANDS,
        replacements={name: name for name in ("python", "python3", "pip", "pip3", "python2")},
    ),
    KnownFailure(
        "missing-command",
        "there is no command `{name}`: check the spelling in `train.run`, or add what brings it to `train.install`",
        patterns=_COMMANDS,
    ),
    KnownFailure(
        "crlf",
        "the first line of a script ends as on Windows (CRLF): save it with Unix line ends, for example with `sed -i"
        " 's/\\r$//'` and the file's name",
        patterns=(r"env: .*\\r", r"\^M: bad interpreter", r"\$'\\r': command not found", r"\r: "),
    ),
    KnownFailure(
        "bad-interpreter",
        "the program that the first line of {name} names is not in the image, or this line ends as on Windows (CRLF):"
        " correct it, or start the script with `python` or `bash` in `train.run`",
        patterns=(
            r"(?:line \d+: )(?P<name>\./\S+|/\S+): cannot execute: required file not found",
            r"(?P<name>\S+): \S+: bad interpreter",
        ),
    ),
    KnownFailure(
        "script-not-found",
        "{name} is not in the job, or the program that its first line names is not: check that the file is in the"
        " project and not left out by .risemlignore or .gitignore, and that its lines end as on Unix",
        patterns=(r"(?:line \d+: |sh: \d+: )(?P<name>\S*/\S+): (?:No such file or directory|not found)",),
    ),
    KnownFailure(
        "wrong-architecture",
        "{name} is built for another kind of processor than the host has: choose an image, or build the program, for"
        " the host's architecture",
        patterns=(
            r"(?P<name>\S+): (?:cannot execute binary file: )?Exec format error",
            r"\[Errno 8\] Exec format error: '(?P<name>[^']+)'",
        ),
    ),
    KnownFailure(
        "wrong-architecture-image",
        "the image is built for another kind of processor than the host has: choose an image for the host's"
        " architecture",
        patterns=(r"(?i)exec format error", r"no matching manifest for \S+"),
    ),
    KnownFailure(
        "not-executable",
        "{name} may not be executed: run `chmod +x {name}` in the project, or start it with `bash` or `python` in"
        " `train.run`",
        patterns=(r"(?:line \d+: |sh: \d+: )(?P<name>\S*/\S+): Permission denied",),
        codes=frozenset({126}),
    ),
    KnownFailure(
        "no-home",
        "the user that jobs run as has no entry in the image's /etc/passwd: read the user from the variable USER, and"
        " the home from HOME",
        patterns=(r"getpwuid\(\): uid not found", r"Could not determine home directory"),
    ),
    KnownFailure(
        "home-not-writable",
        "the job may not write to {name}: it has no home there; write to `$HOME` or to `$OUTPUT_DIR`",
        patterns=(r"Permission denied: '(?P<name>/\.[^']*)'",),
    ),
    KnownFailure(
        "missing-gpu-library",
        "`{name}` is not in the image, or the job has no GPU: choose an image with CUDA (a `-gpu` one), and ask for"
        " `gpus` in `train.resources`",
        patterns=(
            r"(?:Error: |libraries: )(?P<name>lib(?:cuda|cudart|cudnn|cublas|cusolver|nvidia-ml|nccl)[\w.-]*): cann",
        ),
    ),
    KnownFailure(
        "missing-opencv-library",
        "OpenCV needs `{name}`, which the image lacks: add `pip install opencv-python-headless` to `train.install`"
        " instead of opencv-python, or `apt-get update && apt-get install -y libgl1 libglib2.0-0`",
        patterns=(r"ImportError: (?P<name>libGL\.so\.1|libgthread-2\.0\.so\.0): cannot open shared object file",),
    ),
    KnownFailure(
        "missing-known-library",
        "there is no shared library `{name}`: add `apt-get update && apt-get install -y {known}` to `train.install`"
        " (Debian and Ubuntu); without Docker, install it on the machine",
        patterns=(r"(?:Error: |libraries: )(?P<name>lib[\w.+-]+\.so[\w.]*): cannot open shared object file",),
        replacements=APT_LIBRARIES,
    ),
    KnownFailure(
        "missing-library",
        "there is no shared library `{name}`: install the package that has it in a step of `train.install`, or"
        " choose an image that has it",
        patterns=(r"(?:Error: |libraries: )(?P<name>lib[\w.+-]+\.so[\w.]*): cannot open shared object file",),
    ),
    KnownFailure(
        "old-system-library",
        "a program needs a newer system library ({name}) than the image has: choose an image with a newer"
        " distribution, or an older version of the program",
        patterns=(r"version `(?P<name>(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)' not found",),
    ),
    KnownFailure(
        "missing-program-file",
        "the job has no file {name}: check the name in `train.run`, and that .risemlignore and .gitignore do not"
        " leave it out",
        patterns=(r"can't open file '(?P<name>[^']+)': \[Errno 2\]",),
    ),
    KnownFailure(
        "missing-data",
        "there is no {name}: check that it is in the data folder, which RISEML_DATA or `storage.data` in pool.yml names"
        " (otherwise `~/.riseml/data`)",
        patterns=(r"No such file or directory:? '?(?P<name>/data(?:/[^']*)?)'?$",),
    ),
    KnownFailure(
        "missing-file",
        "the job has no file {name}: when it is one of your project, check that .risemlignore and .gitignore do not"
        " leave it out; a folder that the code writes to must be made first",
        patterns=(r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<name>[^']+)'",),
    ),
    KnownFailure(
        "image-not-found",
        "the registry has no such image, or you may not read it: check its name and tag",
        patterns=(r"manifest unknown|manifest for \S+ not found|pull access denied|repository does not exist",),
    ),
    KnownFailure(
        "registry-limit",
        "the registry refuses further pulls for now: wait, log in at the engine, or use another registry",
        patterns=(r"toomanyrequests|429 Too Many Requests",),
    ),
    KnownFailure(
        "reader-left",
        "a command wrote to a pipe whose reader had ended (SIGPIPE), as before `head` or `grep -q`, and `pipefail` made"
        " its exit code that of the line: let the reader read everything (`sed -n 1,10p` for `head`), or write"
        " `set +o pipefail` before that line",
        codes=frozenset({128 + 13}),
    ),
    KnownFailure(
        "command-not-executable",
        "a command of `train.run` is there and cannot be run: it may lack the right to be executed (`chmod +x`), be a"
        " folder, or be built for another kind of processor",
        codes=frozenset({126}),
    ),
    KnownFailure(
        "command-not-found",
        "a command of `train.run`, or a library that it needs, was not found: check the spelling, or add what brings"
        " it to `train.install`",
        codes=frozenset({127}),
    ),
)
