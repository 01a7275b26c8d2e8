/* Makes short connections, 1 KiB each way: ADDRESS PORT COUNT AT-ONCE [PROXY-PORT].
 *
 * Prints how many succeeded, the seconds that all took, and the median and the 99th of a hundred of
 * the microseconds until a connection had its first byte back. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in to;
static char request[128];
static int count;
static atomic_int next, succeeded;
static double *took;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int all(int fd, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t wrote = write(fd, bytes, length);
    if (wrote <= 0) return 0;
    bytes += wrote;
    length -= wrote;
  }
  return 1;
}

/* Reads the proxy's answer up to its empty line. */
static int connected(int fd) {
  char seen[512];
  size_t length = 0;
  while (length < sizeof seen - 1 && read(fd, seen + length, 1) == 1) {
    seen[++length] = 0;
    if (strstr(seen, "\r\n\r\n")) return strstr(seen, " 200 ") != NULL;
  }
  return 0;
}

static int once(int number) {
  char words[1024], answer[1024];
  double began = now();
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ok = 0;
  if (fd < 0) return 0;
  memset(words, 'w', sizeof words);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 &&
      (!request[0] || (all(fd, request, strlen(request)) && connected(fd))) &&
      all(fd, words, sizeof words)) {
    size_t length = 0;
    ssize_t got;
    while (length < sizeof answer && (got = read(fd, answer + length, sizeof answer - length)) > 0) {
      if (length == 0) took[number] = now() - began;
      length += got;
    }
    ok = length == sizeof answer && memcmp(words, answer, length) == 0;
  }
  close(fd);
  return ok;
}

static void *work(void *unused) {
  int number;
  while ((number = next++) < count) succeeded += once(number);
  return unused;
}

static int order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  int at_once = atoi(argv[4]);
  count = atoi(argv[3]);
  to.sin_family = AF_INET;
  to.sin_port = htons(atoi(argv[2]));
  inet_pton(AF_INET, argv[1], &to.sin_addr);
  if (argc > 5) {
    snprintf(request, sizeof request, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", argv[1], argv[2],
             argv[1], argv[2]);
    to.sin_port = htons(atoi(argv[5]));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  }
  took = calloc(count, sizeof *took);
  pthread_t threads[256];
  if (!took || at_once < 1 || at_once > 256) return 2;
  double began = now();
  for (int i = 0; i < at_once; i++)
    if (pthread_create(&threads[i], NULL, work, NULL)) return 3;
  for (int i = 0; i < at_once; i++) pthread_join(threads[i], NULL);
  double ended = now();
  qsort(took, count, sizeof *took, order);
  printf("%d %.6f %.1f %.1f\n", succeeded, (ended - began) / 1e6, took[count / 2], took[count / 100 * 99]);
  return succeeded != count;
}
