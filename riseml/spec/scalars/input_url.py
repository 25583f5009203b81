"""The address of an input: `output://4/model`, a part of the output of another experiment or of a set."""

from __future__ import annotations

from riseml.base.errors import UsageError
from riseml.base.names import CanonicalId, parse_id
from riseml.base.records import dataclass
from riseml.spec.scalars.texts import BadText, quote_text

SCHEME = "output://"
_HINT = "write output://4/model, with the ID of an experiment or a set, and a path in its output"
_LONGEST_NAME = 255  # bytes of a name in a folder


@dataclass(frozen=True, slots=True)
class InputUrl:
    """An address that was checked."""

    experiment: CanonicalId  # an experiment or a set
    path: str  # in its output; empty: all of it

    def __str__(self) -> str:
        return f"{SCHEME}{self.experiment}/{self.path}" if self.path else f"{SCHEME}{self.experiment}"


def parse_input_url(text: str) -> InputUrl:
    """Return the parts of an address. A final `/` means nothing.

    Raises:
        BadText: it is not an address, names a job, or has a path that leads out.
    """
    if not text.startswith(SCHEME):
        raise BadText(f"{quote_text(text)} is not the output of an experiment", _HINT)
    identity, *names = text.removeprefix(SCHEME).removesuffix("/").split("/")
    try:
        experiment = parse_id(identity)
    except UsageError:
        raise BadText(f"{quote_text(identity)} is not the ID of an experiment", _HINT) from None
    if experiment.job is not None:
        raise BadText(
            f"{quote_text(identity)} names a job", f"all jobs share one output: {SCHEME}{experiment.experiment}"
        )
    for name in names:
        if name in ("", ".", ".."):
            hint = "write each name of the path once, without . and .."
            raise BadText(f"the address has the name {quote_text(name)} in it", hint)
        if not name.isprintable() or "\\" in name or len(name.encode()) > _LONGEST_NAME:
            raise BadText(f"{quote_text(name)} is not a name that a file can have", "")
    return InputUrl(experiment, "/".join(names))
