"""The functions of the library. They are for the package `lamo` alone, and may change without notice."""

from os import PathLike
from typing import Callable, List, Optional, Sequence, Tuple, Union, final

import numpy as np
import numpy.typing as npt

_Path = Union[str, PathLike[str]]
_Listener = Optional[Callable[[str], object]]
_NamedArrays = List[Tuple[str, npt.NDArray[np.float32]]]
_FieldFiles = Tuple[str, str, str, bool, Optional[str], Sequence[_Path]]

__all__ = [
    "Model",
    "cache_folder",
    "check_dataset",
    "compare",
    "describe_dataset",
    "evaluate",
    "explain",
    "history",
    "import_files",
    "is_run",
    "listing",
    "main",
    "make",
    "resume",
    "train",
    "version",
]

def version() -> str: ...
def main(arguments: Sequence[str]) -> int: ...
def listing() -> str: ...
@final
class Model:
    def __new__(cls, path: _Path) -> Model: ...
    def describe(self) -> str: ...
    def predict(
        self,
        inputs: Sequence[bytes],
        snapshots: Optional[int],
        symmetries: bool,
        memory: Optional[int],
        device: str,
    ) -> Tuple[List[_NamedArrays], List[str]]: ...
    def weights(self) -> _NamedArrays: ...
    def weights_sha256(self) -> str: ...

def cache_folder() -> Optional[PathLike[str]]: ...
def describe_dataset(folder: _Path) -> str: ...
def check_dataset(folder: _Path) -> str: ...
def make(
    problem: str,
    changes: Sequence[str],
    seed: int,
    samples: int,
    out: Optional[_Path],
    listener: _Listener,
) -> PathLike[str]: ...
def import_files(
    name: str,
    grid: Tuple[str, Sequence[int], Sequence[int]],
    fields: Sequence[_FieldFiles],
    times: Optional[_Path],
    windows: Optional[Tuple[int, int, int]],
    sizes: Tuple[Optional[int], Optional[int], Optional[int], bool],
    out: _Path,
    listener: _Listener,
) -> None: ...
def train(
    what: str,
    model: Optional[str],
    init: Optional[_Path],
    preset: Optional[str],
    data: Optional[_Path],
    device: str,
    changes: Sequence[str],
    out: Optional[_Path],
    saving: float,
    minutes: Optional[float],
    listener: _Listener,
) -> str: ...
def resume(
    run: _Path, data: Optional[_Path], device: Optional[str], saving: float, listener: _Listener
) -> str: ...
def history(folder: _Path) -> str: ...
def evaluate(
    run: _Path,
    data: Optional[_Path],
    symmetries: bool,
    device: str,
    folder: Optional[_Path],
    listener: _Listener,
) -> Tuple[str, _NamedArrays, _NamedArrays]: ...
def compare(runs: Sequence[_Path]) -> Tuple[str, Optional[bytes]]: ...
def explain(
    model: _Path,
    data: Optional[_Path],
    sample: int,
    point: Optional[int],
    channel: int,
    device: str,
    folder: _Path,
    listener: _Listener,
) -> Tuple[PathLike[str], str]: ...
def is_run(folder: _Path) -> bool: ...
def pretrained_receipt(name: str) -> Optional[str]: ...
