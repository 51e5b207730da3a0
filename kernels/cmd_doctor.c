/* quern doctor: what this machine can do with this build, and what is missing. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/isa.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/tool.h"
#include "comm/message.h"
#include "comm/nccl_library.h"
#include "kernels/cuda.h"

#ifndef QUERN_LIBRARIES
#define QUERN_LIBRARIES "" /* "ZSTD=1 DNNL=0": from the Makefile */
#endif

/* What was found: lines for a reader, or sections of an object. */
struct report {
    bool as_json;
    struct buf json; /* what failed to go in is seen at the end */
};

static void section(struct report *r, const char *name)
{
    if (!r->as_json) {
        printf("%s\n", name);
        return;
    }
    if (r->json.n > 1)
        buf_putc(&r->json, '}');
    json_put_key(&r->json, name);
    buf_putc(&r->json, '{');
}

/* NULL: not known, or not there. */
static void put_text(struct report *r, const char *key, const char *value)
{
    if (!r->as_json) {
        printf("  %-20s %s\n", key, value ? value : "none");
        return;
    }
    json_put_key(&r->json, key);
    (void)(value ? json_put_string(&r->json, span_of(value)) : buf_puts(&r->json, "null"));
}

static void put_number(struct report *r, const char *key, uint64_t n)
{
    if (!r->as_json) {
        printf("  %-20s %" PRIu64 "\n", key, n);
        return;
    }
    json_put_key(&r->json, key);
    json_put_int(&r->json, (int64_t)n);
}

static void put_bytes(struct report *r, const char *key, uint64_t n)
{
    if (r->as_json)
        put_number(r, key, n);
    else
        printf("  %-20s %.1f GiB\n", key, (double)n / (double)(1 << 30));
}

static void put_bool(struct report *r, const char *key, bool b)
{
    if (!r->as_json) {
        printf("  %-20s %s\n", key, b ? "yes" : "no");
        return;
    }
    json_put_key(&r->json, key);
    (void)(buf_puts(&r->json, b ? "true" : "false"));
}

/* The value behind "key : " in a file of /proc, in a buffer of its own; NULL: none. */
static const char *proc_value(const char *path, const char *key, char *to, size_t size)
{
    FILE *f = fopen(path, "r");
    const char *found = NULL;
    char line[512];

    while (f && !found && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(to, size, "%s", colon);
        found = to;
    }
    if (f)
        fclose(f);
    return found;
}

static void put_machine(struct report *r, int threads)
{
    char text[512];
    struct utsname u;
    const char *available;

    section(r, "machine");
    put_text(r, "processor", proc_value("/proc/cpuinfo", "model name", text, sizeof text));
    put_text(r, "instruction_set", isa_name(isa_best()));
    put_number(r, "threads", (uint64_t)threads);
    put_bytes(r, "memory", (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    put_bytes(r, "memory_limit", limits_memory());
    available = proc_value("/proc/meminfo", "MemAvailable", text, sizeof text);
    put_bytes(r, "memory_available", available ? strtoull(available, NULL, 10) * 1024 : 0);
    if (uname(&u) == 0) {
        snprintf(text, sizeof text, "%s %s", u.sysname, u.release);
        put_text(r, "system", text);
    }
}

static void put_libraries(struct report *r)
{
    char list[] = QUERN_LIBRARIES, *save, *name = strtok_r(list, " ", &save);

    section(r, "libraries");
    for (; name; name = strtok_r(NULL, " ", &save)) {
        char *is = strchr(name, '=');
        if (!is)
            continue;
        *is = '\0';
        for (char *c = name; *c; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 'a' - 'A' : *c);
        put_bool(r, name, is[1] == '1');
    }
}

static void put_version(struct report *r, const char *key, int v)
{
    char text[32];

    snprintf(text, sizeof text, "%d.%d", v / 1000, v % 1000 / 10);
    put_text(r, key, v ? text : NULL);
}

/* The same of a library that has 10000 major + 100 minor + patch. */
static void put_library(struct report *r, const char *key, size_t v)
{
    char text[80];

    snprintf(text, sizeof text, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    put_text(r, key, v ? text : NULL);
}

static void put_gpu(struct report *r)
{
    const struct cuda_backend *b = NULL;
    size_t cublaslt, cudnn;
    struct cuda_info info = {0};
    struct err e = {0};
    char text[64];
    int rc = cuda_backend_open(&b, &e);

    if (rc == 0)
        rc = b->info(0, &info, &e);
    section(r, "gpu");
    put_bool(r, "usable", rc == 0);
    put_text(r, "why_not", rc == 0 ? NULL : e.msg);
    put_text(r, "backend", b ? cuda_backend_path() : NULL);
    put_version(r, "cuda_runtime", info.runtime);
    put_version(r, "cuda_driver", info.driver);
    put_number(r, "devices", (uint64_t)info.devices);
    if (!info.name[0])
        return;
    put_text(r, "name", info.name);
    snprintf(text, sizeof text, "%d.%d", info.major, info.minor);
    put_text(r, "compute_capability", text);
    put_number(r, "multiprocessors", (uint64_t)info.processors);
    put_bytes(r, "gpu_memory", info.memory);
    put_number(r, "l2_bytes", info.l2);
    put_number(r, "bytes_per_second", (uint64_t)info.memory_bandwidth);
    b->libraries(&cublaslt, &cudnn);
    put_library(r, "cublaslt", cublaslt);
    put_library(r, "cudnn", cudnn);
}

/* The first of the names that the loader finds; NULL: none. */
static const char *loadable(const char *const *names)
{
    for (; *names; names++) {
        void *library = dlopen(*names, RTLD_LAZY | RTLD_LOCAL);
        if (library) {
            dlclose(library);
            return *names;
        }
    }
    return NULL;
}

static void put_network(struct report *r)
{
    const struct mpi_backend *mpi;
    struct err e = {0};
    int rc = mpi_backend_open(&mpi, &e);

    section(r, "communication");
    put_text(r, "mpi", rc == 0 ? mpi->library() : NULL);
    put_text(r, "why_no_mpi", rc == 0 ? NULL : e.msg);
    put_text(r, "nccl", loadable(nccl_library_places()));
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "doctor",
        .usage = "[options]",
        .about = "what this machine can do, and what is missing",
        .details = "Prints the processor and the instruction set that is used (QUERN_ISA lowers it), memory, the "
                   "libraries of this build, whether a GPU can be used and if not why, and which libraries "
                   "ranks can be started or exchange by (TCP needs none).  The exit status is 0 whatever is missing.",
        .example = "quern doctor --json",
    };
    struct report r = {0};
    const struct opt opts[] = {OPT_FLAG(0, "json", &r.as_json, "print one JSON object"), TOOL_OPTS(t), OPT_END};
    int code, n = tool_begin(&t, opts, argc, argv, &code);

    if (n < 0)
        return code;
    if (n > 0)
        return tool_usage(&t, "'%s' is one operand too many", argv[1]);
    if (r.as_json)
        buf_putc(&r.json, '{');
    put_machine(&r, tool_jobs(&t));
    put_libraries(&r);
    put_gpu(&r);
    put_network(&r);
    if (r.as_json && buf_puts(&r.json, "}}\n") < 0)
        code = tool_fail(&t, &(struct err){ERR_NOMEM, "out of memory for the report"});
    else
        code = tool_end(&t, r.json.n && fwrite(r.json.p, 1, r.json.n, stdout) < r.json.n ? EXIT_FATAL : EXIT_FINE);
    buf_free(&r.json);
    return code;
}
