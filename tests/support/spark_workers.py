"""The daemon of PySpark's workers, without a collection of garbage that takes longer than a task's work.

After each task, PySpark's daemon has a worker search all of its objects for garbage: 30 ms with Arrow and pandas
imported, and the tests run thousands of tasks on small files. Here objects are left out of the searches once a task
has ended.
"""

from __future__ import annotations

import gc
from typing import Any

from pyspark import daemon

_work = daemon.worker


def _worker(*arguments: Any) -> int:
    code: int = _work(*arguments)
    gc.freeze()
    return code


if __name__ == "__main__":
    daemon.worker = _worker
    daemon.manager()
