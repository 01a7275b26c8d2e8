/* Starts a program as often and as fast as may be: burst PROCESSES EACH PROGRAM.
 *
 * So many processes at once each start the program so often, one after the other, with its number as its
 * word, and see that it ends with the last digits of that. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int start_all(int from, int to, char *program)
{
	for (int number = from; number < to; number++) {
		char word[16];
		snprintf(word, sizeof word, "%d", number);
		char *argv[] = { program, word, NULL }, *none[] = { NULL };
		pid_t child = vfork();
		if (child == 0) {
			execve(program, argv, none);
			_exit(127);
		}
		int status;
		if (child < 0 || waitpid(child, &status, 0) != child)
			return 1;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != number % 100)
			return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return atoi(argv[1]) % 100;
	int processes = atoi(argv[1]), each = atoi(argv[2]), failed = 0;
	for (int i = 0; i < processes; i++)
		if (fork() == 0)
			_exit(start_all(i * each, (i + 1) * each, argv[3]));
	for (int i = 0, status; i < processes; i++)
		failed |= wait(&status) < 0 || status != 0;
	return failed;
}
