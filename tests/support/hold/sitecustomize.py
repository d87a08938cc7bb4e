"""A Python with this folder on its path stops, once, as it is about to give a finished file its name.

`HOLDFOLDER` names a folder and `HOLDAFTER` how many files come first, over all processes that share the folder.
The one that stops leaves its process id there (see `support.processes.held`), as after a machine's sudden stall:
whoever waits for it has all the time it needs.
"""

import os
import signal
import sys

_FOLDER = os.environ.get("HOLDFOLDER")


def _hold(event: str, args: tuple[object, ...]) -> None:
    if event not in ("os.rename", "os.link") or not str(args[0]).endswith(".tmp"):
        return
    assert _FOLDER is not None
    with open(os.path.join(_FOLDER, f"{os.getpid()}-{len(os.listdir(_FOLDER))}"), "xb"):  # noqa: PTH118, PTH123, PTH208
        pass
    if len(os.listdir(_FOLDER)) <= int(os.environ["HOLDAFTER"]):  # noqa: PTH208
        return
    try:
        fd = os.open(os.path.join(_FOLDER, "held"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)  # noqa: PTH118
    except FileExistsError:
        return
    os.write(fd, str(os.getpid()).encode())
    os.close(fd)
    os.kill(os.getpid(), signal.SIGSTOP)


if _FOLDER is not None:
    sys.addaudithook(_hold)
