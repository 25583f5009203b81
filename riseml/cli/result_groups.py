"""`results --group` and `results --compare`: points over their seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.analysis.groups import Group, GroupRun
from riseml.analysis.seed_statistics import Spread
from riseml.base.errors import UsageError
from riseml.base.names import find_whole

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext


def print_comparison(command: CommandContext, groups: wire.GroupList, names: Sequence[str], *, json: bool) -> None:
    """Print whether the two groups that IDs name differ.

    Raises:
        UsageError: an ID names no group or several, or both name the same one.
    """
    from riseml.analysis.group_comparison import compare_groups
    from riseml.cli.output.groups_view import list_comparison, show_comparison

    first, second = (_choose_group(groups["groups"], name) for name in names)
    if first is second:
        raise UsageError(f"{names[0]} and {names[1]} are runs of the same point", "name runs of two points")
    comparison = compare_groups(_read_group(first), _read_group(second), groups["column"])
    pair = (first, second)
    if json:
        command.printer.print_json(show_comparison(pair, comparison, groups["column"]))
    else:
        command.printer.print_lines(list_comparison(pair, comparison, groups["column"], command.printer.style))


def check_compared(names: Sequence[str], options: Mapping[str, object]) -> None:
    """Refuse `--compare` with another number of IDs than two, or beside options that have no meaning for it.

    Raises:
        UsageError: the command is one of these.
    """
    if len(names) != 2:
        raise UsageError(f"--compare takes two IDs, not {len(names)}", "`riseml results --compare 144 145`")
    if names[0] == names[1]:
        raise UsageError(f"--compare would compare {names[0]} with itself", "name two sets, or runs of two points")
    for option, value in options.items():
        if value:
            raise UsageError(f"--compare and {option} exclude each other", "leave one of them out")


def _choose_group(groups: Sequence[wire.GroupView], name: str) -> wire.GroupView:
    named = [group for group in groups if name in group["ids"]]
    named = named or [group for group in groups if find_whole(group["ids"][0]) == name]
    if len(named) == 1:
        return named[0]
    if not named:
        raise UsageError(f"{name} is none of these experiments", "name a set, or one of its runs")
    some = ", ".join(f"{group['ids'][0]} ({_show_point(group)})" for group in named[:4])
    more = ", ..." if len(named) > 4 else ""
    raise UsageError(f"{name} has {len(named)} points, and two are compared", f"name a run of one: {some}{more}")


def _show_point(group: wire.GroupView) -> str:
    return " ".join(f"{name}={text}" for name, text in group["parameters"].items())


def _read_group(view: wire.GroupView) -> Group:
    spread = None if view["mean"] is None else Spread(view["n"], view["mean"], view["deviation"])
    return Group(
        names=tuple(view["ids"]),
        parameters=view["parameters"],
        runs=tuple(GroupRun(run["id"], run["seed"] or "", run["value"]) for run in view["runs"]),
        spread=spread,
        failed=view["failed"],
        stopped=view["stopped"],
        unfinished=view["unfinished"],
        beyond=view["beyond"],
    )
