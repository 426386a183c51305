/*
 * fsx of our own: random reads, writes, cuts, holes and maps of one file, by two processes with two descriptors each,
 * against a buffer in memory that both share. They take turns, so that a run is a function of its seed; now and then
 * both write at once, in halves that do not touch.
 *
 *   fsx FILE SEED OPERATIONS LARGEST
 *
 * The file may exist: its content is where the buffer starts. A difference prints the operation and the last ones on
 * its bytes, and exits with 1; `fsx FILE SEED N+1 LARGEST` is the shortest prefix that shows it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum kind { READ, WRITE, APPEND, CUT, MAP_READ, MAP_WRITE, PUNCH, ZERO, ALLOCATE, COPY, REOPEN, SYNC, DROP, BOTH, KINDS };
static const char *const names[] = { "read", "write", "append", "cut", "mapped read", "mapped write", "punch hole",
  "zero range", "allocate", "copy_file_range", "reopen", "fsync", "drop cache", "both write" };
static const int weights[] = { 20, 20, 4, 6, 12, 12, 6, 4, 4, 8, 2, 2, 2, 8 };

struct operation { int number, kind, process, descriptor, flag; off_t at, to; size_t length; };

static const char *path;
static size_t largest;
static unsigned char *good; /* shared by both processes */
static off_t *size;         /* likewise: how much of it is the file */
static int fds[2];
static struct operation *history;

static uint64_t state;
static uint64_t draw(uint64_t below)
{
  state += 0x9e3779b97f4a7c15u; /* splitmix64 */
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return below ? (z ^ (z >> 31)) % below : 0;
}

static void tell(const struct operation *o)
{
  printf("  %d: process %d, descriptor %d: %s at %lld, length %zu, to %lld, flag %d\n", o->number, o->process,
    o->descriptor, names[o->kind], (long long)o->at, o->length, (long long)o->to, o->flag);
}

static void fail(const struct operation *o, off_t at, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  printf("WRONG: operation %d: ", o->number);
  vprintf(format, args);
  va_end(args);
  printf("\n");
  int told = 0;
  for (int i = o->number; i >= 0 && told < 20; i--) {
    const struct operation *p = &history[i];
    int covers = at >= p->at && at < p->at + (off_t)p->length;
    if (p->kind == COPY) covers = at >= p->to && at < p->to + (off_t)p->length;
    if (i > o->number - 3 || covers || p->kind == CUT || p->kind == BOTH) { tell(p); told++; }
  }
  fflush(stdout);
  _exit(1);
}

static void compare(const struct operation *o, const unsigned char *found, off_t at, size_t length)
{
  for (size_t i = 0; i < length; i++)
    if (found[i] != good[at + i])
      fail(o, at + i, "byte %lld is %d, not %d", (long long)(at + i), found[i], good[at + i]);
}

static void check_size(const struct operation *o)
{
  struct stat st;
  if (fstat(fds[o->descriptor], &st) < 0) fail(o, 0, "fstat: %s", strerror(errno));
  if (st.st_size != *size) fail(o, st.st_size, "the size is %lld, not %lld", (long long)st.st_size, (long long)*size);
}

static void fill(unsigned char *bytes, const struct operation *o, size_t length)
{
  for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)(o->number * 7 + i + (i >> 8) + 1);
}

static void grown(off_t end)
{
  if (end > *size) *size = end;
}

static int unsupported(const struct operation *o, const char *what, int result)
{
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP) fail(o, o->at, "%s: %s", what, strerror(errno));
  return 1;
}

static void write_at(const struct operation *o, int fd, off_t at, size_t length)
{
  unsigned char *bytes = malloc(length);
  fill(bytes, o, length);
  for (size_t done = 0; done < length;) {
    ssize_t n = pwrite(fd, bytes + done, length - done, at + done);
    if (n <= 0) fail(o, at, "write: %s", n ? strerror(errno) : "nothing");
    done += n;
  }
  memcpy(good + at, bytes, length);
  free(bytes);
}

