"""Choose what a project runs, and how: from what its files say to the parts of a riseml.yml."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from riseml.project_reading.findings import (
    FILL_IN,
    Argument,
    ArgumentKind,
    ClusterKind,
    ClusterSign,
    CodePlace,
    CommandLine,
    ImageFile,
    Packages,
    ProjectFinding,
    Proposal,
    ScriptFacts,
)
from riseml.project_reading.frameworks import (
    FrameworkChoice,
    choose_project_framework,
    choose_version,
    list_missing_packages,
)
from riseml.project_reading.image_files import read_image_file
from riseml.project_reading.packages import read_packages
from riseml.project_reading.scripts import read_outline, read_script
from riseml.spec.scalars.placeholders import BUILT_IN_PLACEHOLDERS

_MOST_SCRIPTS = 200  # that are parsed
_MOST_MODULES = 50  # of the project that a program imports
_MOST_PARAMETERS = 20
_LONGEST_VALUE = 60  # characters of a parameter
_BEST = ("train", "main", "run", "run_train", "training", "trainer", "fit", "app", "__main__")
_NO_PROGRAM = re.compile(
    r"(^|/)(setup|conftest|noxfile|tasks|fabfile|manage|__init__|configurator)\.py$|(^|/)(test_|tests?/)|_test\.py$"
)
_LATER = re.compile(
    r"(eval|test|predict|infer|generate|sample|download|prepare|preprocess|export|plot|demo|serve|util)"
)
_OUTPUT = re.compile(
    r"(out|output|outdir|outputs)([-_]?(dir|path|folder|directory))?|(save|log|logs|model|models|result|results|work|export"
    r"|exp|artifact|artifacts|ckpt|ckpts|checkpoint|checkpoints|tensorboard|summary|default[-_]root)[-_]?(dir|folder|directory)"
    r"|save[-_]?path|results?[-_]path"
)
_DATA = re.compile(
    r"(data|dataset|input|root|corpus)([-_]?(dir|path|root|folder|directory|file))?|train[-_]?(data|dir|path|file)"
)
_OF_CLUSTER = re.compile(
    r"(local[-_])?rank|world[-_]?size|master[-_](addr|port|address)|node[-_]?rank|nnodes|nodes|num[-_]?nodes|nproc.*"
    r"|dist[-_](url|backend)|init[-_]method|gpus?([-_]ids?)?|num[-_]?gpus|device|devices|no[-_]cuda"
)
_OLD_CLUSTER = frozenset(
    {"job_name", "task_index", "ps_hosts", "worker_hosts"}
)  # of TensorFlow 1, which riseml fills in
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*")


def propose_config(texts: Mapping[str, str], program: str = "") -> Proposal | None:
    """Return what a project could run; None when it has no program.

    Args:
        texts: the files of the project, by path.
        program: the script or notebook that the user names; empty: the best one.
    """
    facts = _read_scripts(texts)
    choices = _rank_programs(facts)
    if program and program in facts:
        choices = (program, *(path for path in choices if path != program))
    if not choices:
        return None
    modules = [read_script(script, texts) for script in _collect_modules(facts[choices[0]], facts)]
    chosen = modules[0]
    packages = read_packages(texts)
    image = read_image_file(texts)
    framework = choose_project_framework(modules, packages.requirements)
    proposal = Proposal(chosen.path, choices)
    proposal = _add_framework(proposal, framework, packages, modules)
    proposal = _add_environment(proposal, packages, image, modules, facts)
    proposal = _add_command(proposal, chosen, modules, packages)
    proposal = _add_outputs(proposal, modules)
    proposal = _add_cluster(proposal, modules, texts)
    unused = {"version"} if proposal.image or proposal.cluster is ClusterKind.HOROVOD else set()
    findings = [
        replace(row, value=" ".join(proposal.words)) if row.label == "run" else row
        for row in proposal.findings
        if row.label not in unused
    ]
    return replace(proposal, findings=tuple(findings))


def _read_scripts(texts: Mapping[str, str]) -> dict[str, ScriptFacts]:
    facts: dict[str, ScriptFacts] = {}
    for path, text in texts.items():
        if path.endswith((".py", ".ipynb")) and len(facts) < _MOST_SCRIPTS:
            script = read_outline(path, text)
            if script is not None:
                facts[path] = script
    return facts


def _rank_programs(facts: Mapping[str, ScriptFacts]) -> tuple[str, ...]:
    """Return all files that could be the program, the most likely one first."""
    imported = {path for script in facts.values() for path in _find_local(script, facts)}
    ranked = []
    for path, script in facts.items():
        stem, _, ending = posixpath.basename(path).rpartition(".")
        is_usable = path.isprintable() and "{{" not in path
        if not script.main_line or not is_usable or _NO_PROGRAM.search(path):
            continue
        stem_rank = _BEST.index(stem) if stem in _BEST else len(_BEST) - ("train" in stem)
        is_late = bool(_LATER.search(stem)) and "train" not in stem
        ranked.append((ending == "ipynb", is_late, path in imported, stem_rank, path.count("/"), path))
    return tuple(row[-1] for row in sorted(ranked))


def _find_local(script: ScriptFacts, facts: Mapping[str, ScriptFacts]) -> Iterator[str]:
    """Yield the project's own files that a script imports."""
    folder = posixpath.dirname(script.path)
    for module, _ in script.imports:
        level = len(module) - len(module.lstrip("."))
        base = folder
        for _ in range(level - 1):
            base = posixpath.dirname(base)
        name = module.lstrip(".").replace(".", "/")
        for place in (base,) if level else (folder, "", "src"):
            for ending in (".py", "/__init__.py"):
                path = posixpath.normpath(posixpath.join(place, name)) + ending
                if path in facts and path != script.path:
                    yield path


