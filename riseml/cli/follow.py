"""Stream an experiment's log to its end: what `train` and `logs` share. `reviver` is for all that watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from riseml.cli.output.lines import LogText, describe_end, log_width, paint_state
from riseml.cli.tools import Exit, Tools
from riseml.client import LogQuery
from riseml.errors import ExperimentFailed, Interrupted, Unreachable

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client import Client

_OTHERS_TURN = 3  # vain tries (about a second) before this command starts the server itself
_EXIT_CODES = {"FINISHED": 0, "FAILED": ExperimentFailed.exit_code, "KILLED": Interrupted.exit_code}


@dataclass(frozen=True, slots=True)
class View:
    """How a log is shown. `long`: with all jobs at the end."""

    json: bool = False
    long: bool = False


def stream(
    tools: Tools, client: Client, experiment: wire.ExperimentView, view: View, query: LogQuery | None = None
) -> wire.EndEntry | None:
    """Print the log; its end, None when it was not followed so far.

    Raises:
        Exit: Ctrl-C. It leaves the log and not the experiment.
        Unreachable: no news for too long.
    """
    render = tools.render
    text = LogText(render.colour, log_width(experiment))
    query = replace(query or LogQuery(), batch=not view.json)
    end: wire.EndEntry | None = None
    try:
        for entry in client.logs(experiment["id"], query, reviver(tools, client)):
            if view.json:
                render.json(entry)
            if entry["type"] == "end":
                end = entry
            elif not view.json and entry["type"] != "ping":
                render.print(*text.lines(entry))
        if end is not None and not view.json:
            _print_end(tools, client, end, view)
    except KeyboardInterrupt:
        identity = experiment["id"]
        render.say(
            "",
            f"Experiment {identity} will continue in background."
            f" Type `riseml logs {identity}` to connect to the log stream again.",
        )
        raise Exit(Interrupted.exit_code) from None
    except Unreachable as error:
        raise Unreachable(
            f"the log of experiment {experiment['id']} was cut, the experiment itself was not: {error.message}",
            error.hint,
        ) from error
    return end


def exit_code(end: wire.EndEntry | None) -> int:
    """The exit code that stands for an end."""
    return 0 if end is None else _EXIT_CODES[end["state"]]


def reviver(tools: Tools, client: Client) -> Callable[[int], None]:
    """What is done when the server is lost: say so once, and start the user's own server when nobody else does."""

    def revive(tries: int) -> None:
        if tries == 0:
            tools.render.say("Lost the riseml server; connecting again. The experiment goes on.")
        if tries == _OTHERS_TURN and client.address.socket is not None:
            from riseml.cli.local import ensure

            ensure(client, tools.settings())

    return revive


def _print_end(tools: Tools, client: Client, end: wire.EndEntry, view: View) -> None:
    from riseml.cli.output.views import print_experiment

    experiment = client.persist(lambda: client.experiment(end["id"]), reviver(tools, client))
    first, *more = describe_end(end, experiment)
    tools.render.print(paint_state(end["state"], first, colour=tools.render.colour))
    if view.long:
        print_experiment(tools.render, experiment, tools.now(), long=True)
    else:
        tools.render.print(*more)
