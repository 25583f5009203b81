"""What a script or a notebook says: its imports, arguments, files and metrics, and whether it is distributed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping

from riseml.project_reading.arguments import read_command_line
from riseml.project_reading.findings import ClusterKind, ClusterSign, CodePlace, MetricPattern, ScriptFacts
from riseml.project_reading.syntax import (
    HOLE,
    SourceCode,
    fill_percent,
    find_keyword,
    list_imports,
    parse_code,
    read_template,
)

_SIGNS: Mapping[str, ClusterKind] = {
    "torch.distributed.init_process_group": ClusterKind.TORCH,
    "torch.nn.parallel.DistributedDataParallel": ClusterKind.TORCH,
    "torch.distributed.fsdp.FullyShardedDataParallel": ClusterKind.TORCH,
    "torch.distributed.fsdp.fully_shard": ClusterKind.TORCH,
    "accelerate.Accelerator": ClusterKind.TORCH,
    "deepspeed.initialize": ClusterKind.TORCH,
    "deepspeed.init_distributed": ClusterKind.TORCH,
    "tensorflow.distribute.MultiWorkerMirroredStrategy": ClusterKind.TENSORFLOW_MIRRORED,
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy": ClusterKind.TENSORFLOW_MIRRORED,
    "tensorflow.distribute.ParameterServerStrategy": ClusterKind.TENSORFLOW_PS,
    "tensorflow.distribute.experimental.ParameterServerStrategy": ClusterKind.TENSORFLOW_PS,
    "tensorflow.train.Server": ClusterKind.TENSORFLOW_PS,
    "tensorflow.distribute.Server": ClusterKind.TENSORFLOW_PS,
    "tensorflow.estimator.train_and_evaluate": ClusterKind.ESTIMATOR,
    "jax.distributed.initialize": ClusterKind.JAX,
}
_TRAINERS = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
_METRICS = frozenset(
    {
        *("loss", "losses", "acc", "accuracy", "error", "err", "reward", "return", "perplexity", "ppl", "f1", "auc"),
        *("mae", "mse", "rmse", "bleu", "iou", "miou", "map", "precision", "recall", "score", "psnr", "ssim", "wer"),
        *("r2", "dice", "rouge", "elbo", "nll", "bpc", "lr"),
    }
)
_BEFORE_METRIC = frozenset(
    {
        *("train", "training", "test", "testing", "val", "valid", "validation", "eval", "avg", "average", "mean"),
        *("best", "final", "episode", "total", "top1", "top5", "macro", "micro", "dev"),
    }
)
_STEPS = ("step", "steps", "iteration", "iter", "epoch", "episode")
_NUMBER = "([-+.0-9e]+)"
_LABEL = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_ @-]*?)[ \t]*[:=]?[ \t]*$")
_CUT = re.compile(r"[,;|(){}\[\]\t\n\0/]")
_PRINTERS = frozenset({"print", "write", "info", "log", "debug", "echo"})
_WRITERS = {  # the method, and the argument that names the file
    **dict.fromkeys(("torch.save", "joblib.dump", "pickle.dump"), 1),
    **dict.fromkeys(("numpy.save", "numpy.savez", "numpy.savetxt", "matplotlib.pyplot.savefig"), 0),
}
_WRITING_METHODS = frozenset({"save", "save_pretrained", "savefig", "save_weights", "save_model", "to_csv"})
_WRITING_CLASSES = ("SummaryWriter", "ModelCheckpoint", "TensorBoard", "FileWriter", "makedirs", "mkdir")
_SAFE_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_MAGIC = re.compile(r"^\s*[%!]\s*(?:pip3?|python -m pip)\s+install\s+(.+)$")


def read_outline(path: str, text: str) -> ScriptFacts | None:
    """Return what a script or a notebook imports and whether it is a program; None when it is not Python."""
    code, _ = _parse(path, text)
    if code is None:
        return None
    imports = list_imports(code)
    is_relative = any(name.startswith(".") for name, _ in imports)
    return ScriptFacts(path, imports, _find_main(code), is_relative=is_relative)


def read_script(outline: ScriptFacts, texts: Mapping[str, str]) -> ScriptFacts:
    """Return all that a script or a notebook says; the outline alone where the code is too deep to be read.

    Args:
        outline: of the script.
        texts: all files of the project, by path.
    """
    code, installs = _parse(outline.path, texts[outline.path])
    if code is None:
        return outline
    try:
        return _read_facts(code, texts, installs)
    except RecursionError:
        return outline


def _parse(path: str, text: str) -> tuple[SourceCode | None, tuple[str, ...]]:
    """Return the code of a script or a notebook, and the steps of a notebook that install packages."""
    installs: tuple[str, ...] = ()
    if path.endswith(".ipynb"):
        cells = _read_cells(text)
        if cells is None:
            return None, ()
        text, installs = cells
    return parse_code(path, text), installs


def _read_facts(code: SourceCode, texts: Mapping[str, str], installs: tuple[str, ...]) -> ScriptFacts:
    imports = list_imports(code)
    patterns = tuple(_find_patterns(code))
    calls = [(code.whole_name(call.func), call.lineno) for call in code.calls]
    attributes = {node.attr for node in code.nodes if isinstance(node, ast.Attribute)}
    return ScriptFacts(
        code.path,
        imports,
        _find_main(code),
        read_command_line(code, texts),
        tuple(_find_signs(code, imports)),
        tuple({pattern.name: pattern for pattern in reversed(patterns) if pattern.name != "step"}.values())[::-1],
        next((pattern for pattern in patterns if pattern.name == "step"), None),
        tuple(dict(_find_outputs(code)).items()),
        0 if "is_available" in attributes else _find_gpu(code),
        any(name in ("riseml.report", "riseml.report_result") for name, _ in calls),
        any(name.startswith(".") for name, _ in imports),
        installs,
    )


def _find_gpu(code: SourceCode) -> int:
    """Return the line that wants a GPU: `.cuda()`, `.to("cuda")` or `torch.device("cuda")`; 0: none does."""
    for call in code.calls:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else code.whole_name(call.func)
        value = code.literal(call.args[0]) if call.args else ...
        if method == "cuda" or (method in ("to", "device") and isinstance(value, str) and value.startswith("cuda")):
            return call.lineno
    return 0


def _read_cells(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the code of a notebook, and its lines `%pip install`."""
    try:
        document = json.loads(text)
        cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    lines = [line for source in sources for line in source.splitlines()]
    installs = [f"pip install {match[1].strip()}" for line in lines if (match := _MAGIC.match(line))]
    return "\n".join("pass" if line.lstrip().startswith(("%", "!", "?")) else line for line in lines), tuple(installs)