def _collect_modules(program: ScriptFacts, facts: Mapping[str, ScriptFacts]) -> list[ScriptFacts]:
    """Return the program and the project's own modules that it imports, directly or not."""
    paths = [program.path]
    for path in paths:  # the list grows
        for inner in _find_local(facts[path], facts):
            if inner not in paths and len(paths) < _MOST_MODULES:
                paths.append(inner)
    return [facts[path] for path in paths]


def _add_framework(
    proposal: Proposal, choice: FrameworkChoice | None, packages: Packages, modules: Sequence[ScriptFacts]
) -> Proposal:
    uses_gpu = next((CodePlace(script.path, script.gpu_line) for script in modules if script.gpu_line), None)
    if uses_gpu is not None:
        gpus = ProjectFinding("gpus", "1", uses_gpu, "uses a GPU without asking whether there is one")
        proposal = replace(proposal, gpus=1, findings=(*proposal.findings, gpus))
    if choice is None:
        return proposal
    rows = [ProjectFinding("framework", choice.name, choice.place, choice.why)]
    remarks = [f"the project also uses {', '.join(choice.further)}: `install` must bring it"] if choice.further else []
    version, requirement, remark = choose_version(choice.name, packages.requirements)
    if version and requirement is not None:
        rows.append(
            ProjectFinding("version", version, requirement.place, f"asks for {requirement.name}{requirement.versions}")
        )
    if version and choice.name == "tensorflow" and proposal.gpus:
        version += "-gpu"
    remarks += [remark] if remark else []
    return replace(
        proposal,
        framework=choice.name,
        version=version,
        findings=(*rows, *proposal.findings),
        remarks=(*proposal.remarks, *remarks),
    )


def _add_environment(
    proposal: Proposal,
    packages: Packages,
    image: ImageFile | None,
    modules: Sequence[ScriptFacts],
    facts: Mapping[str, ScriptFacts],
) -> Proposal:
    """Add the image and the steps of `install`."""
    proposal = _add_image(proposal, packages, image)
    rows: list[ProjectFinding] = []
    install = list(image.steps if image is not None else ())
    has_installed = any("install" in step for step in install)
    remarks: tuple[str, ...] = ()
    if packages.install and not has_installed:
        install += packages.install
        remarks = packages.remarks
        rows.append(ProjectFinding("install", packages.install[-1], packages.place, "lists packages"))
    install += [step for script in modules for step in script.installs if step not in install]
    if packages.place is None and image is None:
        local = {part for path in facts for part in path.removesuffix(".py").split("/")}
        missing = list_missing_packages(modules, proposal.framework, local)
        if missing:
            install.append("pip install " + " ".join(missing))
            rows.append(
                ProjectFinding("install", install[-1], CodePlace(proposal.program), "imports them; no file lists them")
            )
    return replace(
        proposal,
        install=tuple(install),
        findings=(*proposal.findings, *rows),
        remarks=(*proposal.remarks, *remarks),
    )


