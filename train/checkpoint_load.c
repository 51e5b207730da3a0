/* Finding, verifying and reading checkpoints. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/node.h"
#include "train/checkpoint.h"

/* A tensor in a file, and the checksum that it must have. */
struct stored {
    const char *file;
    const struct file_map *map;
    struct span name, data;
    const char *hash;
};

struct checkpoint {
    struct checkpoint_info info;
    struct arena arena;
    struct file_map *maps;
    int n;
    struct slices slices;
    struct stored *stored; /* as many, file after file */
    size_t cap_slices, cap_stored;
    char path[4160];
};

const struct checkpoint_info *checkpoint_info(const struct checkpoint *ck)
{
    return &ck->info;
}

const char *checkpoint_path(const struct checkpoint *ck)
{
    return ck->path;
}

void checkpoint_close(struct checkpoint *ck)
{
    if (!ck)
        return;
    for (int i = 0; i < ck->n; i++)
        file_map_close(&ck->maps[i]);
    free(ck->slices.v);
    free(ck->stored);
    arena_free(&ck->arena);
    free(ck);
}

/* ---- one checkpoint ---- */

static bool hash_is(const char *hex, uint64_t hash)
{
    char want[24];

    snprintf(want, sizeof want, "%016" PRIx64, hash);
    return hex && strcmp(hex, want) == 0;
}

/* The tensors of a file that has been opened; n is its entry. */
static int add_tensors(struct checkpoint *ck, const char *path, const struct file_map *map, const struct node *n, struct err *e)
{
    const struct node *hashes = node_get(n, "tensors"), *next = hashes->child;
    size_t have = (size_t)ck->slices.n;
    struct safetensors st;

    TRY(safetensors_parse(&ck->arena, path, (struct span){(const char *)map->p, map->n}, &st, e));
    file_map_drop(map, st.header.p, st.header.n);
    if (mem_grow(&ck->slices.v, &ck->cap_slices, have + (size_t)st.n, sizeof *ck->slices.v) < 0 ||
        mem_grow(&ck->stored, &ck->cap_stored, have + (size_t)st.n, sizeof *ck->stored) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < st.n; i++) {
        struct stored *s = &ck->stored[ck->slices.n];

        *s = (struct stored){node_str(n, "name"), map, st.v[i].name, st.v[i].data, NULL};
        if (next && span_eq(next->key, s->name)) { /* nearly always: they stand in the same order */
            s->hash = next->type == NODE_STR ? next->str.p : NULL;
            next = next->next;
        } else {
            s->hash = node_str(hashes, s->name.p);
        }
        TRY(slice_parse(&ck->arena, path, &st.v[i], &ck->slices.v[ck->slices.n], e));
        ck->slices.v[ck->slices.n++].map = map;
    }
    return 0;
}

static int open_file(struct checkpoint *ck, const struct node *n, struct err *e)
{
    const char *name = node_str(n, "name");
    struct file_map *map = &ck->maps[ck->n];
    char path[4352];

    if (!name || strchr(name, '/') || strlen(name) > 160 || !node_get(n, "tensors"))
        return err_set(e, ERR_FORMAT, "%s/metadata.json: a file without name or tensors", ck->path);
    snprintf(path, sizeof path, "%s/%s", ck->path, name);
    TRY(safetensors_map(map, path, e));
    ck->n++;
    if (map->n != (uint64_t)node_int(n, "bytes", -1))
        return err_set(e, ERR_FORMAT, "%s: %zu bytes, not the %" PRId64 " that were written", path, map->n,
                       node_int(n, "bytes", -1));
    if (!hash_is(node_str(n, "header"), hash_xxh3_64(safetensors_header((struct span){(const char *)map->p, map->n}))))
        return err_set(e, ERR_FORMAT, "%s: damaged: the checksum of its header does not match", path);
    return add_tensors(ck, path, map, n, e);
}

/* Of bytes of a mapped file, with SLICE_FETCH of them in memory at a time. */
static int hash_mapped(const struct file_map *map, struct span data, uint64_t *hash, struct err *e)
{
    XXH3_state_t state;

    XXH3_64bits_reset(&state);
    for (size_t at = 0, n; at < data.n; at += n) {
        n = data.n - at < SLICE_FETCH ? data.n - at : SLICE_FETCH;
        TRY(file_map_fetch(map, data.p + at, n, e));
        XXH3_64bits_update(&state, data.p + at, n);
        file_map_drop(map, data.p + at, n);
    }
    *hash = XXH3_64bits_digest(&state);
    return 0;
}