def _find_main(code: SourceCode) -> int:
    """Return the line where the program begins: below `if __name__ == "__main__"`, or a loop or call at the top."""
    for statement in code.tree.body:
        if isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare):
            names = [node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)]
            if "__name__" in names:
                return statement.lineno
    for statement in code.tree.body:
        if isinstance(statement, ast.For | ast.While | ast.With):
            return statement.lineno
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return statement.lineno
    return 0


def _find_signs(code: SourceCode, imports: Iterable[tuple[str, int]]) -> Iterable[ClusterSign]:
    for call in code.calls:
        name = code.whole_name(call.func).replace("tensorflow.compat.v1.", "tensorflow.")
        place = CodePlace(code.path, call.lineno)
        if name in _SIGNS:
            yield ClusterSign(_SIGNS[name], name, place)
        elif name in _TRAINERS:
            strategy = code.literal(find_keyword(call, "strategy"))
            nodes = code.literal(find_keyword(call, "num_nodes"))
            is_strategy = isinstance(strategy, str) and strategy.startswith(("ddp", "fsdp", "deepspeed"))
            if is_strategy or (isinstance(nodes, int) and nodes > 1):
                yield ClusterSign(ClusterKind.TORCH, f"{name} with a strategy", place)
    for module, line in imports:
        if module.partition(".")[0] == "horovod":
            yield ClusterSign(ClusterKind.HOROVOD, f"import {module}", CodePlace(code.path, line))
            return


def _find_outputs(code: SourceCode) -> Iterable[tuple[str, int]]:
    """Yield patterns of the files that the code writes below its working folder."""
    for call in code.calls:
        name = code.whole_name(call.func)
        if name.endswith("SummaryWriter") and not call.args and find_keyword(call, "log_dir") is None:
            yield "runs", call.lineno
        if name in _TRAINERS and find_keyword(call, "default_root_dir") is None:
            yield "lightning_logs", call.lineno
        pattern = _make_output_pattern(code, _find_written(code, call, name))
        if pattern:
            yield pattern, call.lineno


