/* Runs a process and everything it forks under ptrace, and lets one system call fail, do half its work, or be the
 * process's last. Other programs that it starts are let go. Compiled by the tests (see tracing.py); Linux on x86-64.
 *
 * A call is known by its number, the names of the files it is about, and the how manieth of its kind it is. Names of
 * temporary files differ from run to run: digits of random numbers are replaced by one asterisk before names are
 * compared.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the registers of system calls are known for x86-64 only"
#endif

enum action { NOTHING, KILL, KILL_ALL, ERROR, LATE_ERROR, SHORT };
enum shape { REST, PATH, AT, TWO_PATHS, TWO_AT, FD, TWO_FDS, MAP };

#define NAMES (2 * PATH_MAX + 2)
#define TASKS 512

struct plan {
    long action;
    long number;      /* of the system call */
    long occurrence;  /* from 0 on */
    long error;       /* errno */
    long deadline;    /* seconds until everything is killed */
    char names[NAMES];
};

struct outcome {
    long status;   /* wait status of the first process */
    long fired;    /* whether the plan came to pass */
    long overdue;  /* whether the deadline did */
    long task;     /* whose call it was */
};

#define CALL(name, shape, count) {SYS_##name, #name, shape, count}

static const struct { long number; const char *name; enum shape shape; int count; } SHAPES[] = {
    /* the argument that says how many bytes, for calls that may do less; 0 for others */
    CALL(read, FD, 2), CALL(pread64, FD, 2), CALL(write, FD, 2), CALL(pwrite64, FD, 2),
    CALL(readv, FD, 0), CALL(preadv, FD, 0), CALL(writev, FD, 0), CALL(pwritev, FD, 0),
    CALL(copy_file_range, TWO_FDS, 4), CALL(sendfile, TWO_FDS, 3), CALL(splice, FD, 0),
    CALL(open, PATH, 0), CALL(creat, PATH, 0), CALL(openat, AT, 0), CALL(close, FD, 0),
    CALL(stat, PATH, 0), CALL(lstat, PATH, 0), CALL(fstat, FD, 0), CALL(newfstatat, AT, 0), CALL(statx, AT, 0),
    CALL(access, PATH, 0), CALL(faccessat, AT, 0), CALL(faccessat2, AT, 0),
    CALL(readlink, PATH, 0), CALL(readlinkat, AT, 0), CALL(getdents64, FD, 0), CALL(statfs, PATH, 0),
    CALL(fstatfs, FD, 0), CALL(rename, TWO_PATHS, 0), CALL(renameat, TWO_AT, 0), CALL(renameat2, TWO_AT, 0),
    CALL(link, TWO_PATHS, 0), CALL(linkat, TWO_AT, 0), CALL(unlink, PATH, 0), CALL(unlinkat, AT, 0),
    CALL(mkdir, PATH, 0), CALL(mkdirat, AT, 0), CALL(rmdir, PATH, 0), CALL(truncate, PATH, 0),
    CALL(ftruncate, FD, 0), CALL(fallocate, FD, 0), CALL(fsync, FD, 0), CALL(fdatasync, FD, 0),
    CALL(sync_file_range, FD, 0), CALL(fadvise64, FD, 0), CALL(chmod, PATH, 0), CALL(fchmod, FD, 0),
    CALL(fchmodat, AT, 0), CALL(chown, PATH, 0), CALL(fchown, FD, 0), CALL(fchownat, AT, 0),
    CALL(utimensat, AT, 0), CALL(lseek, FD, 0), CALL(flock, FD, 0), CALL(fcntl, FD, 0), CALL(ioctl, FD, 0),
    CALL(dup, FD, 0), CALL(dup2, FD, 0), CALL(dup3, FD, 0), CALL(chdir, PATH, 0), CALL(listxattr, PATH, 0),
    CALL(flistxattr, FD, 0), CALL(getxattr, PATH, 0), CALL(fgetxattr, FD, 0), CALL(setxattr, PATH, 0),
    CALL(fsetxattr, FD, 0), CALL(mmap, MAP, 0),
    CALL(clone, REST, 0), CALL(clone3, REST, 0), CALL(fork, REST, 0), CALL(vfork, REST, 0), CALL(pipe, REST, 0),
    CALL(pipe2, REST, 0), CALL(socketpair, REST, 0),
};

/* The place of a call in the table; -1: it isn't about a file. */
static int known(long number) {
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        if (SHAPES[i].number == number)
            return (int)i;
    return -1;
}

/* What is done when a task's call returns. */
static struct task { pid_t id; int injecting; long result; } tasks[TASKS];

