"""The same inner loops in C, for those who ask for them: GTR_TURBO_NATIVE=1 and a C compiler.

Nothing needs them. They are built once into the user's cache directory, and give the same bits as
the loops in `kernels` some times faster. Without the variable no compiler is ever started.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Final, final

import numpy as np

SWITCH: Final = "GTR_TURBO_NATIVE"
_SOURCE: Final = Path(__file__).with_name("kernels.c")
# Contraction would round differently; traps, which nothing here uses, would keep loops scalar.
_FLAGS: Final = (
    "-O3",
    "-march=native",
    "-ffp-contract=off",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
)


@final
class NativeKernels:
    """The loops of a built library."""

    def __init__(self, path: Path) -> None:
        """Load the library at `path`."""
        self._library = ctypes.CDLL(str(path))
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._library.gtr_add.argtypes = [pointer, size, ctypes.c_float, *[pointer] * 4]
        self._library.gtr_finish.argtypes = [*[pointer] * 4, size, pointer]
        self._library.gtr_subtract.argtypes = [pointer, pointer, size, pointer]
        self._library.gtr_apply.argtypes = [pointer, pointer, size, pointer]
        for loop in (self._library.gtr_add, self._library.gtr_finish, self._library.gtr_subtract):
            loop.restype = None
        self._library.gtr_apply.restype = ctypes.c_int

    def add(
        self,
        change: np.ndarray,
        threshold: float,
        masses: tuple[np.ndarray, np.ndarray],
        counts: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Add the kept entries of `change` with weight 1 to masses and counts, in place."""
        pointers = [own.ctypes.data for own in (*masses, *counts)]
        self._library.gtr_add(change.ctypes.data, change.size, threshold, *pointers)

    def finish(
        self,
        masses: tuple[np.ndarray, np.ndarray],
        counts: tuple[np.ndarray, np.ndarray],
        result: np.ndarray,
    ) -> None:
        """Write the mean of the elected sign into `result`."""
        pointers = [own.ctypes.data for own in (*masses, *counts)]
        self._library.gtr_finish(*pointers, result.size, result.ctypes.data)

    def subtract(self, values: np.ndarray, reference: np.ndarray, out: np.ndarray) -> None:
        """Write the float32 difference of two bfloat16 arrays into `out`."""
        self._library.gtr_subtract(
            values.ctypes.data, reference.ctypes.data, out.size, out.ctypes.data
        )

    def apply(self, base: np.ndarray, delta: np.ndarray, result: np.ndarray) -> bool:
        """Write bfloat16 base + float32 delta, rounded, into `result`; return if all is finite."""
        pointers = (base.ctypes.data, delta.ctypes.data)
        return bool(self._library.gtr_apply(*pointers, result.size, result.ctypes.data))


def can_handle(mass: np.ndarray, count: np.ndarray) -> bool:
    """Return whether sums have the types of the C loops: float32 masses, uint8 counts."""
    return mass.dtype == np.float32 and count.dtype == np.uint8


@functools.cache
def native_kernels() -> NativeKernels | None:
    """Return the loops if they were asked for and can be built, else None with a warning."""
    if os.environ.get(SWITCH) != "1":
        return None
    compiler = shutil.which("cc")
    if compiler is None:
        warnings.warn(f"{SWITCH} is set, but there is no C compiler (cc).", stacklevel=2)
        return None
    return NativeKernels(build(compiler, cache_directory()))


def cache_directory() -> Path:
    """Return where built loops are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "gtr-turbo"


def build(compiler: str, directory: Path) -> Path:
    """Return the library for this machine and source, built if it is not in `directory` yet."""
    key = "\0".join([_SOURCE.read_text(encoding="utf-8"), *_FLAGS, platform.node(), compiler])
    path = directory / f"kernels-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if not path.is_file():
        directory.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}.new")
        subprocess.run([compiler, *_FLAGS, "-o", str(beside), str(_SOURCE)], check=True)
        beside.replace(path)
    return path