def _find_written(code: SourceCode, call: ast.Call, name: str) -> ast.AST | None:
    """Return what names the file that a call writes; None: it writes none."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else name
    if name in _WRITERS:
        return call.args[_WRITERS[name]] if len(call.args) > _WRITERS[name] else None
    if name == "open":
        mode = code.literal(call.args[1]) if len(call.args) > 1 else ...
        return call.args[0] if isinstance(mode, str) and mode[:1] in ("w", "x") else None
    if method in _WRITING_METHODS:
        return call.args[0] if call.args else None
    if name.rpartition(".")[2] in _WRITING_CLASSES:
        return call.args[0] if call.args else find_keyword(call, "log_dir") or find_keyword(call, "dirpath")
    return None


def _make_output_pattern(code: SourceCode, node: ast.AST | None) -> str:
    constant = code.constants.get(node.id) if isinstance(node, ast.Name) else node
    text = read_template(constant).removeprefix("./")
    first, slash, _ = text.partition("/")
    pattern = first if slash else text
    checked = pattern.replace(HOLE, "x")
    is_usable = bool(_SAFE_PATH.fullmatch(checked)) and not pattern.startswith((HOLE, "data")) and len(pattern) < 100
    return pattern.replace(HOLE, "*") if is_usable and checked not in ("output", "outputs/x") else ""


def _find_patterns(code: SourceCode) -> Iterable[MetricPattern]:
    """Yield how the metrics that a program prints are found, and the step in the same line."""
    for call in code.calls:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else code.whole_name(call.func)
        place = CodePlace(code.path, call.lineno)
        if method == "set_postfix":
            for keyword in call.keywords:
                if keyword.arg and keyword.arg.rpartition("_")[2] in _METRICS:
                    yield MetricPattern(keyword.arg, rf"\b{keyword.arg}={_NUMBER}", place)
        elif method in _PRINTERS and call.args:
            yield from _read_line(_read_printed(code, call, method), place)
        elif method == "fit" and any(name.startswith(("tensorflow", "keras")) for name in code.names.values()):
            yield from _read_fit(code, call, place)
        elif code.whole_name(call.func) in ("transformers.Trainer", "trl.SFTTrainer"):
            yield MetricPattern("loss", f"'loss': '?{_NUMBER}", place)


def _read_printed(code: SourceCode, call: ast.Call, method: str) -> str:
    """Return the line that a call prints, with a hole for each value."""
    first = read_template(call.args[0])
    if method != "print":
        return fill_percent(first) if len(call.args) > 1 and "%" in first else first
    parts = [read_template(part) or HOLE for part in call.args]
    return " ".join(parts)


def _read_line(text: str, place: CodePlace) -> Iterable[MetricPattern]:
    steps: list[MetricPattern] = []
    metrics: list[MetricPattern] = []
    parts = text.split(HOLE)
    for index, before in enumerate(parts[:-1]):
        behind = parts[index + 1 :]
        label = _CUT.split(before)[-1][-60:]
        match = _LABEL.search(label)
        if match is None:
            continue
        words = re.split(r"[ _@-]+", match[1].strip().lower())
        written = label[match.start() :]
        if words[-1] in _METRICS and words[-1] != "lr":
            count = 1
            while count < len(words) and words[-count - 1] in _BEFORE_METRIC:
                count += 1
            pattern = _escape(written[_find_word(written, count) :])
            if behind[0].startswith("/"):  # `Accuracy: 9800/10000 (98%)`: the share counts
                pattern += r"[0-9]+/[0-9]+ *\("
            if not behind[0].startswith("/") or "".join(behind[1:2]).strip() == "(":
                metrics.append(MetricPattern("_".join(words[-count:]), pattern + _NUMBER, place))
        elif words[-1] in _STEPS:
            steps.append(MetricPattern("step", _escape(written[_find_word(written, 1) :]) + "([0-9]+)", place))
    if metrics:
        steps.sort(key=lambda step: next(index for index, word in enumerate(_STEPS) if word in step.pattern.lower()))
        yield from (*steps[:1], *metrics)


def _find_word(text: str, count: int) -> int:
    """Return where the last words of a label begin."""
    starts = [match.start() for match in re.finditer(r"[A-Za-z0-9]+", text)]
    return starts[-count] if len(starts) >= count else 0


def _escape(text: str) -> str:
    """Return a regular expression for a text of the code; spaces may be more, because numbers are padded."""
    parts = [re.escape(part) for part in text.split()]
    end = " *" if text[-1:].isspace() or text[-1:] in ":=" else ""
    return r"\b" + " +".join(parts) + end


def _read_fit(code: SourceCode, call: ast.Call, place: CodePlace) -> Iterable[MetricPattern]:
    """Yield the metrics in the lines of Keras."""
    yield MetricPattern("loss", rf"(?<![a-z_])loss: {_NUMBER}", place)
    has_validation = any(keyword.arg in ("validation_data", "validation_split") for keyword in call.keywords)
    compiles = [part for part in code.calls if isinstance(part.func, ast.Attribute) and part.func.attr == "compile"]
    names = {name for part in compiles for name in code.texts(find_keyword(part, "metrics"))}
    if "accuracy" in names or "acc" in names:
        yield MetricPattern("accuracy", rf"(?<![a-z_])accuracy: {_NUMBER}", place)
    if has_validation:
        yield MetricPattern("val_loss", f"val_loss: {_NUMBER}", place)