/* Of all bytes the r-th n-th, by whole tensors. */
static int verify_share(const struct checkpoint *ck, int r, int n, struct err *e)
{
    uint64_t all = 0, at = 0;

    for (int i = 0; i < ck->slices.n; i++)
        all += ck->stored[i].data.n;
    for (int i = 0; i < ck->slices.n; i++) {
        const struct stored *s = &ck->stored[i];
        uint64_t middle = at + s->data.n / 2, hash;

        at += s->data.n;
        if ((int)((__uint128_t)middle * (unsigned)n / (all ? all : 1)) != r)
            continue;
        if (hash_mapped(s->map, s->data, &hash, e) < 0)
            return err_wrap(e, "%s/%s: '%s'", ck->path, s->file, s->name.p);
        if (!hash_is(s->hash, hash))
            return err_set(e, ERR_FORMAT, "%s/%s: damaged: the checksum of '%s' does not match", ck->path, s->file,
                           s->name.p);
    }
    return 0;
}

static int read_checkpoint(struct checkpoint *ck, struct err *e)
{
    const struct node *files;
    struct buf text = {0};
    struct span kept;
    char path[4352];
    int rc;

    snprintf(path, sizeof path, "%s/metadata.json", ck->path);
    rc = file_read_all(path, CHECKPOINT_METADATA, &text, e);
    kept = arena_dup(&ck->arena, buf_span(&text));
    buf_free(&text);
    TRY(rc);
    if (!kept.p)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(checkpoint_parse_metadata(&ck->arena, path, kept, &ck->info, &files, e));
    ck->maps = arena_calloc(&ck->arena, (size_t)files->count, sizeof *ck->maps);
    if (!ck->maps)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (const struct node *f = files->child; f; f = f->next)
        TRY(open_file(ck, f, e));
    return 0;
}

/* By all of group; NULL: by this process, without verifying the tensors. */
static int open_step(struct checkpoint **out, struct comm *group, const char *dir, int64_t step, struct err *e)
{
    struct checkpoint *ck = calloc(1, sizeof *ck);
    int rc = ck ? 0 : err_set(e, ERR_NOMEM, "out of memory"), lost = 0;

    if (ck) {
        snprintf(ck->path, sizeof ck->path, "%s/iter_%07" PRId64, dir, step);
        rc = read_checkpoint(ck, e);
    }
    if (rc == 0 && ck->info.iteration != step)
        rc = err_set(e, ERR_FORMAT, "%s/metadata.json: it is of step %" PRId64, ck->path, ck->info.iteration);
    if (rc == 0 && group)
        rc = verify_share(ck, group->rank, group->size, e);
    if (rc == 0)
        rc = slices_sort(&ck->slices, ck->path, e);
    if (group)
        lost = comm_agree(group, &rc, e, e);
    if (rc < 0 || lost < 0) {
        checkpoint_close(ck);
        return lost < 0 ? lost : rc;
    }
    *out = ck;
    return 0;
}

/* ---- which one ---- */

/* The step that latest_checkpointed_iteration.txt names; INT64_MAX if it is not there or names none.  ERR_NOMEM. */
static int latest_step(const char *dir, int64_t *step, struct err *e)
{
    struct buf b = {0};
    char path[4352], *end;
    long long v;
    int rc;

    snprintf(path, sizeof path, "%s/latest_checkpointed_iteration.txt", dir);
    *step = INT64_MAX;
    rc = file_read_all(path, 64, &b, e);
    if (rc < 0) {
        buf_free(&b);
        return rc == ERR_NOMEM ? rc : 0;
    }
    v = b.n ? strtoll(b.p, &end, 10) : -1;
    if (v < 0 || end == b.p || (*end && *end != '\n')) {
        log_msg(LOG_WARN, "%s: no step number in it; looking for the newest checkpoint", path);
        v = INT64_MAX;
    }
    buf_free(&b);
    *step = v;
    return 0;
}

/* The next step to try, below *step: what the first rank finds in the folder, on all.  1; 0: there
 * is none. */