static struct task *task_of(pid_t id) {
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].id == id)
            return &tasks[i];
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].id == 0) {
            tasks[i] = (struct task){id, 0, 0};
            return &tasks[i];
        }
    fprintf(stderr, "tracer: too many tasks\n");
    abort();
}

/* Tasks that ended or became another program, latest last: the event of the start may come after that of the end. */
static pid_t early[TASKS];
static unsigned earlies;

static int ended(pid_t id) {
    for (int i = 0; i < TASKS; i++)
        if (early[i] == id)
            return 1;
    return 0;
}

/* A task is followed no more. */
static void gone(pid_t id) {
    task_of(id)->id = 0;
    early[earlies++ % TASKS] = id;
}

static int any_left(void) {
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].id)
            return 1;
    return 0;
}

static void link_of(pid_t id, const char *what, char *out) {
    char place[64];
    snprintf(place, sizeof place, "/proc/%d/%s", id, what);
    ssize_t n = readlink(place, out, PATH_MAX - 1);
    out[n < 0 ? 0 : n] = 0;
}

static void descriptor(pid_t id, uint64_t fd, char *out) {
    char what[32];
    snprintf(what, sizeof what, "fd/%d", (int)fd);
    link_of(id, what, out);
}

static void text(pid_t id, uint64_t address, char *out) {
    size_t got = 0;
    out[0] = 0;
    while (got < PATH_MAX - 1) {
        size_t page = 4096 - (address + got) % 4096, want = PATH_MAX - 1 - got < page ? PATH_MAX - 1 - got : page;
        struct iovec here = {out + got, want}, there = {(void *)(address + got), want};
        ssize_t n = process_vm_readv(id, &here, 1, &there, 1, 0);
        if (n <= 0)
            break;
        if (memchr(out + got, 0, n))
            return;
        got += n;
    }
    out[got] = 0;
}

/* Random digits of temporary names become one asterisk. */
static void plain(char *name) {
    char *to = name;
    for (char *at = name; *at;) {
        size_t run = 0;
        while (isdigit((unsigned char)at[run]) || (at[run] >= 'a' && at[run] <= 'f'))
            run++;
        if (run >= 8) {
            *to++ = '*';
            at += run;
        } else {
            if (!run)
                run = 1;
            memmove(to, at, run);
            to += run;
            at += run;
        }
    }
    *to = 0;
}

static void named(pid_t id, int directory, uint64_t address, char *out) {
    char given[PATH_MAX], base[PATH_MAX] = "";
    text(id, address, given);
    if (given[0] == '/') {
        strcpy(out, given);
    } else {
        if (directory == AT_FDCWD)
            link_of(id, "cwd", base);
        else
            descriptor(id, directory, base);
        if (given[0])
            snprintf(out, PATH_MAX, "%.2000s/%.2000s", base, given);
        else
            strcpy(out, base);
    }
    plain(out);
}

static void files_of(pid_t id, enum shape shape, const uint64_t *a, char *names) {
    char one[PATH_MAX] = "", two[PATH_MAX] = "";
    switch (shape) {
    case PATH: named(id, AT_FDCWD, a[0], one); break;
    case AT: named(id, (int)a[0], a[1], one); break;
    case TWO_PATHS: named(id, AT_FDCWD, a[0], one); named(id, AT_FDCWD, a[1], two); break;
    case TWO_AT: named(id, (int)a[0], a[1], one); named(id, (int)a[2], a[3], two); break;
    case FD: descriptor(id, a[0], one); plain(one); break;
    case TWO_FDS: descriptor(id, a[0], one); descriptor(id, a[2], two); plain(one); plain(two); break;
    case MAP: if ((int)a[4] >= 0) { descriptor(id, a[4], one); plain(one); } break;
    case REST: break;
    }
    snprintf(names, NAMES, "%s%s%s", one, two[0] ? "\t" : "", two);
}

static void poke(pid_t id, size_t offset, long value) {
    ptrace(PTRACE_POKEUSER, id, (void *)offset, (void *)value);
}

static const size_t ARGUMENTS[] = {
    offsetof(struct user_regs_struct, rdi), offsetof(struct user_regs_struct, rsi),
    offsetof(struct user_regs_struct, rdx), offsetof(struct user_regs_struct, r10),
    offsetof(struct user_regs_struct, r8), offsetof(struct user_regs_struct, r9),
};

