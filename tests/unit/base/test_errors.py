"""The errors have the exit codes and the statuses that their table says, and advice on files that cannot be written."""

from __future__ import annotations

import errno
import re

from riseml.base import errors
from riseml.base.errors import RisemlError, advise_on_write
from riseml.spec.yaml.problems import SpecError

KINDS: dict[str, type[RisemlError]] = {**vars(errors), "SpecError": SpecError}


def test_each_error_of_the_table_has_its_exit_code_and_its_status() -> None:
    rows = re.findall(r"^ +[x-] (\w+) +(\d+) / (\d+) ", errors.__doc__ or "", re.MULTILINE)
    assert len(rows) > 10
    kinds = [KINDS[name] for name, _, _ in rows]
    assert [(kind.__name__, str(kind.exit_code), str(kind.http_status)) for kind in kinds] == rows


def test_an_error_is_its_message_and_may_have_a_hint() -> None:
    error = errors.EngineError("gpu1 refused it", "start its engine", permanent=True)
    assert (str(error), error.hint, error.permanent) == ("gpu1 refused it", "start its engine", True)
    assert errors.NotFound("there is no experiment 4").hint is None


def test_a_full_disk_is_advised_as_one() -> None:
    assert advise_on_write(OSError(errno.ENOSPC, "No space left on device")) == "free some space there"


def test_a_folder_that_cannot_be_written_is_to_be_replaced() -> None:
    assert advise_on_write(OSError(errno.EACCES, "Permission denied")).startswith("name a folder that is there")
