/*
 * Sets the floating-point registers of a traced process from a short image, as user-mode Linux before 6.13 does on a host
 * with AMX. Prints the size of the host's image, the errno of the call (0 if it succeeded), whether the process has
 * the registers then, and what PTRACE_PEEKDATA reads of it.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT = 576 }; /* the registers of SSE, and the header */

static char now[64 * 1024], then[64 * 1024];
static long word = 4711;

static long registers(int request, pid_t pid, char *image, size_t length)
{
	struct iovec part = {image, length};
	long failed = ptrace(request, pid, (void *)NT_X86_XSTATE, &part);
	return failed ? -1 : (long)part.iov_len;
}

int main(void)
{
	long size, failed;
	pid_t pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	size = registers(PTRACE_GETREGSET, pid, now, sizeof now);
	now[160 + 3 * 16] = 77; /* a byte of xmm3 */
	now[512] |= 3;		/* the header: x87 and SSE registers are there */
	errno = 0;
	failed = registers(PTRACE_SETREGSET, pid, now, SHORT) < 0 ? errno : 0;
	registers(PTRACE_GETREGSET, pid, then, sizeof then);
	printf("%ld %ld %d %ld\n", size, failed, memcmp(now + 160, then + 160, 256) == 0,
	       ptrace(PTRACE_PEEKDATA, pid, &word, NULL));
	kill(pid, SIGKILL);
	return 0;
}