def _add_image(proposal: Proposal, packages: Packages, image: ImageFile | None) -> Proposal:
    """Add the image of a Dockerfile, of conda, or of the version of Python that the project asks for."""
    if image is not None:
        row = ProjectFinding("image", image.image, image.place, "begins with it")
        remarks = [f"{image.place.file}: {remark}" for remark in image.remarks[:3]]
        return replace(
            proposal,
            image=image.image,
            variables=image.variables,
            findings=(*proposal.findings, row),
            remarks=(*proposal.remarks, *remarks),
        )
    if packages.image:
        row = ProjectFinding("image", packages.image, packages.place, "needs conda")
        return replace(proposal, image=packages.image, findings=(*proposal.findings, row))
    if packages.python and not proposal.framework:
        name = f"python:{packages.python}"
        row = ProjectFinding("image", name, packages.place, f"asks for Python {packages.python}")
        return replace(proposal, image=name, findings=(*proposal.findings, row))
    return proposal


def _add_command(
    proposal: Proposal, program: ScriptFacts, modules: Sequence[ScriptFacts], packages: Packages
) -> Proposal:
    """Add `run`, with the arguments that the program or one of its modules reads."""
    path = program.path
    start = [word for word in packages.prefix.split() if proposal.image == packages.image]
    if path.endswith(".ipynb"):
        start += [
            "jupyter",
            "nbconvert",
            "--to",
            "notebook",
            "--execute",
            "--output-dir",
            '"$OUTPUT_DIR"',
            _quote(path),
        ]
        install = (*proposal.install, "pip install nbconvert ipykernel")
        row = ProjectFinding("run", " ".join(start), CodePlace(path), "a notebook, from its first cell to its last one")
        return replace(proposal, words=tuple(start), install=install, findings=(*proposal.findings, row))
    is_module = "/" in path and (program.is_relative or posixpath.basename(path) == "__main__.py")
    name = path.removesuffix("/__main__.py").removesuffix(".py").replace("/", ".")
    start += ["python", "-m", name] if is_module else ["python", _quote(path)]
    command = next((script.command for script in modules if script.command is not None), None)
    line = command.place if command is not None else CodePlace(path, program.main_line)
    why = f"reads its arguments by {command.library}" if command is not None else "begins here"
    added = _ArgumentWords(command or CommandLine("", line))
    parameters = added.parameters
    rows = [ProjectFinding("run", " ".join(start), line, why)]
    if parameters:
        summary = ", ".join(f"{name} = {value}" for name, value in parameters[:4]) + (", ..." if parameters[4:] else "")
        rows.append(ProjectFinding("parameters", summary, line, _count_defaults(len(parameters))))
    return replace(
        proposal,
        words=(*start, *added.words),
        comments=tuple(added.comments),
        parameters=tuple(parameters),
        findings=(*proposal.findings, *rows),
        remarks=(*proposal.remarks, *added.remarks),
    )


def _count_defaults(count: int) -> str:
    return "1 of its arguments has a default" if count == 1 else f"{count} of its arguments have defaults"


