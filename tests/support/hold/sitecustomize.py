"""With this folder on its path, Python waits or stops just before it gives a finished file its name.

`HOLDPAUSE` is the wait at each file, in seconds. `HOLDFOLDER` names a folder, and `HOLDAFTER` is the number of files
before the stop, over all processes that share the folder: the stopped process writes its process id there (see
`support.processes.held`). Tests then act while a writer is at work.
"""

import os
import signal
import sys
import time

_FOLDER = os.environ.get("HOLDFOLDER")
_PAUSE = float(os.environ.get("HOLDPAUSE", "0"))


def _hold(event: str, args: tuple[object, ...]) -> None:
    if event in ("os.rename", "os.link") and str(args[0]).endswith(".tmp") and not str(args[1]).endswith(".tmp"):
        if _FOLDER is not None:
            _stop_once(_FOLDER)
        time.sleep(_PAUSE)


def _stop_once(folder: str) -> None:
    come = len(os.listdir(folder))  # noqa: PTH208
    with open(os.path.join(folder, f"{os.getpid()}-{come}"), "xb"):  # noqa: PTH118, PTH123
        pass
    if come < int(os.environ["HOLDAFTER"]):
        return
    try:
        fd = os.open(os.path.join(folder, "held"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)  # noqa: PTH118
    except FileExistsError:
        return
    os.write(fd, str(os.getpid()).encode())
    os.close(fd)
    os.kill(os.getpid(), signal.SIGSTOP)


if _FOLDER is not None or _PAUSE:
    sys.addaudithook(_hold)