static int next_step(struct comm *group, const int64_t *steps, int n, int64_t *step, struct err *e)
{
    int64_t next = -1;

    for (int i = n - 1; i >= 0; i--)
        if (steps[i] < *step)
            next = steps[i];
    if (group)
        TRY(comm_broadcast(group, &next, 1, COMM_I64, 0, e));
    *step = next;
    return next >= 0;
}

/* From the newest that may be it to the oldest. */
static int open_last(struct checkpoint **ck, struct comm *group, const char *dir, const int64_t *steps, int n,
                     int64_t latest, struct err *e)
{
    int64_t step = latest < INT64_MAX ? latest + 1 : INT64_MAX;
    int tried = 0, more, rc;

    while ((more = next_step(group, steps, n, &step, e)) > 0) {
        if (!tried++ && latest < INT64_MAX && step != latest && (!group || group->rank == 0))
            log_msg(LOG_WARN, "%s: latest_checkpointed_iteration.txt names step %" PRId64 ", which is not there; trying step %"
                    PRId64, dir, latest, step);
        rc = open_step(ck, group, dir, step, e);
        if (rc == 0 || rc == ERR_NOMEM || rc == ERR_UNSUPPORTED)
            return rc;
        if (!group || group->rank == 0)
            log_msg(LOG_WARN, "%s; trying the checkpoint before it", e->msg);
    }
    TRY(more);
    return tried ? err_set(e, ERR_FORMAT, "%s: none of its %d checkpoints is whole", dir, tried) : 0;
}

static int open_any(struct checkpoint **ck, struct comm *group, const char *dir, int64_t step, struct err *e)
{
    int64_t *steps = NULL, latest = INT64_MAX;
    char itself[4352];
    int n = 0, rc = 0;

    *ck = NULL;
    if (strlen(dir) > 4000)
        return err_set(e, ERR_ARG, "folder name too long: '%s'", dir);
    if (step != CHECKPOINT_LAST)
        return open_step(ck, group, dir, step, e);
    snprintf(itself, sizeof itself, "%s/metadata.json", dir);
    if (access(itself, F_OK) == 0)
        return err_set(e, ERR_ARG, "'%s' is one checkpoint of several: name the folder that it is in, and --ckpt-step", dir);
    if (!group || group->rank == 0) {
        rc = latest_step(dir, &latest, e);
        if (rc == 0)
            n = rc = checkpoint_steps(dir, &steps, e);
    }
    if (group && comm_agree(group, &rc, e, e) < 0)
        rc = e->code;
    if (rc >= 0)
        rc = open_last(ck, group, dir, steps, n, latest, e);
    free(steps);
    if (rc == 0 && !*ck && (latest != INT64_MAX || n))
        rc = err_set(e, ERR_FORMAT, "%s: latest_checkpointed_iteration.txt names step %" PRId64
                     ", but there is no such checkpoint and none before it", dir, latest);
    if (group && !*ck)
        TRY(comm_agree(group, &rc, e, e));
    return rc < 0 ? rc : 0;
}

int checkpoint_open(struct checkpoint **ck, const char *dir, int64_t step, struct err *e)
{
    struct comm *self;
    int rc;

    TRY(comm_open_self(&self, e));
    rc = open_any(ck, self, dir, step, e);
    comm_close(self);
    return rc;
}

int checkpoint_open_all(struct checkpoint **ck, struct comm *group, const char *dir, int64_t step, struct err *e)
{
    return open_any(ck, group, dir, step, e);
}

int checkpoint_peek(struct checkpoint **ck, const char *dir, int64_t step, struct err *e)
{
    return open_any(ck, NULL, dir, step, e);
}

/* ---- tensors ---- */

const struct slices *checkpoint_slices(const struct checkpoint *ck)
{
    return &ck->slices;
}

bool checkpoint_has(const struct checkpoint *ck, enum checkpoint_part part)
{
    for (int i = 0; i < ck->slices.n; i++)
        if (ck->slices.v[i].at.part == part)
            return true;
    return false;
}

int checkpoint_load(const struct checkpoint *ck, struct device *dev, const struct piece *v, int n, struct err *e)
{
    return slices_load(&ck->slices, ck->path, dev, v, n, e);
}

