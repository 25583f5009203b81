"""The distributions of parameters, from which a search takes its values."""

from __future__ import annotations

from decimal import Decimal

from riseml.spec.config.types import Distribution, Scale
from riseml.spec.scalars.formulas import parse_formula
from riseml.spec.scalars.texts import BadText
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_SEARCH: KeyPath = ("train", "search")
_LARGEST = 1e300  # largest absolute value of a number; computations with larger ones overflow
_LARGEST_INT = 2**53  # largest absolute value of a whole number; a float holds every smaller one exactly
FARTHEST = 6  # standard deviations from the mean to the ends of a normal distribution
# largest number of steps from min to max: above it, a float is no longer exact
_MOST_STEPS = 2**53


def read_distribution(file: SourceFile, path: KeyPath) -> Distribution | None:
    """Return the distribution of a parameter; None for a parameter with values, or after noting what is wrong."""
    scale = _find_scale(file.value_at(path))
    if scale is None:
        return None
    inner = (*path, scale.value)
    if scale is Scale.NORMAL:
        return _read_normal(file, inner)
    low_formula, high_formula = (_read_formula(file, (*inner, key)) for key in ("min", "max"))
    numbers = [_read_number(file, (*inner, key), scale) for key in ("min", "max", "step")]
    low, high, step = numbers
    if (low is None and not low_formula) or (high is None and not high_formula):
        return None
    if low is not None and high is not None and low > high:
        file.refuse((*inner, "min"), f"min {low} is more than max {high}", "swap them")
        return None
    if not _check_search(file, inner):
        return None
    by_magnitude = scale is Scale.INT and bool(file.value_at((*inner, "log")))
    if by_magnitude and not _check_magnitudes(file, inner, low, step):
        return None
    if not _check_steps(file, inner, (low, high, step)):
        return None
    return Distribution(
        scale,
        float(low or 0),
        float(high or 0),
        None if step is None else float(step),
        by_magnitude,
        low_formula,
        high_formula,
    )


def _find_scale(value: object) -> Scale | None:
    return next((member for member in Scale if isinstance(value, dict) and member.value in value), None)


def _check_steps(
    file: SourceFile, inner: KeyPath, numbers: tuple[Decimal | None, Decimal | None, Decimal | None]
) -> bool:
    """Return True for steps that a search can count; warn when they do not end on the largest number."""
    low, high, step = numbers
    if low is None or high is None or step is None:
        return True  # there are no steps, or a formula has an end
    if (high - low) / step > _MOST_STEPS:
        file.refuse((*inner, "step"), f"step {step} makes more values than a search can count", "use a larger step")
        return False
    if (high - low) % step:
        last = low + (high - low) // step * step
        file.warn((*inner, "max"), f"max is not reached: the largest value is {last}", "end max on a step")
    return True


def _check_search(file: SourceFile, inner: KeyPath) -> bool:
    """Return True when there is a search that can take numbers from the distribution at a path."""
    if file.value_at(_SEARCH) is None and _SEARCH not in file.bad:
        problem = f"{inner[-1]} says from which numbers a search chooses, and there is no train.search"
        file.refuse_key(inner, problem, "add train.search, or write a list of values")
        return False
    return True


def _read_normal(file: SourceFile, inner: KeyPath) -> Distribution | None:
    """Return a normal distribution, which ends at six standard deviations."""
    mean, deviation = (_read_number(file, (*inner, key), Scale.NORMAL) for key in ("mean", "sd"))
    if mean is None or deviation is None or not _check_search(file, inner):
        return None
    reach = FARTHEST * deviation
    return Distribution(Scale.NORMAL, float(mean - reach), float(mean + reach), mean=float(mean), sd=float(deviation))


def _read_formula(file: SourceFile, path: KeyPath) -> str:
    """Return the formula at a path; empty for a number, or after noting that it is none."""
    text = file.value_at(path)
    if not isinstance(text, str):
        return ""
    try:
        formula = parse_formula(text)
    except BadText as bad:
        file.refuse(path, bad.problem, bad.hint)
        return ""
    if not formula.names:
        file.refuse(path, "must be a number, not a quoted string", f"write {text}")
        return ""
    return text


def _check_magnitudes(file: SourceFile, path: KeyPath, low: Decimal | None, step: Decimal | None) -> bool:
    """Refuse whole numbers by magnitude that have steps, or begin below 1, as Optuna does."""
    if step not in (None, 1):
        problem = "with `log: true` every whole number is possible, and there are no steps"
        file.refuse((*path, "step"), problem, "remove step, or write a list of the values")
    elif low is not None and low < 1:
        file.refuse((*path, "min"), f"must be at least 1 with `log: true`, not {low}", "0 has no magnitude")
    else:
        return True
    return False


def _read_number(file: SourceFile, path: KeyPath, scale: Scale) -> Decimal | None:
    """Return the number at a path; None when there is none, or after noting that it is too large to compute with."""
    value = file.value_at(path)
    if value is None or isinstance(value, str):
        return None
    number = Decimal(value)
    largest = _LARGEST_INT if scale is Scale.INT else _LARGEST
    is_tiny = number != 0 and abs(number) < Decimal(1 / _LARGEST)
    if abs(number) > Decimal(largest) or is_tiny:
        file.refuse(path, f"{value} is {'too close to 0' if is_tiny else 'too large'}", "no search can use it")
        return None
    return number
