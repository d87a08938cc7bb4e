"""Build the one compiled module: portable -O3, never tuned to the machine that builds the wheel."""

from __future__ import annotations

import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-g0", "-fno-math-errno"]

setup(
    ext_modules=cythonize(
        [Extension("bloomcli.kernels.compiled", ["bloomcli/kernels/compiled.pyx"], extra_compile_args=FLAGS)],
        language_level=3,
    )
)
