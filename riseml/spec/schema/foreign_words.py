"""How other tools write parameters and searches, and what riseml calls it: Optuna, Ray Tune, W&B, scikit-learn.

The usual suggestion is the nearest word, which misleads here: the nearest word of `loguniform` is `uniform`, and that
of `choice` is `chief`. This module translates the words of those tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from riseml.spec.yaml.problems import KeyPath

_PARAMETERS: KeyPath = ("train", "parameters")
_SEARCH: KeyPath = ("train", "search")
_STOP: KeyPath = (*_SEARCH, "stop")


def _list_words(*rows: tuple[str, str]) -> Mapping[str, str]:
    """Return the second text of a row for each word of its first text."""
    return MappingProxyType({word: word_here for words, word_here in rows for word in words.split()})


_KINDS = _list_words(
    ("loguniform loguniformvalues qloguniform qloguniformvalues logfloat reciprocal invloguniform", "log"),
    ("quniform quniformvalues float floatuniform discreteuniform number real double continuous", "uniform"),
    ("randint qrandint integer intuniform quniformint discrete", "int"),
    ("lograndint qlograndint logint intlog intloguniform", "int with log"),
    ("choice choices values categorical options gridsearch list oneof ordinal samplefrom", "list"),
    ("value constant const fixed default", "value"),
    ("min max low high lower upper step q distribution type kind scale prior", "bounds"),
    ("normal qnormal randn qrandn gaussian gauss truncnorm", "normal"),
    ("lognormal qlognormal lognormalvalues betabinomial beta", "other"),
)
_KIND_HINTS: Mapping[str, str] = {
    "log": "numbers whose magnitudes are equally likely are `log`: `{log: {min: 1e-5, max: 0.1}}`",
    "uniform": "numbers are `uniform`: `{uniform: {min: 0, max: 0.5}}`, with `step` for some of them, or `log`",
    "int": "whole numbers are `int`: `{int: {min: 16, max: 256}}`, with `step` for some of them",
    "int with log": "whole numbers by their magnitude are `{int: {min: 1, max: 1024, log: true}}`",
    "list": "write the choices as a list, without a key: `[0.1, 0.01]`",
    "value": "write the value alone, without a key",
    "bounds": "name the kind of numbers first: `{uniform: {min: 0, max: 0.5}}`, or `log`, `int` or `range` instead",
    "normal": "numbers near a mean are `normal`: `{normal: {mean: 0, sd: 1}}`",
    "other": "there is no such distribution: use `uniform`, `log`, `int` or `normal`",
}
_BOUNDS = _list_words(
    ("low lower lo from start minimum begin", "min"),
    ("high upper hi to end stop maximum", "max"),
    ("q quantum stepsize increment by", "step"),
    ("mu loc average", "mean"),
    ("sigma std stddev stdev scale deviation", "sd"),
)
_SEARCH_KEYS = _list_words(
    ("ntrials numsamples count runcap maxtrials numtrials samples iterations niter budget maxevals", "trials"),
    ("direction mode optimize optimization aim", "goal"),
    ("monitor target score scoring", "metric"),
    ("sampler algorithm algo searchalg searcher strategy type optimizer tuner", "method"),
    ("pruner scheduler earlystopping earlyterminate earlystop pruning", "stop"),
    ("maxfailures maxfail allowedfailures maxfailedtrials", "max_failed"),
    ("randomstate randomseed", "seed"),
)
_STOP_KEYS = _list_words(
    ("type name pruner scheduler strategy algorithm", "method"),
    ("graceperiod minresource miniter warmupsteps nwarmupsteps mint minsteps minepochs", "after"),
    ("reductionfactor eta s", "factor"),
    ("maxresource maxt maxiter maxsteps maxepochs r", "most"),
)
_TRAIN_KEYS = _list_words(
    ("searchspace space hyperparams hparams paramspace", "parameters"),
    ("sweep tune tuning hpo hyperopt optuna hyperparametersearch", "search"),
    ("maxconcurrent maxconcurrenttrials njobs", "concurrency"),
)
_METHODS = _list_words(
    ("bayes bayesian bo gp tpesampler optuna hyperopt bayesopt skopt", "tpe"),
    ("cmaes cma cmaessampler evolution", "cma-es"),
    ("gridsearch gridsampler bruteforce", "grid"),
    ("randomsearch randomsampler quasirandom sobol", "random"),
    ("populationbasedtraining population pb2 pbtscheduler", "pbt"),
)
_STOP_METHODS = _list_words(
    ("sha successivehalving successivehalvingpruner asynchyperband asynchyperbandscheduler ashascheduler", "asha"),
    ("hyperbandpruner hyperbandscheduler hyperbandforbohb", "hyperband"),
    ("medianpruner medianstopping medianstoppingrule", "median"),
)
_GOALS = _list_words(
    ("max maximise maximum maximal higher larger up", "maximize"),
    ("min minimise minimum minimal lower smaller down", "minimize"),
)
_STOPPING = frozenset({"asha", "hyperband", "median", "bohb", *_STOP_METHODS})


def translate_key(key: str, path: KeyPath) -> str | None:
    """Return the key of riseml that a foreign one means in the section at a path; None: not known."""
    word = _simplify(key)
    if path[:2] == _PARAMETERS and len(path) == 4:
        return _BOUNDS.get(word)
    return {_SEARCH: _SEARCH_KEYS, _STOP: _STOP_KEYS, ("train",): _TRAIN_KEYS}.get(path, {}).get(word)


def explain_key(key: str, path: KeyPath, keys: Sequence[str]) -> str | None:
    """Return the hint for a key that riseml does not have in the section at a path; None: the usual one is right.

    Args:
        key: the key.
        path: of the section.
        known: the keys that the section may have.
    """
    translation = translate_key(key, path)
    if translation is not None:
        return f'did you mean "{translation}"?' if translation in keys else f"known here: {', '.join(keys)}"
    word = _simplify(key)
    if path[:2] == _PARAMETERS and len(path) == 3:
        return _KIND_HINTS.get(_KINDS.get(word, ""))
    if path[:2] == _PARAMETERS and len(path) == 4:
        return _explain_inner_key(word, path) or f"known here: {', '.join(keys)}"
    if path == _SEARCH and word in _TRAIN_KEYS:
        return f"it is `{_TRAIN_KEYS[word]}`, in train"
    return None


def _explain_inner_key(word: str, path: KeyPath) -> str | None:
    """Return the hint for a key inside of a distribution or a range."""
    kind = path[3]
    if word == "log" and kind != "log":
        return "numbers whose magnitudes are equally likely are `{log: {min: 1e-5, max: 0.1}}`"
    if word == "step" and kind == "log":
        return "magnitudes have no steps: write a list, or for whole numbers `{int: {min: 1, max: 1024, log: true}}`"
    return "remove it: all magnitudes are equally likely with any base" if word in ("base", "log") else None


def explain_value(value: str, path: KeyPath) -> str | None:
    """Return the hint for a value that a key does not allow; None: the usual one is right."""
    word = _simplify(value)
    if path == (*_SEARCH, "method") and word in _STOPPING:
        stop = _STOP_METHODS.get(word, word if word in ("asha", "hyperband", "median") else "asha")
        return f"this stops trials early: write `method: tpe` and `stop: {{method: {stop}}}`"
    words = {(*_SEARCH, "method"): _METHODS, (*_STOP, "method"): _STOP_METHODS, (*_SEARCH, "goal"): _GOALS}
    translation = words.get(path, {}).get(word)
    return None if translation is None else f'did you mean "{translation}"?'


def explain_map(path: KeyPath) -> str | None:
    """Return the hint for a map in the place of one value; None: the usual one is right."""
    return "write `metric: accuracy`, and `goal: maximize` beside it" if path == (*_SEARCH, "metric") else None


def explain_call(text: str) -> str | None:
    """Return the hint for a value such as `loguniform(1e-5, 1e-1)`, which is a text; None for any other text."""
    name, bracket, _ = text.partition("(")
    if not bracket or not text.endswith(")"):
        return None
    return _KIND_HINTS.get(_KINDS.get(_simplify(name), "uniform" if _simplify(name) == "uniform" else ""))


def _simplify(word: str) -> str:
    """Return `loguniform` for `suggest_loguniform`, `log-uniform` and `tune.loguniform`."""
    plain = word.lower().rpartition(".")[2].removeprefix("suggest_")
    return "".join(letter for letter in plain if letter not in "_- .")