int checkpoint_load_slab(const struct checkpoint *ck, struct device *dev, enum checkpoint_part part,
                         const struct params *p, float *slab, struct err *e)
{
    struct piece *v = malloc((size_t)p->n * PIECES_PER_PARAM * sizeof *v);
    int rc = v ? device_zero(dev, slab, p->elements * sizeof *slab, e) : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0)
        rc = checkpoint_load(ck, dev, v, params_pieces(p, part, slab, DTYPE_F32, v), e);
    free(v);
    return rc;
}

/* ---- in one piece ---- */

struct join {
    const struct checkpoint *ck;
    const struct piece *v;
    float *room; /* JOIN_ROOM */
};

enum { JOIN_ROOM = 1 << 20 };

/* As many whole rows as there is room for, or a piece of one. */
static int join_give(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    const struct join *j = arg;
    int64_t first = (int64_t)(at / sizeof(float)), n = j->v[i].rows * j->v[i].cols - first;
    struct piece range[3];

    if (n > JOIN_ROOM)
        n = JOIN_ROOM;
    if (piece_range(&j->v[i], first, n, range) > 1)
        n = range[0].rows * range[0].cols;
    range[0].data = j->room;
    range[0].ld = range[0].cols;
    *data = (struct span){(const char *)j->room, (size_t)n * sizeof(float)};
    return checkpoint_load(j->ck, NULL, range, 1, e);
}

/* Whether no table of parameters knows it: scales of FP8, biases of experts. */
static bool is_beside(const struct piece *p)
{
    static const char bias[] = ".mlp.router.expert_bias";
    size_t n = strlen(p->name), end = sizeof bias - 1;

    return p->part == CHECKPOINT_FP8 || (p->part == CHECKPOINT_WEIGHTS && n > end && strcmp(p->name + n - end, bias) == 0);
}

static int join_beside(const struct slices *s, struct piece *v)
{
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        const struct piece *p = &s->v[i].at;

        if (is_beside(p) && (n == 0 || strcmp(v[n - 1].name, p->name) != 0))
            v[n++] = (struct piece){.part = p->part, .name = p->name, .dims = p->dims, .shape = {p->shape[0], p->shape[1]},
                                    .rows = p->shape[0], .cols = piece_width(p), .ld = piece_width(p)};
    }
    return n;
}

/* Of n whole parameters those that there should be, in the shapes that are there: an optimizer keeps of some what it keeps.  How
 * many. */
static int stored(const struct checkpoint *ck, struct piece *v, int n)
{
    int k = 0, found;

    for (int i = 0; i < n; i++) {
        const struct slice *s = slices_find(&ck->slices, v[i].part, v[i].name, &found);

        if (s && v[i].part != CHECKPOINT_WEIGHTS) {
            memcpy(v[i].shape, s->at.shape, sizeof v[i].shape);
            v[i].dims = s->at.dims;
            v[i].rows = v[i].shape[0];
            v[i].cols = v[i].ld = piece_width(&v[i]);
        }
        if (s || v[i].part == CHECKPOINT_WEIGHTS)
            v[k++] = v[i];
    }
    return k;
}

int checkpoint_join(const struct checkpoint *ck, const char *dir, struct err *e)
{
    struct join j = {.ck = ck, .room = malloc(JOIN_ROOM * sizeof(float))};
    struct params p;
    struct piece *v;
    int n = 0, rc;

    rc = j.room ? params_init(&p, &ck->info.model, NULL, e) : err_set(e, ERR_NOMEM, "out of memory");
    if (rc < 0) {
        free(j.room);
        return rc;
    }
    j.v = v = malloc(((size_t)p.n * CHECKPOINT_PARTS * PIECES_PER_PARAM + (size_t)ck->slices.n) * sizeof *v);
    for (int k = 0; v && k < CHECKPOINT_PARTS; k++)
        if (checkpoint_has(ck, (enum checkpoint_part)k))
            n += stored(ck, v + n, params_pieces(&p, (enum checkpoint_part)k, NULL, DTYPE_F32, v + n));
    if (v)
        n += join_beside(&ck->slices, v + n);
    rc = v ? checkpoint_save_from(dir, &ck->info, v, n, join_give, &j, e) : err_set(e, ERR_NOMEM, "out of memory");
    free(v);
    free(j.room);
    params_free(&p);
    return rc;
}
