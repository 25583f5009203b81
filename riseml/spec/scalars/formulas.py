"""Formulas of numbers and names: `{{layers}} * 64`, and comparisons of them: `units * layers <= 512`.

A formula is parsed, never run: only the operators of the tables below have a meaning, and a name is that of a
parameter.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from riseml.base.records import dataclass
from riseml.spec.scalars.placeholders import find_placeholders
from riseml.spec.scalars.quantities import parse_number
from riseml.spec.scalars.texts import BadText, quote_text

Number = float
"""An int or a float."""

_LEAST_EXCESS = 1e-9  # of `a < b` where both are equal
_LONGEST = 200  # characters of a formula
_NAME = "name_{}_of_riseml"  # of a placeholder, where Python reads the formula
_ALLOWED = "numbers, names of parameters, + - * / // % ( ) min max"
_BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Number], Number]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_SIGNS: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_CALLS: Mapping[str, Callable[..., Number]] = {"min": min, "max": max}


class NoValue(Exception):
    """A formula has no value with these numbers; the text says why."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula or comparison."""

    tree: ast.expr
    names: tuple[str, ...]  # of the parameters in it, in order

    def compute(self, texts: Mapping[str, str]) -> Number:
        """Return the value with these values of parameters.

        Raises:
            NoValue: it divides by zero, a number is too large, or a value is no number.
        """
        try:
            value = _compute(self.tree, texts)
        except (ZeroDivisionError, OverflowError) as error:
            raise NoValue("it divides by 0" if isinstance(error, ZeroDivisionError) else "it is too large") from error
        if not math.isfinite(value):
            raise NoValue("it is too large")
        return value

    def measure_excess(self, texts: Mapping[str, str]) -> float:
        """Return by how much a comparison fails with these values; 0: it holds; infinite: a side has no value."""
        if self.holds(texts):
            return 0.0
        assert isinstance(self.tree, ast.Compare), "only comparisons fail"
        try:
            amounts = [_compute(side, texts) for side in (self.tree.left, *self.tree.comparators)]
        except (ZeroDivisionError, OverflowError, NoValue):
            return math.inf
        failed = [
            abs(first - second) or _LEAST_EXCESS
            for first, sign, second in zip(amounts, self.tree.ops, amounts[1:], strict=False)
            if not _SIGNS[type(sign)](first, second)
        ]
        return math.fsum(failed) if all(map(math.isfinite, failed)) else math.inf

    def holds(self, texts: Mapping[str, str]) -> bool:
        """Return True when a comparison holds; False also when a side has no value."""
        try:
            return bool(self.compute(texts))
        except NoValue:
            return False


@functools.lru_cache(maxsize=256)
def parse_formula(text: str) -> Formula:
    """Return a formula.

    Example: `parse_formula("{{layers}} * 64").compute({"layers": "2"})` is 128.

    Raises:
        BadText: it is none.
    """
    tree = _parse(text)
    if isinstance(tree, ast.Compare):
        raise BadText(f"{quote_text(text)} is a comparison", "write a number, or a formula such as {{layers}} * 64")
    return Formula(tree, tuple(dict.fromkeys(_check(tree, text))))


@functools.lru_cache(maxsize=256)
def parse_comparison(text: str) -> Formula:
    """Return a comparison of formulas; its value is true or false.

    Example: `parse_comparison("units * layers <= 512").holds({"units": "64", "layers": "9"})` is False.

    Raises:
        BadText: it is none.
    """
    tree = _parse(text)
    if isinstance(tree, ast.BoolOp):
        raise BadText(f"{quote_text(text)} has several conditions", "write each as an item of its own: all must hold")
    if not isinstance(tree, ast.Compare):
        raise BadText(f"{quote_text(text)} compares nothing", "write it like units * layers <= 512")
    names: list[str] = []
    for side in (tree.left, *tree.comparators):
        names += _check(side, text)
    if any(type(sign) not in _SIGNS for sign in tree.ops):
        raise BadText(f"{quote_text(text)} has a sign that riseml does not know", "use < <= > >= == !=")
    return Formula(tree, tuple(dict.fromkeys(names)))


def read_amount(text: str) -> Number | None:
    """Return a text as the number that it stands for; None for another text."""
    try:
        number = parse_number(text)
    except BadText:
        return None
    return float(number) if isinstance(number, Decimal) else number


def _parse(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise BadText(f"the formula has {len(text)} characters", f"at most {_LONGEST} are allowed")
    pieces: list[str] = []
    names: dict[str, str] = {}
    last = 0
    for name, start, end in find_placeholders(text):
        stand_in = _NAME.format(len(names))
        names[stand_in] = name
        pieces += [text[last:start], stand_in]
        last = end
    written = re.sub(r"\s+", " ", "".join([*pieces, text[last:]])).strip()
    try:
        tree = ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadText(f"{quote_text(text)} is not a formula", f"a formula has {_ALLOWED}") from error
    return _NameBack(names).visit(tree)  # type: ignore[no-any-return]  # a transformer of expressions


class _NameBack(ast.NodeTransformer):
    """Puts the names of placeholders back, and joins the parts of `optimizer.lr`."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self._names.get(node.id, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        inner = self.visit(node.value)
        return ast.Name(f"{inner.id}.{node.attr}") if isinstance(inner, ast.Name) else node


def _check(node: ast.expr, text: str) -> list[str]:
    """Return the names in an expression.

    Raises:
        BadText: it has something else than numbers, names and the operators of the tables.
    """
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return []
        case ast.Name(id=name):
            return [name]
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return [*_check(left, text), *_check(right, text)]
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in _UNARY:
            return _check(inner, text)
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in _CALLS and len(parts) > 1:
            return [inner for part in parts for inner in _check(part, text)]
    raise BadText(f"{quote_text(text)} is not a formula that riseml computes", f"a formula has {_ALLOWED}")


def _compute(node: ast.expr, texts: Mapping[str, str]) -> Number:
    match node:
        case ast.Constant(value=value):
            return value  # type: ignore[return-value]  # `_check` has seen that it is a number
        case ast.Name(id=name):
            amount = read_amount(texts[name])
            if amount is None:
                raise NoValue(f"{name} is no number")
            return amount
        case ast.BinOp(left=left, op=sign, right=right):
            return _BINARY[type(sign)](_compute(left, texts), _compute(right, texts))
        case ast.UnaryOp(op=sign, operand=inner):
            return _UNARY[type(sign)](_compute(inner, texts))
        case ast.Call(func=ast.Name(id=name), args=parts):
            return _CALLS[name](_compute(part, texts) for part in parts)
        case ast.Compare(left=left, ops=signs, comparators=sides):
            amounts = [_compute(side, texts) for side in (left, *sides)]
            pairs = zip(amounts, signs, amounts[1:], strict=False)
            return all(_SIGNS[type(sign)](first, second) for first, sign, second in pairs)
    raise AssertionError(f"{node} was not checked")