class _ArgumentWords:
    """The words behind a program, its parameters, and what the user must fill in."""

    def __init__(self, command: CommandLine) -> None:
        self.words = [_quote(command.subcommand)] if command.subcommand else []
        self.words += command.fixed
        self.parameters: list[tuple[str, str]] = []
        self.comments: list[str] = []
        self.remarks: list[str] = []
        self._form = command.form
        self._names = {argument.name for argument in command.arguments}
        for argument in command.arguments:
            value = self._choose_value(argument)
            if value:
                self._add(argument, value)
        flags = [part.flag for part in command.arguments if part.kind is ArgumentKind.FLAG and part.flag]
        if flags:
            self.comments.append(f"switches that are off: {' '.join(flags[:8])}{' ...' if flags[8:] else ''}")

    def _add(self, argument: Argument, value: str) -> None:
        if not argument.flag:
            self.words.append(value)
        elif self._form == "=" or not argument.flag.startswith("-"):
            self.words.append(f"{argument.flag}={value}")
        else:
            self.words += [argument.flag, value]

    def _choose_value(self, argument: Argument) -> str:
        """Return what the command line has for an argument; empty: it is left to its default."""
        name = argument.name.replace("-", "_")
        if name in _OLD_CLUSTER and "task_index" in self._names:
            return f"{{{{{name}}}}}"
        if argument.kind is ArgumentKind.FLAG or (_OF_CLUSTER.fullmatch(argument.name) and not argument.is_required):
            return ""
        last = argument.name.rpartition(".")[2]
        if argument.kind is ArgumentKind.TEXT and _OUTPUT.fullmatch(last):
            return self._place_output(argument)
        if argument.is_required and argument.default is None:
            return self._fill_in(argument, is_data=bool(_DATA.fullmatch(last)))
        if self._is_parameter(argument):
            self.parameters.append((argument.name, argument.default or ""))
            return f"{{{{{argument.name}}}}}"
        return ""

    def _place_output(self, argument: Argument) -> str:
        file = posixpath.basename(argument.default or "")
        has_ending = re.fullmatch(r"[A-Za-z0-9_-]+\.[A-Za-z0-9]{1,10}", file)
        return f'"$OUTPUT_DIR/{file}"' if has_ending else '"$OUTPUT_DIR"'

    def _fill_in(self, argument: Argument, *, is_data: bool) -> str:
        label = argument.flag or argument.name
        if is_data and argument.kind is ArgumentKind.TEXT:
            self.remarks.append(f"{argument.place}: {label} is required: {{{{data_dir}}}} is your data folder")
            return "{{data_dir}}"
        self.comments.append(f"fill in {label}, which is required")
        if argument.kind is ArgumentKind.NUMBER and self._is_parameter(replace(argument, default="1")):
            self.remarks.append(f"{argument.place}: {label} is required: replace 1 in `parameters`")
            self.parameters.append((argument.name, "1"))
            return f"{{{{{argument.name}}}}}"
        value = (*argument.choices, "1" if argument.kind is ArgumentKind.NUMBER else FILL_IN)[0]
        self.remarks.append(f"{argument.place}: {label} is required: replace {value} in `run`")
        return _quote(value)

    def _is_parameter(self, argument: Argument) -> bool:
        value = argument.default
        if value is None or len(self.parameters) >= _MOST_PARAMETERS or not _NAME.fullmatch(argument.name):
            return False
        names = [name for name, _ in self.parameters]
        if argument.name in names or argument.name.replace("-", "_") in BUILT_IN_PLACEHOLDERS:
            return False
        if argument.kind is ArgumentKind.NUMBER:
            return len(value) <= _LONGEST_VALUE
        last = argument.name.rpartition(".")[2]
        is_path = bool(_DATA.fullmatch(last)) or "path" in last or "file" in last or "dir" in last or "/" in value
        return not is_path and len(value) <= _LONGEST_VALUE and bool(_WORD.fullmatch(value))


def _add_outputs(proposal: Proposal, modules: Sequence[ScriptFacts]) -> Proposal:
    """Add what the code writes in its working folder, and how its metrics are found."""
    rows: list[ProjectFinding] = []
    outputs: dict[str, CodePlace] = {}
    for script in modules:
        for pattern, line in script.outputs:
            outputs.setdefault(pattern, CodePlace(script.path, line))
    if outputs:
        rows.append(ProjectFinding("outputs", ", ".join(outputs), next(iter(outputs.values())), "writes there"))
    reporting = any(script.reports for script in modules)
    metrics: dict[str, str] = {}
    if not reporting:
        printed = [pattern for script in modules for pattern in script.patterns][:10]
        for metric in printed:
            metrics.setdefault(metric.name, metric.pattern)
        step = next((script.step for script in modules if script.step is not None), None)
        if metrics and step is not None:
            metrics["step"] = step.pattern
        if printed:
            names = ", ".join(name for name in metrics if name != "step")
            rows.append(ProjectFinding("metrics", names, printed[0].place, "prints them"))
    return replace(
        proposal,
        outputs=tuple(outputs),
        metrics=tuple(metrics.items()),
        reports=reporting,
        findings=(*proposal.findings, *rows),
    )


