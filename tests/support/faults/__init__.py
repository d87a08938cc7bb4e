"""Faults in system calls, for tests/faults: a call fails, does half of its work, or is a process's last.

tracer.c        follows a process under ptrace and injects one fault
tracing.py      compiles it, and runs functions of this process in a forked child under it
scenarios.py    commands, with the files that they work on
trials.py       the faults to inject, and the checks after each
run.py          the program: one process that has imported all modules forks one child per trial
"""
