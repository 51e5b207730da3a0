#include "tokenize/jobs.h"

#include <inttypes.h>
#include <stdio.h>

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory");
}

/* "x/docs.jsonl.zst": "docs" */
static struct span stem(const char *path)
{
    static const char *const endings[] = {".gz", ".zst", ".bz2", ".xz", ".lz4", ".jsonl", ".json", ".ndjson"};
    const char *slash = strrchr(path, '/');
    struct span s = span_of(slash ? slash + 1 : path);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t k = strlen(endings[i]);
        if (s.n > k && memcmp(s.p + s.n - k, endings[i], k) == 0)
            s.n -= k;
    }
    return s;
}

static int a_file_each(struct jobs *j, const char *prefix, char *const *paths, int n, struct err *e)
{
    TRY(file_make_folder(prefix, e));
    for (int i = 0; i < n; i++) {
        struct span s = stem(paths[i]);
        size_t room = strlen(prefix) + s.n + 1;
        char *p = arena_alloc(&j->memory, room);
        if (!p)
            return no_memory(e);
        snprintf(p, room, "%s%.*s", prefix, (int)s.n, s.p);
        for (int k = 0; k < i; k++)
            if (strcmp(j->job[k].prefix, p) == 0)
                return err_set(e, ERR_ARG, "'%s' and '%s' would both become '%s'", paths[k], paths[i], p);
        j->job[i] = (struct pipeline_job){.prefix = p, .paths = &paths[i], .n_paths = 1};
    }
    return 0;
}

/* Part [from, to) of all inputs, of which file i begins at start[i]; plain[i]: it can be cut. */
static int take(struct jobs *j, struct pipeline_job *job, char *const *paths, int n, const uint64_t *start,
                const bool *plain, uint64_t from, uint64_t to, struct err *e)
{
    char **path = arena_calloc(&j->memory, (size_t)n, sizeof *path);
    struct lines_range *range = arena_calloc(&j->memory, (size_t)n, sizeof *range);

    if (!path || !range)
        return no_memory(e);
    job->paths = path;
    job->range = range;
    for (int i = 0; i < n; i++) {
        uint64_t a = start[i], b = start[i + 1];
        bool begins = a >= from && a < to;
        if (a >= to || b < from || (!begins && (!plain[i] || b == from)))
            continue;
        path[job->n_paths] = paths[i];
        range[job->n_paths++] = plain[i] ? (struct lines_range){a < from ? from - a : 0, to < b ? to - a : UINT64_MAX}
                                         : (struct lines_range){0, UINT64_MAX};
    }
    return 0;
}

static int cut(struct jobs *j, const char *prefix, char *const *paths, int n, struct err *e)
{
    uint64_t *start = arena_calloc(&j->memory, (size_t)n + 1, sizeof *start);
    bool *plain = arena_calloc(&j->memory, (size_t)n, sizeof *plain);

    if (!start || !plain)
        return no_memory(e);
    for (int i = 0; i < n; i++) {
        struct file_in *f;
        TRY(file_open(&f, paths[i], e));
        plain[i] = file_codec(f) == FILE_PLAIN;
        start[i + 1] = start[i] + (file_size(f) ? file_size(f) : 1); /* an empty one lies somewhere too */
        file_close(f);
    }
    for (int k = 0; k < j->n; k++) {
        size_t room = strlen(prefix) + 32;
        char *p = arena_alloc(&j->memory, room);
        unsigned __int128 all = start[n];
        if (!p)
            return no_memory(e);
        snprintf(p, room, "%s-%05d-of-%05d", prefix, k, j->n);
        j->job[k].prefix = p;
        TRY(take(j, &j->job[k], paths, n, start, plain, (uint64_t)(all * (unsigned)k / (unsigned)j->n),
                 (uint64_t)(all * (unsigned)(k + 1) / (unsigned)j->n), e));
    }
    return 0;
}

int jobs_make(struct jobs *j, const char *prefix, int shards, char *const *paths, int n_paths, struct err *e)
{
    size_t length = strlen(prefix);
    bool each = length && prefix[length - 1] == '/';
    int rc = 0;

    *j = (struct jobs){.n = each ? n_paths : shards ? shards : 1};
    if (each && shards)
        return err_set(e, ERR_ARG, "a folder has an output for each input: there is nothing to divide into shards");
    if ((each || shards) && n_paths == 0)
        return err_set(e, ERR_ARG, "standard input cannot be divided: name the files");
    for (int i = 0; i < n_paths && (each || shards); i++)
        if (strcmp(paths[i], "-") == 0)
            return err_set(e, ERR_ARG, "standard input cannot be divided: name the files");
    j->job = arena_calloc(&j->memory, (size_t)j->n, sizeof *j->job);
    if (!j->job)
        rc = no_memory(e);
    else if (each)
        rc = a_file_each(j, prefix, paths, n_paths, e);
    else if (shards)
        rc = cut(j, prefix, paths, n_paths, e);
    else
        j->job[0] = (struct pipeline_job){.prefix = prefix, .paths = n_paths ? paths : NULL, .n_paths = n_paths};
    if (rc < 0)
        jobs_free(j);
    return rc;
}

void jobs_free(struct jobs *j)
{
    arena_free(&j->memory);
    *j = (struct jobs){0};
}
