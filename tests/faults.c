/* A library for LD_PRELOAD: runs a program again and again, each time with another fault.
 *
 * The program's main() is called once to count where there can be one, and then in a fresh child for each case.
 *
 * A case of modes "one" and "rest" makes the N-th allocation fail, or it and all after it.  The program must end by itself,
 * with status 3, a message that speaks of memory, and nothing new in its folder but what $FAIL_KEEP allows; or, where it can
 * do without, as the first run did: the same status, standard output and files.
 *
 * A case of mode "kill" kills the program (SIGKILL) just before the N-th call that changes a file or folder.  Whatever then
 * has a name that the first run left must be as that run left it; and the program, run again in that folder, must end as the
 * first run did.  Where all of it had its name before the kill, it may as well refuse to.
 *
 * Counted allocations are malloc, calloc, realloc, reallocarray, aligned_alloc, posix_memalign and memalign of all callers (C++'s
 * operator new calls them), mmap of the program itself, and pthread_create.  Not counted is what the program cannot
 * answer for: the loader's own allocations and those of libgomp, which ends the process where it gets no memory for a
 * team of threads.  Counted calls are the program's own of open (that creates or empties), write, pwrite, copy_file_range,
 * ftruncate, fsync, fdatasync, syncfs, mkostemp, rename, renameat2, linkat, unlink, unlinkat, mkdir and rmdir.
 *
 * Environment:
 *   FAIL_NAME     what to call the sweep; without it the library does nothing
 *   FAIL_STEP     of those at one place (by call stack) the first, and each FAIL_STEP-th after it; 1: all
 *   FAIL_SEEN     a file that keeps the places of a program: the first at a place that an earlier sweep has seen is left out,
 *                 unless FAIL_STEP is 1
 *   FAIL_MODES    "one", "rest" or both: "one rest"; or "kill"
 *   FAIL_JOBS     cases at a time
 *   FAIL_FOLDER   where the program runs: a folder of its own for each job is made and removed there
 *   FAIL_KEEP     a regular expression (POSIX, extended): names that may be left by a case that failed
 *   FAIL_RESUME   if set, the program is run again after a case that failed, in the folder as it left it, and must
 *                 then leave the files that the first run left
 *   FAIL_ANY      a regular expression: files that may differ between runs (they have times); "stdout" is standard output
 *   FAIL_SPARE    the same: files that are not looked at, there or not
 *   FAIL_EXCEPT   a regular expression: libraries (by path) whose allocations are not counted either
 *   FAIL_BENEATH  the same: nor are those of whatever such a library calls
 *   FAIL_CASE     only this one
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1 << 20, DEPTH = 48, NEAR = 6, RANGES = 64, SHOWN = 8, TREE = 1 << 16, SECONDS = 120, JOBS = 64 };

/* ---- what the program asks for ---- */

enum state { OFF, COUNTING, FAILING };

/* Of a case: shared by a worker and its child. */
struct at {
    atomic_bool failed; /* it came to it */
    int depth;
    void *stack[DEPTH]; /* which it was */
};

/* Shared by all. */
struct shared {
    atomic_long count;
    uint64_t place[MOST]; /* hash of the call stack of each */
    atomic_long cases, absorbed, wrong;
    struct at at[JOBS];
};

static struct shared *shared;
static struct at *mine; /* the worker's own */
static enum state state;
static atomic_long left; /* until the one that fails */
static bool rest;        /* all after it fail too */
static bool killing;     /* mode "kill" */
static __thread bool inside __attribute__((tls_model("initial-exec")));

struct range {
    uintptr_t begin, end;
};
static struct range ours, uncounted[RANGES], beneath[RANGES];
static int n_uncounted, n_beneath;

static bool in_range(const struct range *r, const void *p)
{
    return (uintptr_t)p >= r->begin && (uintptr_t)p < r->end;
}

static bool in_any(const struct range *r, int n, const void *p)
{
    for (int i = 0; i < n; i++)
        if (in_range(&r[i], p))
            return true;
    return false;
}

/* The same in each sweep of a program: libraries lie elsewhere each time, by whole pages. */
static uint64_t stack_hash(void **stack, int n)
{
    uint64_t h = 14695981039346656037u;

    for (int i = 0; i < n; i++)
        h = (h ^ ((uintptr_t)stack[i] & 4095)) * 1099511628211u;
    return h;
}