static void map(const struct operation *o, int writing)
{
  off_t page = o->at & ~4095;
  size_t length = o->at - page + o->length;
  unsigned char *area = mmap(NULL, length, PROT_READ | (writing ? PROT_WRITE : 0), MAP_SHARED, fds[o->descriptor], page);
  if (area == MAP_FAILED) fail(o, o->at, "mmap: %s", strerror(errno));
  if (writing) {
    fill(area + (o->at - page), o, o->length);
    fill(good + o->at, o, o->length);
    if (o->flag && msync(area, length, MS_SYNC) < 0) fail(o, o->at, "msync: %s", strerror(errno));
  } else compare(o, area + (o->at - page), o->at, o->length);
  munmap(area, length);
}

/* From the page cache as it is, or from below it. */
static void whole_file(const struct operation *o, int from_below)
{
  int fd = open(path, O_RDONLY);
  if (fd < 0) fail(o, 0, "open: %s", strerror(errno));
  if (from_below && (fsync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))) fail(o, 0, "drop the cache");
  unsigned char *bytes = malloc(largest + 1);
  off_t at = 0;
  for (ssize_t n; (n = pread(fd, bytes + at, largest + 1 - at, at)) != 0; at += n)
    if (n < 0) fail(o, at, "read: %s", strerror(errno));
  close(fd);
  if (at != *size) fail(o, at, "a whole read gives %lld bytes, not %lld", (long long)at, (long long)*size);
  compare(o, bytes, 0, at);
  free(bytes);
}

