"""The list of frameworks. A new one is a module beside this one and one line here."""

from __future__ import annotations

from riseml.base.errors import UsageError
from riseml.base.names import UNNAMED_FRAMEWORKS
from riseml.frameworks.base import Framework
from riseml.frameworks.horovod import HorovodPlugin
from riseml.frameworks.jax import Jax
from riseml.frameworks.plain import Plain
from riseml.frameworks.pytorch import Pytorch
from riseml.frameworks.roles import Roles
from riseml.frameworks.tensorflow import Tensorflow
from riseml.spec.config.types import Train

FRAMEWORKS: tuple[Framework, ...] = (Plain(), HorovodPlugin(), Jax(), Pytorch(), Roles(), Tensorflow())


def choose_framework(train: Train) -> Framework:
    """Return the plug-in that a file asks for.

    Raises:
        UsageError: this version has no such plug-in.
    """
    for section in (train.tensorflow, train.pytorch):
        if section is not None and section.horovod is not None:
            return find_framework("horovod")  # in riseml.yml a part of these sections, here a separate framework
    return find_framework("roles" if train.roles else train.framework or "plain")


def find_framework(name: str) -> Framework:
    """Return the plug-in with this name.

    Raises:
        UsageError: this version has no such plug-in.
    """
    for framework in FRAMEWORKS:
        if framework.name == name:
            return framework
    names = ", ".join(framework.name for framework in FRAMEWORKS if framework.name not in UNNAMED_FRAMEWORKS)
    raise UsageError(
        f"this version of riseml cannot run the framework {name!r}", f"it runs {names}, and any `image` without one"
    )
