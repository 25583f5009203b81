"""The functions of `riseml` for programs with asyncio: `from riseml import aio`, `await aio.submit("riseml.yml")`.

Each call runs in a thread of its own, so that a program may wait for many runs at the same time. What is cancelled
ends within about a second; the run goes on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from riseml.base.records import dataclass
from riseml.python_api import public
from riseml.python_api.runs import CommandResult, Deadline, MetricPoint, Run, RunJob, RunLine

if TYPE_CHECKING:
    from riseml import wire
    from riseml.python_api.outputs import RunOutput
    from riseml.python_api.results import Results

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True)
class AsyncRun:
    """A run whose methods are awaited; `run` has the same methods for a program without asyncio."""

    run: Run

    @property
    def id(self) -> str:
        return self.run.id

    @property
    def output(self) -> RunOutput:
        return self.run.output

    async def view(self) -> wire.ExperimentView:
        return await _call(self.run.view)

    async def state(self) -> str:
        return (await self.view())["state"]

    async def is_over(self) -> bool:
        return await _call(lambda: self.run.is_over)

    async def parameters(self) -> dict[str, str]:
        return await _call(lambda: self.run.parameters)

    async def jobs(self) -> list[RunJob]:
        return await _call(lambda: self.run.jobs)

    async def experiments(self) -> list[AsyncRun]:
        return [AsyncRun(part) for part in await _call(lambda: self.run.experiments)]

    async def wait(self, timeout: float | None = None, *, check: bool = True) -> AsyncRun:
        """Wait until it has ended; see `Run.wait`."""
        deadline = Deadline(timeout, f"experiment {self.id}")
        await _call(partial(self.run.wait_until, deadline, check=check), deadline.leave)
        return self

    async def logs(
        self, *, follow: bool = True, tail: int | None = None, timeout: float | None = None
    ) -> AsyncIterator[RunLine]:
        """Yield the lines of its jobs; see `Run.logs`."""
        deadline = Deadline(timeout, f"the log of experiment {self.id}")
        lines = self.run.logs_until(deadline, follow=follow, tail=tail)
        try:
            while (line := await _call(partial(next, lines, None), deadline.leave)) is not None:
                yield line
        finally:
            deadline.leave()

    async def metrics(self) -> dict[str, float]:
        return await _call(self.run.metrics)

    async def curve(self, metric: str) -> list[MetricPoint]:
        return await _call(partial(self.run.curve, metric))

    async def results(self, where: str | Sequence[str] = (), sort: str = "") -> Results:
        return await _call(partial(self.run.results, where, sort))

    async def returned(self) -> Any:
        return await _call(self.run.returned)

    async def kill(self) -> AsyncRun:
        await _call(self.run.kill)
        return self

    async def annotate(self, *, name: str | None = None, note: str | None = None, tags: Sequence[str] = ()) -> AsyncRun:
        await _call(partial(self.run.annotate, name=name, note=note, tags=tags))
        return self

    async def rerun(self, parameters: Mapping[str, object] | None = None, **options: Any) -> AsyncRun:
        return AsyncRun(await _call(partial(self.run.rerun, parameters, **options)))

    async def exec(self, command: Sequence[str], job: str | None = None, *, stdin: bytes = b"") -> CommandResult:
        return await _call(partial(self.run.exec, command, job, stdin=stdin))


def _make_async(function: Callable[Arguments, Run]) -> Callable[Arguments, Any]:
    async def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> AsyncRun:
        return AsyncRun(await _call(partial(function, *arguments, **named)))

    call.__name__ = function.__name__
    call.__doc__ = function.__doc__
    return call


submit = _make_async(public.submit)
search = _make_async(public.search)
map = _make_async(public.map)  # it is used as `aio.map`
get = _make_async(public.get)


async def runs(**conditions: Any) -> list[AsyncRun]:
    """Return experiments and sets, the newest first; see `riseml.runs`."""
    return [AsyncRun(run) for run in await _call(partial(public.runs, **conditions))]


async def compare(*identities: int | str) -> wire.ComparisonView:
    """Return what differs between experiments; see `riseml.compare`."""
    return await _call(partial(public.compare, *identities))


async def results(*identities: int | str, **conditions: Any) -> Results:
    """Return the results of experiments; see `riseml.results`."""
    from riseml.python_api.results import load_results

    return await _call(partial(load_results, *identities, **conditions))


async def _call(function: Callable[[], Answer], leave: Callable[[], object] = lambda: None) -> Answer:
    """Return what a function returns, which runs in a thread of its own; `leave` is called on cancellation."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def settle(value: Answer | None, error: BaseException | None) -> None:
        if answer.done():  # the call was cancelled
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(value)  # type: ignore[arg-type]  # without an error it is what the function returned

    def run() -> None:
        value: Answer | None = None
        error: BaseException | None = None
        try:
            value = function()
        except BaseException as raised:  # noqa: BLE001  # the caller gets it
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name="riseml call", daemon=True).start()
    try:
        return await answer
    except asyncio.CancelledError:
        leave()
        raise