static void perform(const struct operation *o)
{
  int fd = fds[o->descriptor];
  switch (o->kind) {
  case READ: {
    unsigned char *bytes = malloc(o->length);
    ssize_t n = pread(fd, bytes, o->length, o->at);
    if (n != (ssize_t)o->length) fail(o, o->at, "read gives %zd: %s", n, n < 0 ? strerror(errno) : "short");
    compare(o, bytes, o->at, n);
    free(bytes);
    break;
  }
  case WRITE: write_at(o, fd, o->at, o->length); break;
  case APPEND: {
    int end = open(path, O_WRONLY | O_APPEND);
    if (end < 0) fail(o, 0, "open: %s", strerror(errno));
    write_at(o, end, o->at, o->length);
    close(end);
    break;
  }
  case CUT:
    if ((o->flag ? truncate(path, o->at) : ftruncate(fd, o->at)) < 0) fail(o, o->at, "truncate: %s", strerror(errno));
    if (o->at < *size) memset(good + o->at, 0, *size - o->at);
    *size = o->at;
    break;
  case MAP_READ: map(o, 0); break;
  case MAP_WRITE: map(o, 1); break;
  case PUNCH:
    if (unsupported(o, "punch hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, o->at, o->length))) return;
    memset(good + o->at, 0, o->length);
    break;
  case ZERO:
    if (unsupported(o, "zero range", fallocate(fd, FALLOC_FL_ZERO_RANGE | (o->flag ? FALLOC_FL_KEEP_SIZE : 0), o->at, o->length))) return;
    memset(good + o->at, 0, o->length);
    if (!o->flag) grown(o->at + o->length);
    break;
  case ALLOCATE:
    if (unsupported(o, "allocate", fallocate(fd, o->flag ? FALLOC_FL_KEEP_SIZE : 0, o->at, o->length))) return;
    if (!o->flag) grown(o->at + o->length);
    break;
  case COPY: {
    off_t from = o->at, to = o->to;
    for (size_t left = o->length; left > 0;) {
      ssize_t n = copy_file_range(fd, &from, fds[!o->descriptor], &to, left, 0);
      if (n <= 0) fail(o, from, "copy_file_range gives %zd: %s", n, strerror(errno));
      left -= n;
    }
    memcpy(good + o->to, good + o->at, o->length);
    grown(o->to + o->length);
    break;
  }
  case REOPEN:
    close(fd);
    fds[o->descriptor] = open(path, O_RDWR);
    if (fds[o->descriptor] < 0) fail(o, 0, "open: %s", strerror(errno));
    break;
  case SYNC:
    if ((o->flag ? fsync(fd) : fdatasync(fd)) < 0) fail(o, 0, "fsync: %s", strerror(errno));
    break;
  case DROP: posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); break;
  }
  if (o->kind == WRITE || o->kind == APPEND) grown(o->at + o->length);
  check_size(o);
}

/* One half each, so that neither order of the two is seen. */
static void perform_half(const struct operation *o, int process)
{
  size_t half = o->length / 2;
  struct operation mine = *o;
  mine.number += process;
  write_at(&mine, fds[o->descriptor], o->at + (process ? half : 0), process ? o->length - half : half);
}

static struct operation next(int number)
{
  struct operation o = { .number = number };
  int total = 0;
  for (int i = 0; i < KINDS; i++) total += weights[i];
  int which = draw(total);
  while (which >= weights[o.kind]) which -= weights[o.kind++];
  o.process = draw(2);
  o.descriptor = draw(2);
  o.flag = draw(2);
  o.length = 1 + draw(draw(4) ? 5000 : 70000);
  int inside = o.kind == READ || o.kind == MAP_READ || o.kind == MAP_WRITE || o.kind == COPY || o.kind == PUNCH || o.kind == BOTH;
  off_t limit = inside ? *size : (off_t)largest;
  if (o.kind == APPEND) {
    o.at = *size;
    if (o.at + (off_t)o.length > (off_t)largest) o.length = largest - o.at;
  } else {
    o.at = draw(limit);
    if (draw(3) == 0) o.at &= ~4095;
    if (o.kind == CUT && draw(3)) o.at = *size - draw(*size < 10000 ? *size + 1 : 10000); /* mostly a little */
    if (o.at + (off_t)o.length > limit) o.length = limit - o.at;
  }
  if (o.kind == COPY) {
    o.to = draw(largest - o.length + 1);
    /* The kernel refuses ranges of one file that overlap. */
    if (o.to < o.at + (off_t)o.length && o.at < o.to + (off_t)o.length) o.length = 0;
  }
  if (o.length == 0 && o.kind != CUT && o.kind != REOPEN && o.kind != SYNC && o.kind != DROP) o.kind = SYNC;
  return o;
}

static void other_process(int channel)
{
  struct operation o;
  while (read(channel, &o, sizeof o) == sizeof o) {
    history[o.number] = o;
    if (o.kind == BOTH) perform_half(&o, 1);
    else perform(&o);
    if (write(channel, "", 1) != 1) _exit(2);
  }
  _exit(0);
}

static void open_both(void)
{
  for (int i = 0; i < 2; i++)
    if ((fds[i] = open(path, O_RDWR | O_CREAT, 0644)) < 0) { perror(path); _exit(2); }
}

int main(int argc, char **argv)
{
  if (argc != 5) { fprintf(stderr, "fsx FILE SEED OPERATIONS LARGEST\n"); return 2; }
  path = argv[1];
  state = strtoull(argv[2], NULL, 10);
  int operations = atoi(argv[3]);
  largest = strtoull(argv[4], NULL, 10);
  good = mmap(NULL, largest + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  size = mmap(NULL, sizeof *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  history = mmap(NULL, (operations + 1) * sizeof *history, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  open_both();
  *size = pread(fds[0], good, largest, 0);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) return 2;
  pid_t child = fork();
  if (child == 0) {
    close(pair[0]);
    open_both();
    other_process(pair[1]);
  }
  close(pair[1]);
  for (int number = 0; number < operations; number++) {
    struct operation o = history[number] = next(number);
    char done;
    if (o.process || o.kind == BOTH) {
      if (write(pair[0], &o, sizeof o) != sizeof o) return 2;
      if (o.kind == BOTH) perform_half(&o, 0);
      if (read(pair[0], &done, 1) != 1) { waitpid(child, NULL, 0); return 1; }
      check_size(&o);
    } else perform(&o);
    if (number == 5 || number % 250 == 249 || number == operations - 1) whole_file(&o, number % 500 != 249);
  }
  close(pair[0]);
  int status;
  waitpid(child, &status, 0);
  printf("%d operations, %lld bytes at the end\n", operations, (long long)*size);
  return status ? 1 : 0;
}