/* The call stack, of *n places; whether none of them is in what is not to fail.  Who asks often is near, and whole stacks
 * take far longer. */
static bool look(void *stack[DEPTH], int *n)
{
    *n = 0;
    if (state != COUNTING && !n_beneath)
        return true;
    for (int near = n_beneath ? NEAR : DEPTH; near <= DEPTH; near += DEPTH - NEAR) {
        *n = backtrace(stack, near);
        for (int k = 0; k < *n; k++)
            if (in_any(beneath, n_beneath, stack[k]))
                return false;
    }
    return true;
}

/* Counts one, asked for from that place; whether it is to fail. */
static bool is_next(const void *caller)
{
    void *stack[DEPTH];
    long i;
    int n;

    if (state == OFF || inside || in_any(uncounted, n_uncounted, caller))
        return false;
    inside = true;
    if (!look(stack, &n)) {
        inside = false;
        return false;
    }
    if (state == COUNTING) {
        i = atomic_fetch_add(&shared->count, 1);
        if (i < MOST)
            shared->place[i] = stack_hash(stack, n);
        inside = false;
        return false;
    }
    i = atomic_fetch_sub(&left, 1);
    if (i == 1) {
        mine->depth = backtrace(mine->stack, DEPTH);
        atomic_store(&mine->failed, true);
    }
    inside = false;
    return i == 1 || (rest && i < 1);
}

/* Whether this allocation is to fail. */
static bool fails(const void *caller)
{
    if (killing || !is_next(caller))
        return false;
    errno = ENOMEM;
    return true;
}

/* A file is about to be changed. */
static void changes(const void *caller)
{
    if (killing && in_range(&ours, caller) && is_next(caller))
        kill(getpid(), SIGKILL);
}

/* The real functions.  dlsym() may allocate before it has found them: from a small piece of memory here. */
static char early[4096] __attribute__((aligned(64)));
static size_t early_used;

static void *early_alloc(size_t n)
{
    size_t at = (early_used + 63) & ~(size_t)63;

    if (n > sizeof early - at)
        _exit(99);
    early_used = at + n;
    return early + at;
}

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof early;
}

#define REAL(type, name, params)                             \
    static type (*real_##name) params;                       \
    static inline void find_##name(void)                     \
    {                                                        \
        if (!real_##name) {                                  \
            void *found = dlsym(RTLD_NEXT, #name);           \
            memcpy(&real_##name, &found, sizeof found);      \
        }                                                    \
    }

REAL(void *, malloc, (size_t n))
REAL(void *, calloc, (size_t n, size_t size))
REAL(void *, realloc, (void *p, size_t n))
REAL(void, free, (void *p))
REAL(void *, aligned_alloc, (size_t align, size_t n))
REAL(void *, memalign, (size_t align, size_t n))
REAL(int, posix_memalign, (void **p, size_t align, size_t n))
REAL(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at))
REAL(void *, mmap64, (void *p, size_t n, int prot, int flags, int fd, off_t at))
REAL(int, pthread_create, (pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg))

static __thread bool finding __attribute__((tls_model("initial-exec")));

/* True while the functions are being looked for, by this thread. */
static bool find_all(void)
{
    if (real_free)
        return false;
    if (finding)
        return true;
    finding = true;
    find_malloc();
    find_calloc();
    find_realloc();
    find_aligned_alloc();
    find_memalign();
    find_posix_memalign();
    find_mmap();
    find_mmap64();
    find_pthread_create();
    find_free(); /* last: it says that all are found */
    finding = false;
    return false;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t n)
{
    if (find_all())
        return early_alloc(n);
    return fails(CALLER) ? NULL : real_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    if (find_all())
        return early_alloc(n * size);
    return fails(CALLER) ? NULL : real_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    if (find_all())
        return early_alloc(n);
    return n && fails(CALLER) ? NULL : real_realloc(p, n);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    size_t all;

    if (__builtin_mul_overflow(n, size, &all) || (find_all(), all && fails(CALLER))) {
        errno = ENOMEM;
        return NULL;
    }
    return real_realloc(p, all);
}

void free(void *p)
{
    if (!is_early(p) && !find_all())
        real_free(p);
}

void *aligned_alloc(size_t align, size_t n)
{
    find_all();
    return fails(CALLER) ? NULL : real_aligned_alloc(align, n);
}

void *memalign(size_t align, size_t n)
{
    find_all();
    return fails(CALLER) ? NULL : real_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    find_all();
    return fails(CALLER) ? ENOMEM : real_posix_memalign(p, align, n);
}

void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
    find_all();
    return in_range(&ours, CALLER) && fails(CALLER) ? MAP_FAILED : real_mmap(p, n, prot, flags, fd, at);
}

void *mmap64(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
    find_all();
    return in_range(&ours, CALLER) && fails(CALLER) ? MAP_FAILED : real_mmap64(p, n, prot, flags, fd, at);
}

int pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    find_all();
    return fails(CALLER) ? EAGAIN : real_pthread_create(id, attr, fn, arg);
}