def _add_cluster(proposal: Proposal, modules: Sequence[ScriptFacts], texts: Mapping[str, str]) -> Proposal:
    """Add several jobs where the code trains in several processes."""
    sign = _find_cluster(proposal, modules, texts)
    if sign is None:
        return proposal
    framework = proposal.framework or {
        ClusterKind.TORCH: "pytorch",
        ClusterKind.JAX: "jax",
        ClusterKind.HOROVOD: "tensorflow",
    }.get(sign.kind, "tensorflow")
    if sign.kind is ClusterKind.HOROVOD and framework == "jax":
        return proposal
    expected = {ClusterKind.TORCH: "pytorch", ClusterKind.JAX: "jax"}.get(sign.kind, "tensorflow")
    if sign.kind is not ClusterKind.HOROVOD and framework != expected:
        return proposal
    row = ProjectFinding("distributed", _describe_cluster(sign.kind), sign.place, sign.words)
    starts_processes = sign.kind is ClusterKind.TORCH and proposal.words[:1] == ("python",)
    words = ("torchrun", *proposal.words[1:]) if starts_processes else proposal.words
    return replace(
        proposal,
        framework=framework,
        cluster=sign.kind,
        version="" if sign.kind is ClusterKind.HOROVOD else proposal.version,
        has_evaluator=sign.kind is ClusterKind.ESTIMATOR,
        words=words,
        findings=(*proposal.findings, row),
    )


def _find_cluster(proposal: Proposal, modules: Sequence[ScriptFacts], texts: Mapping[str, str]) -> ClusterSign | None:
    signs = [sign for script in modules for sign in script.signs]
    horovod = next((sign for sign in signs if sign.kind is ClusterKind.HOROVOD), None)
    if horovod is not None or signs:
        return horovod or signs[0]
    names = " ".join(proposal.words)
    if "{{ps_hosts}}" in names and "{{task_index}}" in names:
        return ClusterSign(ClusterKind.TENSORFLOW_PS, "reads ps_hosts and task_index", CodePlace(proposal.program))
    return _find_launcher(proposal.program, texts)


def _find_launcher(program: str, texts: Mapping[str, str]) -> ClusterSign | None:
    """Return the line of a shell script that starts the program with torchrun or `accelerate launch`."""
    launcher = re.compile(r"\b(torchrun|accelerate launch|python3? -m torch\.distributed\.(?:run|launch))\b")
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1) if path.endswith(".sh") else ():
            match = launcher.search(line)
            if match is not None and posixpath.basename(program) in text:
                return ClusterSign(ClusterKind.TORCH, match[1], CodePlace(path, number))
    return None


def _describe_cluster(kind: ClusterKind) -> str:
    match kind:
        case ClusterKind.TENSORFLOW_PS:
            return "worker: 2, ps: 1"
        case ClusterKind.ESTIMATOR:
            return "worker: 2, ps: 1, evaluator"
        case ClusterKind.HOROVOD:
            return "horovod, workers: 2"
        case _:
            return "worker: 2"


def _quote(text: str) -> str:
    return shlex.quote(text)


def drop_parameters(proposal: Proposal, names: Iterable[str]) -> Proposal:
    """Return the proposal without some parameters: the program takes its own defaults for them."""
    unwanted = set(names)
    words: list[str] = []
    for word in proposal.words:
        if any(f"{{{{{name}}}}}" in word for name in unwanted):
            if words and words[-1].startswith("--") and word.startswith("{{"):
                words.pop()
            continue
        words.append(word)
    parameters = tuple(pair for pair in proposal.parameters if pair[0] not in unwanted)
    return replace(proposal, words=tuple(words), parameters=parameters)
