"""Exceptions by kind. Each message is the sentence that the command `lamo` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Optional, Type

if TYPE_CHECKING:
    from ._run import Run


class Error(Exception):
    """Base of all errors of lamo."""


class InputError(Error, ValueError):
    """A setting, an array or a file does not hold what it must."""


class MissingError(Error, FileNotFoundError):
    """A file, a field or a name does not exist."""


class ConflictError(Error):
    """Two things do not go together: a folder in use, data that changed, a checkpoint of another experiment."""


class DeviceError(Error):
    """The device is absent, lost or out of memory."""


class DivergedError(Error, ArithmeticError):
    """The training broke: the loss, a parameter or the test error is not finite."""


class OutOfSpaceError(Error, OSError):
    """The disk is full, or the memory of the machine is too small."""


class FailedError(Error):
    """The job ran to its end and its result does not hold, such as predictions that are not finite."""


class InternalError(Error, RuntimeError):
    """Anything else, such as an I/O error of the system."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a job, which has saved its work.

    After a training, `run` is the saved run: `lamo.train(resume=error.run)` continues it to the same bits.
    """

    run: Optional[Run] = None


BY_KIND: Dict[str, Type[BaseException]] = {
    "bad-input": InputError,
    "missing": MissingError,
    "conflict": ConflictError,
    "device": DeviceError,
    "diverged": DivergedError,
    "out-of-space": OutOfSpaceError,
    "cancelled": Interrupted,
    "failed": FailedError,
    "internal": InternalError,
}
