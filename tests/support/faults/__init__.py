"""System calls that fail, do half of their work, or are a process's last: what tests/faults does to bloom.

tracer.c        follows a process under ptrace and injects one fault
tracing.py      compiles it, and runs functions of this process in a forked child under it
scenarios.py    commands, with the files that they work on
trials.py       which faults are injected, and what has to hold after each
run.py          the program: one process that has everything imported forks one child a trial
"""
