/*
 * User-mode Linux before 6.13 on a host with wide registers: a ptrace() to load before it (LD_PRELOAD).
 *
 * Cause: that kernel sets a process's floating-point registers (PTRACE_SETREGSET, NT_X86_XSTATE) from 2696 bytes, what
 * AVX-512 and PKRU take. The host takes nothing but an image of its own full size, 11 KiB with AMX (Sapphire Rapids and
 * later), and answers EFAULT; the guest's first process dies: "ptrace set fp regs failed, errno = 14". Linux 6.13 asks the
 * host for the size.
 *
 * Remedy: a short image is continued with zeros; the host cuts off what is beyond its size. The header, in the first 576
 * bytes, says which parts hold something, so the zeros mean "as at the start".
 *
 * Hazard: a new process of the guest calls this on a small stack that is not aligned as the ABI wants. So there are no
 * variable arguments and no vector registers here (-mgeneral-regs-only), and nothing is bound lazily (-z now).
 */
#include <errno.h>
#include <sys/syscall.h>

enum { PEEK_FIRST = 1, PEEK_LAST = 3, SETREGSET = 0x4205, XSTATE = 0x202 };

struct part {
	char *base;
	unsigned long length;
};

static long system_call(long request, long pid, long address, void *data)
{
	register void *fourth __asm__("r10") = data;
	long answer;
	__asm__ volatile("syscall"
			 : "=a"(answer)
			 : "a"((long)SYS_ptrace), "D"(request), "S"(pid), "d"(address), "r"(fourth)
			 : "rcx", "r11", "memory");
	if (answer < 0) {
		errno = (int)-answer;
		return -1;
	}
	return answer;
}

/* The kernel of the guest is one thread: one image is enough. */
static char image[64 * 1024];

static long set_registers(long pid, const struct part *given)
{
	struct part whole = {image, sizeof image};
	volatile char *to = image; /* byte by byte: no call of memcpy */
	unsigned long i;

	for (i = 0; i < sizeof image; i++)
		to[i] = i < given->length ? given->base[i] : 0;
	return system_call(SETREGSET, pid, XSTATE, &whole);
}

long ptrace(int request, int pid, void *address, void *data)
{
	const struct part *given = data;
	long word;

	if (request == SETREGSET && (long)address == XSTATE && given->length < sizeof image)
		return set_registers(pid, given);
	if (request < PEEK_FIRST || request > PEEK_LAST)
		return system_call(request, pid, (long)address, data);
	/* PTRACE_PEEKTEXT, PEEKDATA and PEEKUSER return the word itself */
	errno = 0;
	return system_call(request, pid, (long)address, &word) < 0 ? -1 : word;
}