static pid_t process_of(pid_t id) {
    char place[64], line[256];
    pid_t process = id;
    snprintf(place, sizeof place, "/proc/%d/status", id);
    FILE *f = fopen(place, "r");
    if (f) {
        while (fgets(line, sizeof line, f))
            if (sscanf(line, "Tgid: %d", &process) == 1)
                break;
        fclose(f);
    }
    return process;
}

static void kill_all(void) {
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].id)
            kill(tasks[i].id, SIGKILL);
}

static volatile sig_atomic_t late;

static void on_alarm(int number) {
    (void)number;
    late = 1;
}

static void entered(pid_t id, const struct __ptrace_syscall_info *info, const struct plan *plan, struct outcome *outcome,
                    long *seen, FILE *log, pid_t first) {
    static char names[NAMES];
    long number = (long)info->entry.nr;
    int at = known(number), count = at < 0 ? 0 : SHAPES[at].count;
    struct task *task = task_of(id);
    task->injecting = 0;
    if (!log && (plan->action == NOTHING || outcome->fired || plan->number != number))
        return;
    files_of(id, at < 0 ? REST : SHAPES[at].shape, (const uint64_t *)info->entry.args, names);
    if (log)
        fprintf(log, "%ld\t%s\t%d\t%lld\t%s\n", number, at < 0 ? "" : SHAPES[at].name, process_of(id) == first,
                count ? (long long)info->entry.args[count] : 0LL, names);
    if (plan->action == NOTHING || outcome->fired || plan->number != number || strcmp(names, plan->names) != 0 ||
        (*seen)++ != plan->occurrence)
        return;
    outcome->fired = 1;
    outcome->task = id;
    switch (plan->action) {
    case KILL: kill(process_of(id), SIGKILL); break;
    case KILL_ALL: kill_all(); break;
    case ERROR:
        poke(id, offsetof(struct user_regs_struct, orig_rax), -1);
        task->injecting = 1;
        task->result = -plan->error;
        break;
    case LATE_ERROR:
        task->injecting = 1;
        task->result = -plan->error;
        break;
    case SHORT: poke(id, ARGUMENTS[count], (long)((info->entry.args[count] + 1) / 2)); break;
    }
}

/* Follow `first`, a child that waits to be let go, and all that it forks, until they have ended. 0, or an errno. */
int follow(pid_t first, int release, const struct plan *plan, struct outcome *outcome, const char *log_name) {
    long seen = 0;
    int status;
    memset(tasks, 0, sizeof tasks);
    memset(early, 0, sizeof early);
    earlies = 0;
    memset(outcome, 0, sizeof *outcome);
    outcome->status = -1;
    late = 0;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, first, 0, (void *)options) || ptrace(PTRACE_INTERRUPT, first, 0, 0))
        return errno;
    if (write(release, "x", 1) != 1)
        return errno;
    FILE *log = log_name ? fopen(log_name, "w") : NULL;
    if (log_name && !log)
        return errno;
    struct sigaction action = {.sa_handler = on_alarm}, before;
    sigaction(SIGALRM, &action, &before); /* without SA_RESTART: the wait is to be left */
    alarm(plan->deadline);
    task_of(first);
    while (any_left()) {
        pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0 && errno == EINTR) {
            if (late && outcome->overdue) /* what is left after a second isn't a child of this process any more */
                break;
            if (late) {
                late = 0;
                outcome->overdue = 1;
                kill_all();
                alarm(1);
            }
            continue;
        }
        if (id < 0)
            break;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (id == first)
                outcome->status = status;
            gone(id);
            continue;
        }
        task_of(id);
        int signal_number = 0, event = status >> 16;
        if (event == PTRACE_EVENT_EXEC) { /* another program: it isn't followed */
            gone(id);
            ptrace(PTRACE_DETACH, id, 0, 0);
            continue;
        }
        unsigned long started;
        if ((event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) &&
            ptrace(PTRACE_GETEVENTMSG, id, 0, &started) == 0 && !ended((pid_t)started))
            task_of((pid_t)started);
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info info;
            struct task *task = task_of(id);
            if (ptrace(PTRACE_GET_SYSCALL_INFO, id, (void *)sizeof info, &info) > 0) {
                if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
                    entered(id, &info, plan, outcome, &seen, log, first);
                } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && task->injecting) {
                    poke(id, offsetof(struct user_regs_struct, rax), task->result);
                    task->injecting = 0;
                }
            }
        } else if (!event) {
            signal_number = WSTOPSIG(status);
        }
        ptrace(PTRACE_SYSCALL, id, 0, (void *)(long)signal_number);
    }
    alarm(0);
    sigaction(SIGALRM, &before, NULL);
    if (log)
        fclose(log);
    return 0;
}
