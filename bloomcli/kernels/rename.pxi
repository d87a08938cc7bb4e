# Conditional renames by renameat2(2), which Python doesn't provide. The system call is made by its number, because
# the C libraries that wheels support have no wrapper for it.

cdef extern from *:
    """
    #if defined(__linux__)
    #include <sys/syscall.h>
    #include <unistd.h>
    #endif
    #include <errno.h>
    #if defined(__linux__) && defined(SYS_renameat2)
    static int bloom_rename(int from_fd, const char *from_, int to_fd, const char *to, unsigned int flags) {
        return syscall(SYS_renameat2, from_fd, from_, to_fd, to, flags) == 0 ? 0 : errno;
    }
    #else
    static int bloom_rename(int from_fd, const char *from_, int to_fd, const char *to, unsigned int flags) {
        (void)from_fd; (void)from_; (void)to_fd; (void)to; (void)flags;
        return ENOSYS;
    }
    #endif
    """
    int bloom_rename(int from_fd, const char* from_, int to_fd, const char* to, unsigned int flags) nogil


def rename_with(int from_fd, bytes name, int to_fd, bytes to, unsigned int flags):
    """Call renameat2(2). Return 0 or the error number, which is ENOSYS if the system doesn't have the call."""
    cdef const char* old = name
    cdef const char* new = to
    cdef int code
    with nogil:
        code = bloom_rename(from_fd, old, to_fd, new, flags)
    return code
