/* Runs a program and kills it before the step that it is told: at_step STEP PROGRAM [WORD]...
 *
 * A step is a system call of the program's own threads that may change anything outside of the program's
 * memory. What the program starts is not followed. Ends with 0 when the program was killed; when it ended
 * by itself before that, prints how many steps it made and ends with 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* <sys/ptrace.h> and <linux/ptrace.h> do not go together everywhere. */
long ptrace(int request, ...);

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* Calls that only look, wait, or concern the caller's own memory and signals. */
static int changes_nothing(unsigned long long nr)
{
	static const long quiet[] = {
		SYS_read, SYS_pread64, SYS_readv, SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_statx,
		SYS_statfs, SYS_fstatfs, SYS_readlinkat, SYS_faccessat, SYS_getdents64, SYS_getcwd,
		SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_futex,
		SYS_ppoll, SYS_pselect6, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime,
		SYS_gettimeofday, SYS_sched_yield, SYS_sched_getaffinity, SYS_getrandom, SYS_getpid,
		SYS_gettid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getgroups,
		SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_rt_sigaction, SYS_rt_sigprocmask,
		SYS_rt_sigreturn, SYS_sigaltstack, SYS_set_robust_list, SYS_set_tid_address, SYS_rseq,
		SYS_prlimit64, SYS_exit,
#ifdef SYS_poll
		SYS_poll, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_arch_prctl, SYS_getrlimit,
#endif
	};
	for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
		if ((unsigned long long)quiet[i] == nr)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	long last = atol(argv[1]), steps = 0;
	pid_t program = fork();
	if (program < 0)
		fail("fork");
	if (program == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(126);
		raise(SIGSTOP);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	int status;
	if (waitpid(program, &status, 0) < 0)
		fail("waitpid");
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	if (ptrace(PTRACE_SETOPTIONS, program, 0, options) < 0)
		fail("ptrace");
	pid_t next = program;
	long signal = 0;
	for (;;) {
		if (next > 0 && ptrace(PTRACE_SYSCALL, next, 0, signal) < 0 && errno != ESRCH)
			fail("ptrace");
		signal = 0;
		next = waitpid(-1, &status, __WALL);
		if (next < 0)
			fail("waitpid");
		if (!WIFSTOPPED(status)) {
			if (next == program) {
				printf("%ld\n", steps);
				return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 2;
			}
			next = 0;
			continue;
		}
		int stop = WSTOPSIG(status);
		if (stop == (SIGTRAP | 0x80)) {
			struct ptrace_syscall_info info;
			if (ptrace(PTRACE_GET_SYSCALL_INFO, next, sizeof info, &info) < 0)
				continue;
			if (info.op != PTRACE_SYSCALL_INFO_ENTRY || changes_nothing(info.entry.nr))
				continue;
			if (++steps != last)
				continue;
			kill(program, SIGKILL);
			while (waitpid(-1, &status, __WALL) > 0)
				;
			return 0;
		}
		/* A thread begins with a stop of its own. */
		if (status >> 16 == 0 && stop != SIGSTOP)
			signal = stop;
	}
}
