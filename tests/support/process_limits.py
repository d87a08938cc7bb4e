"""Programs with a limit on processes and threads: a real limit, or a system that refuses to start them.

`ulimit -u` (RLIMIT_NPROC) counts a user's threads. It doesn't apply to root, so the program first becomes another
user, which runs nothing else, and keeps the right to read the same files. Without root, and for limits other than a
number, a seccomp filter lets the system refuse threads, processes or both, which needs no rights.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

_DROP: Final = """
import ctypes, os, resource, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result:
        raise OSError(ctypes.get_errno(), "this process can't be limited")
def become(user):  # Source: capabilities(7); CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
    kept = 0b1111
    check(libc.prctl(28, 4, 0, 0, 0))  # PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP: access(2) asks them too
    os.setgroups([])
    os.setuid(user)
    header, data = struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", kept, kept, kept, 0, 0, 0)
    check(libc.capset(header, data))
    for capability in range(4):
        check(libc.prctl(47, 2, capability, 0, 0))  # PR_CAP_AMBIENT_RAISE: for the programs that it starts
"""

_ULIMIT: Final = (
    _DROP
    + """
become({user})
resource.setrlimit(resource.RLIMIT_NPROC, ({count}, {count}))
"""
)

_REFUSE: Final = """
import ctypes, errno, platform, struct
# Source: seccomp(2), clone(2) and linux/filter.h; the numbers of the calls are the architecture's.
CLONE, CLONE3, FORKS = {{"x86_64": (56, 435, (57, 58)), "aarch64": (220, 435, ())}}[platform.machine()]
THREAD, FAIL, ALLOW = 0x10000, 0x50000, 0x7FFF0000
def when(number, then):
    return [(0x15, 0, len(then), number), *then]
again, unknown = (6, 0, 0, FAIL | errno.EAGAIN), (6, 0, 0, FAIL | errno.ENOSYS)
code = [(0x20, 0, 0, 0)]
code += when(CLONE3, [unknown])  # its flags lie in memory: the C library uses clone then
for number in FORKS if {processes} else ():
    code += when(number, [again])
flags = [(0x20, 0, 0, 16), (0x45, {if_thread}, {if_process}, THREAD), again, (6, 0, 0, ALLOW)]
code += when(CLONE, flags)
code.append((6, 0, 0, ALLOW))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
program = Program(len(code), b"".join(struct.pack("=HBBI", *step) for step in code))
for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.byref(program), 0, 0)):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
    if libc.prctl(*arguments):
        raise OSError(ctypes.get_errno(), "no seccomp filter can be set")
"""


def ulimit(count: int) -> str:
    """Code at a program's start that limits its processes and threads to `count`. Only for root."""
    return _ULIMIT.format(count=count, user=100_000 + os.getpid())


def refusing(*, threads: bool, processes: bool) -> str:
    """Code at a program's start that lets the system refuse threads, processes or both."""
    # a jump over `again` has 1 step, a jump to it none: (if the flag is set, if it isn't)
    return _REFUSE.format(processes=processes, if_thread=int(not threads), if_process=int(not processes))


def bloom(start: str, *arguments: object, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    """Run the command line in a program with this start. Raises subprocess.TimeoutExpired if it hangs."""
    return run(start, "from bloomcli.cli import run; sys.exit(run(sys.argv[1:]))", *arguments, seconds=seconds)


def run(start: str, program: str, *arguments: object, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    """Run a program with this start, in a separate process group, so that all its processes can be ended."""
    command = [sys.executable, "-c", f"{start}\nimport sys\n{program}", *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, 9)
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