/* Calls that change files. */
#define CHANGE(type, name, params, args)   \
    REAL(type, name, params)               \
    type name params                       \
    {                                      \
        find_##name();                     \
        changes(CALLER);                   \
        return real_##name args;           \
    }

CHANGE(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
CHANGE(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
CHANGE(ssize_t, copy_file_range, (int in, off_t *from, int out, off_t *to, size_t n, unsigned how), (in, from, out, to, n, how))
CHANGE(int, ftruncate, (int fd, off_t n), (fd, n))
CHANGE(int, fsync, (int fd), (fd))
CHANGE(int, fdatasync, (int fd), (fd))
CHANGE(int, syncfs, (int fd), (fd))
CHANGE(int, mkostemp, (char *pattern, int how), (pattern, how))
CHANGE(int, rename, (const char *from, const char *to), (from, to))
CHANGE(int, renameat2, (int a, const char *from, int b, const char *to, unsigned how), (a, from, b, to, how))
CHANGE(int, linkat, (int a, const char *from, int b, const char *to, int how), (a, from, b, to, how))
CHANGE(int, unlink, (const char *path), (path))
CHANGE(int, unlinkat, (int at, const char *path, int how), (at, path, how))
CHANGE(int, mkdir, (const char *path, mode_t mode), (path, mode))
CHANGE(int, rmdir, (const char *path), (path))

#define OPEN(name, params, args)                       \
    REAL(int, name, params)                            \
    int name params                                    \
    {                                                  \
        va_list more;                                  \
        mode_t mode = 0;                               \
        find_##name();                                 \
        va_start(more, how);                           \
        if (how & O_CREAT)                             \
            mode = va_arg(more, mode_t);               \
        va_end(more);                                  \
        if (how & (O_CREAT | O_TRUNC))                 \
            changes(CALLER);                           \
        return real_##name args;                       \
    }

OPEN(open, (const char *path, int how, ...), (path, how, mode))
OPEN(openat, (int at, const char *path, int how, ...), (at, path, how, mode))

/* ---- one run ---- */

typedef int main_fn(int argc, char **argv, char **env);
static main_fn *program;
static int program_argc;
static char **program_argv, **program_env;

struct run {
    int status; /* waitpid's */
    size_t n_out, n_err;
    uint64_t out; /* hash of standard output */
    char err[4096];
    char tree[TREE]; /* the files that are there afterwards, a line each */
};

static int out_fd, err_fd; /* a worker's, for the standard output and error of its children */

/* Runs the program in a child, which counts or fails. */
static int run_child(enum state to, int *status)
{
    pid_t child = fork();

    if (child == 0) {
        dup2(out_fd, 1);
        dup2(err_fd, 2);
        alarm(SECONDS);
        state = to;
        exit(program(program_argc, program_argv, program_env));
    }
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return child < 0 ? -1 : 0;
}

static uint64_t hash_fd(int fd, size_t *n)
{
    uint64_t h = 14695981039346656037u;
    unsigned char b[65536];
    ssize_t got;

    *n = 0;
    while ((got = pread(fd, b, sizeof b, (off_t)*n)) > 0) {
        for (ssize_t i = 0; i < got; i++)
            h = (h ^ b[i]) * 1099511628211u;
        *n += (size_t)got;
    }
    return h;
}

/* What the environment says. */
static const char *modes = "one rest";
static regex_t keep, any, spare;
static bool have_keep, have_any, have_spare, any_stdout, resume;

/* Appends "NAME BYTES HASH" of each file below folder, in order of names; 0 for those that may differ. */
static void list_tree(const char *folder, char *to, size_t *n)
{
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        char path[4096];
        struct stat st;
        const char *name = names[i]->d_name;
        bool self = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (!self && !(have_spare && regexec(&spare, path + 2, 0, NULL, 0) == 0) && lstat(path, &st) == 0) {
            size_t bytes = 0;
            int fd = S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
            uint64_t h = fd < 0 ? 0 : hash_fd(fd, &bytes);
            if (fd >= 0)
                close(fd);
            if (have_any && regexec(&any, path + 2, 0, NULL, 0) == 0)
                h = bytes = 0;
            if (*n < TREE)
                *n += (size_t)snprintf(to + *n, TREE - *n, "%s%s %zu %016llx\n", path + 2, S_ISDIR(st.st_mode) ? "/" : "", bytes,
                                       (unsigned long long)h);
            if (S_ISDIR(st.st_mode))
                list_tree(path, to, n);
        }
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

/* Removes all that is below folder. */
static void empty_folder(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        char path[4096];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (unlink(path) < 0) {
            empty_folder(path);
            rmdir(path);
        }
    }
    if (d)
        closedir(d);
}

/* Runs the program once in the folder as it is, and looks at what came of it. */
static void run_once(struct run *r, enum state to)
{
    size_t n = 0;
    ssize_t got;

    if (ftruncate(out_fd, 0) < 0 || ftruncate(err_fd, 0) < 0 || lseek(out_fd, 0, SEEK_SET) < 0 ||
        lseek(err_fd, 0, SEEK_SET) < 0 || run_child(to, &r->status) < 0) {
        fprintf(stderr, "faults: %s\n", strerror(errno));
        _exit(98);
    }
    r->out = hash_fd(out_fd, &r->n_out);
    got = pread(err_fd, r->err, sizeof r->err - 1, 0);
    r->n_err = got > 0 ? (size_t)got : 0;
    r->err[r->n_err] = '\0';
    r->tree[0] = '\0';
    list_tree(".", r->tree, &n);
}

/* ---- what may come of a case ---- */

static struct run first;

/* The first name in the tree that may not be left; NULL: none. */
static const char *left_over(const char *tree)
{
    static char name[4096];

    for (; *tree; tree = strchr(tree, '\n') + 1) {
        size_t n = strcspn(tree, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, tree);
        if (!have_keep || regexec(&keep, name, 0, NULL, 0) != 0)
            return name;
        if (!strchr(tree, '\n'))
            break;
    }
    return NULL;
}

/* The first line of the tree that is not as in the first run. */
static const char *other_file(const struct run *r)
{
    static char line[4096];
    size_t i = 0, begin = 0;

    for (; r->tree[i] && r->tree[i] == first.tree[i]; i++)
        if (r->tree[i] == '\n')
            begin = i + 1;
    if (!r->tree[i] && !first.tree[i])
        return "standard output";
    snprintf(line, sizeof line, "%.*s", (int)strcspn(r->tree + begin, "\n"), r->tree + begin);
    return line;
}

static bool same_as_first(const struct run *r)
{
    return r->status == first.status && strcmp(r->tree, first.tree) == 0 &&
           (any_stdout || (r->n_out == first.n_out && r->out == first.out));
}

/* The first file in the tree that has a name of the first run's and not what it left there; NULL: none. */
static const char *half_written(const char *tree)
{
    static char line[4096];

    for (size_t n; *tree; tree += n) {
        const char *there = first.tree;
        size_t name = strcspn(tree, " ") + 1;
        n = strcspn(tree, "\n") + 1;
        while (*there && strncmp(there, tree, name) != 0)
            there += strcspn(there, "\n") + 1;
        snprintf(line, sizeof line, "%.*s", (int)n - 1, tree);
        if (*there && strncmp(there, tree, n) != 0 && !(have_keep && regexec(&keep, line, 0, NULL, 0) == 0))
            return line;
    }
    return NULL;
}

/* The same for one that was killed. */
static bool is_wrong_killed(const struct run *r, char *why, size_t size)
{
    const char *line;

    if (!WIFSIGNALED(r->status) || WTERMSIG(r->status) != SIGKILL)
        snprintf(why, size, "it does not do the same each time");
    else if ((line = half_written(r->tree)))
        snprintf(why, size, "has '%s', half-written", line);
    else
        return false;
    return true;
}

/* What is wrong with the case, into why; false: nothing. */
static bool is_wrong(const struct run *r, char *why, size_t size)
{
    const char *name;

    if (killing)
        return is_wrong_killed(r, why, size);
    if (same_as_first(r)) {
        atomic_fetch_add(&shared->absorbed, atomic_load(&mine->failed));
        return false;
    }
    if (WIFSIGNALED(r->status))
        snprintf(why, size, "killed by signal %d (%s)", WTERMSIG(r->status), strsignal(WTERMSIG(r->status)));
    else if (WEXITSTATUS(r->status) == WEXITSTATUS(first.status))
        snprintf(why, size, "status %d, and yet not the same output: %s", WEXITSTATUS(r->status), other_file(r));
    else if (WEXITSTATUS(r->status) != 3)
        snprintf(why, size, "status %d", WEXITSTATUS(r->status));
    else if (!strcasestr(r->err, "memory") && !strcasestr(r->err, "thread"))
        snprintf(why, size, "no message that speaks of memory");
    else if ((name = left_over(r->tree)))
        snprintf(why, size, "left '%s'", name);
    else
        return false;
    return true;
}

/* Writes the call stack of the allocation that failed, innermost first: "library function" or "function file:line". */
static void put_stack(FILE *to)
{
    char line[8192], exe[4096], *end;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    size_t used;
    Dl_info info, self;
    FILE *f;

    exe[n > 0 ? n : 0] = '\0';
    dladdr(early, &self);
    used = (size_t)snprintf(line, sizeof line, "addr2line -spfe '%s'", exe);
    for (int k = 0; k < mine->depth && used < sizeof line - 64; k++) {
        uintptr_t where = (uintptr_t)mine->stack[k];
        if (in_range(&ours, mine->stack[k]))
            used += (size_t)snprintf(line + used, sizeof line - used, " 0x%lx", (unsigned long)(where - 1 - ours.begin));
        else if (dladdr(mine->stack[k], &info) && info.dli_fbase == self.dli_fbase && k > 2)
            break; /* what is outside of the program's main() */
        else if (info.dli_fbase != self.dli_fbase)
            fprintf(to, "    %s in %s\n", info.dli_sname ? info.dli_sname : "?", info.dli_fname);
    }
    snprintf(line + used, sizeof line - used, " 2>/dev/null");
    f = popen(line, "r");
    while (f && fgets(line, sizeof line, f)) {
        if ((end = strstr(line, " (discriminator")))
            strcpy(end, "\n");
        fprintf(to, "    %s", line);
    }
    if (f)
        pclose(f);
}

/* Says what was wrong, once for each place and way to fail, and where in the program that was. */
static void say_wrong(long i, const char *mode, const struct run *r, const char *why)
{
    static uint64_t said[SHOWN];
    static int n_said;
    uint64_t h = stack_hash(mine->stack, mine->depth);
    char *text = NULL;
    size_t size;
    FILE *to;

    atomic_fetch_add(&shared->wrong, 1);
    for (int k = 0; k < n_said; k++)
        if (said[k] == h)
            return;
    if (n_said == SHOWN)
        return;
    said[n_said++] = h;
    to = open_memstream(&text, &size);
    if (!to)
        return;
    fprintf(to, "%s, case %ld (%s): %s\n  it said: %.600s%s", getenv("FAIL_NAME"), i, mode, why,
            r->n_err ? r->err : "nothing", r->n_err && r->err[r->n_err - 1] == '\n' ? "" : "\n");
    put_stack(to);
    fclose(to);
    fputs(text, stderr);
    fflush(stderr); /* at once: others write there too */
    free(text);
}

/* One case, and the run after it. */
static void run_case(long i, const char *mode)
{
    static struct run r;
    char why[4200];
    bool whole;

    empty_folder(".");
    atomic_store(&left, i + 1);
    atomic_store(&mine->failed, false);
    mine->depth = 0;
    rest = strcmp(mode, "rest") == 0;
    run_once(&r, FAILING);
    atomic_fetch_add(&shared->cases, 1);
    if (is_wrong(&r, why, sizeof why)) {
        say_wrong(i, mode, &r, why);
        return;
    }
    if (!killing && (!resume || same_as_first(&r)))
        return;
    whole = strcmp(r.tree, first.tree) == 0;
    run_once(&r, OFF);
    if ((r.status != first.status && !whole) || strcmp(r.tree, first.tree) != 0) {
        snprintf(why, sizeof why, "a run after it ends with %d%s%s", WEXITSTATUS(r.status),
                 r.status == first.status ? " and leaves other files: " : "", r.status == first.status ? other_file(&r) : "");
        say_wrong(i, mode, &r, why);
    }
}

/* ---- all cases ---- */

/* How often there was a place, by open addressing. */
struct places {
    size_t size; /* a power of two */
    struct seen {
        uint64_t place;
        long times;
    } *seen;
};

static struct seen *place_of(struct places *p, uint64_t place)
{
    size_t k = place & (p->size - 1);

    while (p->seen[k].times && p->seen[k].place != place)
        k = (k + 1) & (p->size - 1);
    p->seen[k].place = place;
    return &p->seen[k];
}

/* Which are cases: of each place the first, and every step-th after it; of one that an earlier sweep has seen, only those.
 * Places seen here for the first time are added to the file. */
static bool *choose(long n, long step)
{
    const char *path = getenv("FAIL_SEEN");
    FILE *f = path ? fopen(path, "a+b") : NULL;
    long known = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) / (long)sizeof(uint64_t) : 0;
    struct places p = {.size = 1};
    bool *chosen = calloc((size_t)n + 1, sizeof *chosen);
    uint64_t place;

    while (p.size < 2 * (size_t)(n + known) + 2)
        p.size *= 2;
    p.seen = calloc(p.size, sizeof *p.seen);
    if (!chosen || !p.seen || (path && !f)) {
        fprintf(stderr, "faults: no memory, or '%s' cannot be opened\n", path ? path : "");
        _exit(98);
    }
    if (f)
        rewind(f);
    while (f && fread(&place, sizeof place, 1, f) == 1)
        place_of(&p, place)->times = 1;
    for (long i = 0; i < n; i++) {
        struct seen *s = place_of(&p, shared->place[i]);
        if (f && s->times == 0)
            fwrite(&s->place, sizeof s->place, 1, f);
        chosen[i] = s->times++ % step == 0;
    }
    if (f)
        fclose(f);
    free(p.seen);
    return chosen;
}

static int number(const char *name, int none)
{
    const char *s = getenv(name);

    return s && *s ? atoi(s) : none;
}

/* A worker's place among the shared, and its folder below FAIL_FOLDER, entered; its temporary files are there too. */
static void enter_folder(int worker)
{
    char path[4096];

    mine = &shared->at[worker];
    snprintf(path, sizeof path, "%s/%s.%d", getenv("FAIL_FOLDER") ? getenv("FAIL_FOLDER") : "/tmp", getenv("FAIL_NAME"), worker);
    for (char *c = path + strlen(path) - strlen(getenv("FAIL_NAME")); *c; c++)
        if (*c == ' ' || *c == '/')
            *c = '_';
    mkdir(path, 0700);
    if (chdir(path) < 0) {
        fprintf(stderr, "faults: %s: %s\n", path, strerror(errno));
        _exit(98);
    }
    empty_folder(".");
    setenv("TMPDIR", ".", 1);
    program_env = environ;
    out_fd = memfd_create("out", MFD_CLOEXEC);
    err_fd = memfd_create("err", MFD_CLOEXEC);
}

static void leave_folder(void)
{
    char path[4096];

    empty_folder(".");
    if (getcwd(path, sizeof path))
        rmdir(path);
}

static void all_cases(const bool *chosen, long n, int worker, int workers)
{
    static const char *const mode[] = {"one", "rest", "kill"};
    long only = number("FAIL_CASE", -1), k = 0;

    for (long i = 0; i < n; i++)
        if (only >= 0 ? i == only : chosen[i] && k++ % workers == worker) {
            for (int m = 0; m < 3; m++)
                if (strstr(modes, mode[m]))
                    run_case(i, mode[m]);
        }
}

/* In the place of the program's main(). */
static int sweep(int argc, char **argv, char **env)
{
    int workers = number("FAIL_JOBS", 1) < JOBS ? number("FAIL_JOBS", 1) : JOBS;
    const char *name = getenv("FAIL_NAME"), *what;
    void *warm[4];
    bool *chosen;
    long n;

    setvbuf(stderr, NULL, _IOFBF, 1 << 16);
    program_argc = argc;
    program_argv = argv;
    program_env = env;
    unsetenv("LD_PRELOAD");
    backtrace(warm, 4); /* loads what it needs */
    have_keep = getenv("FAIL_KEEP") && regcomp(&keep, getenv("FAIL_KEEP"), REG_EXTENDED | REG_NOSUB) == 0;
    have_spare = getenv("FAIL_SPARE") && regcomp(&spare, getenv("FAIL_SPARE"), REG_EXTENDED | REG_NOSUB) == 0;
    have_any = getenv("FAIL_ANY") && regcomp(&any, getenv("FAIL_ANY"), REG_EXTENDED | REG_NOSUB) == 0;
    any_stdout = have_any && regexec(&any, "stdout", 0, NULL, 0) == 0;
    resume = getenv("FAIL_RESUME") != NULL;
    modes = getenv("FAIL_MODES") ? getenv("FAIL_MODES") : modes;
    killing = strcmp(modes, "kill") == 0;
    what = killing ? "changes of files" : "allocations";
    enter_folder(0);
    run_once(&first, COUNTING);
    n = atomic_load(&shared->count);
    if (!WIFEXITED(first.status) || WEXITSTATUS(first.status) > 1 || n > MOST) {
        printf("not ok - %s: %ld %s, status %d: %.400s\n", name, n, what, WEXITSTATUS(first.status), first.err);
        return 1;
    }
    chosen = choose(n, number("FAIL_STEP", 1));
    for (int w = 1; w < workers; w++)
        if (fork() == 0) {
            enter_folder(w);
            all_cases(chosen, n, w, workers);
            leave_folder();
            fflush(NULL);
            _exit(0);
        }
    all_cases(chosen, n, 0, workers);
    leave_folder();
    while (wait(NULL) > 0)
        ;
    printf("%s - %s: %ld %s, %ld cases, %ld done without, %ld wrong\n", shared->wrong ? "not ok" : "ok", name, n, what,
           shared->cases, shared->absorbed, shared->wrong);
    fflush(NULL);
    _exit(shared->wrong != 0);
}

static bool is_match(const regex_t *r, const char *name)
{
    return r && regexec(r, name, 0, NULL, 0) == 0;
}

/* The regular expression of an environment variable; NULL: there is none. */
static const regex_t *expression(regex_t *r, const char *variable)
{
    return getenv(variable) && regcomp(r, getenv(variable), REG_EXTENDED | REG_NOSUB) == 0 ? r : NULL;
}

/* Ranges of addresses: the program's own, and those whose allocations are not counted. */
static int look_at_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    const regex_t *const *except = arg;
    struct range r = {UINTPTR_MAX, 0};
    const char *name = info->dlpi_name;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            r.begin = begin < r.begin ? begin : r.begin;
            r.end = begin + info->dlpi_phdr[i].p_memsz > r.end ? begin + info->dlpi_phdr[i].p_memsz : r.end;
        }
    if (!name[0] && !ours.end)
        ours = r;
    else if ((strstr(name, "/ld-linux") || strstr(name, "/libgomp") || is_match(except[0], name)) && n_uncounted < RANGES)
        uncounted[n_uncounted++] = r;
    else if (is_match(except[1], name) && n_beneath < RANGES)
        beneath[n_beneath++] = r;
    return 0;
}

int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *end);
int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *end)
{
    void *found = dlsym(RTLD_NEXT, "__libc_start_main");
    int (*real)(main_fn *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    regex_t except, below;
    const regex_t *both[2] = {expression(&except, "FAIL_EXCEPT"), expression(&below, "FAIL_BENEATH")};

    memcpy(&real, &found, sizeof found);
    if (!getenv("FAIL_NAME"))
        return real(main, argc, argv, init, fini, rtld_fini, end);
    program = main;
    dl_iterate_phdr(look_at_library, both);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        _exit(98);
    return real(sweep, argc, argv, init, fini, rtld_fini, end);
}
