/* The files of a folder of transformers, and which of their tensors are which of ours. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/node.h"
#include "train/hf.h"

enum { FILES_MAX = 4096, INDEX_MAX = 1 << 28 };

struct placed {
    const struct safetensor *tensor;
    int file;
};

struct hf_files {
    struct arena arena;
    struct file_map *maps;
    struct safetensors *files;
    const char **names;
    int n;
    struct placed *tensors; /* of all files, by name; of one name in the order of files */
    int n_tensors;
};

/* ---- names ---- */

/* Ours, then GPT-2's, then Llama's. */
static const struct {
    const char *ours, *gpt2, *llama;
} layer_names[] = {
    {"input_layernorm.", "ln_1.", "input_layernorm."},
    {"self_attention.q_layernorm.", NULL, "self_attn.q_norm."},
    {"self_attention.k_layernorm.", NULL, "self_attn.k_norm."},
    {"self_attention.linear_qkv.", "attn.c_attn.", "self_attn.q_proj.|self_attn.k_proj.|self_attn.v_proj."},
    {"self_attention.linear_proj.", "attn.c_proj.", "self_attn.o_proj."},
    {"pre_mlp_layernorm.", "ln_2.", "post_attention_layernorm."},
    {"mlp.linear_fc1.", "mlp.c_fc.", "mlp.gate_proj.|mlp.up_proj."},
    {"mlp.linear_fc2.", "mlp.c_proj.", "mlp.down_proj."},
};
static const struct {
    const char *ours, *gpt2, *llama;
} top_names[] = {
    {"embedding.word_embeddings.", "transformer.wte.", "model.embed_tokens."},
    {"embedding.position_embeddings.", "transformer.wpe.", NULL},
    {"decoder.final_layernorm.", "transformer.ln_f.", "model.norm."},
    {"output_layer.", "lm_head.", "lm_head."},
};

/* The first `n` pieces of names ("a.|b.") in front of what. */
static int split_names(const char *before, const char *names, const char *what, struct hf_piece *piece)
{
    int n = 0;

    for (; n < HF_PIECES; n++) {
        size_t len = strcspn(names, "|");

        snprintf(piece[n].name, sizeof piece[n].name, "%s%.*s%s", before, (int)len, names, what);
        if (!names[len])
            return n + 1;
        names += len + 1;
    }
    return n;
}

/* Of experts and their router.  Mixtral's w1 is the gate, w3 the other half, w2 the way back. */
static int expert_pieces(const char *before, const char *ours, bool mixtral, struct hf_piece *piece)
{
    const char *fc1 = mixtral ? "w1.|w3." : "gate_proj.|up_proj.", *fc2 = mixtral ? "w2." : "down_proj.";
    char of[96], what[16];
    int64_t expert;
    int fc;

    if (sscanf(ours, "mlp.experts.local_experts.%" SCNd64 ".linear_fc%d.%15s", &expert, &fc, what) != 3)
        return 0;
    snprintf(of, sizeof of, "%s%s.experts.%" PRId64 ".", before, mixtral ? "block_sparse_moe" : "mlp", expert);
    return split_names(of, fc == 1 ? fc1 : fc2, what, piece);
}

static int shared_pieces(const char *before, const char *ours, struct hf_piece *piece)
{
    static const char *const names[][2] = {
        {"linear_fc1.weight", "mlp.shared_expert.gate_proj.|mlp.shared_expert.up_proj."},
        {"linear_fc2.weight", "mlp.shared_expert.down_proj."}, {"gate_weight", "mlp.shared_expert_gate."},
    };
    size_t i = 0;

    while (i < sizeof names / sizeof *names && strcmp(ours, names[i][0]) != 0)
        i++;
    return i < sizeof names / sizeof *names ? split_names(before, names[i][1], "weight", piece) : 0;
}

static int name_pieces(const char *ours, enum hf_family family, struct hf_piece *piece)
{
    bool gpt2 = family == HF_GPT2, mixtral = family == HF_MIXTRAL;
    char before[48];
    int64_t layer;
    int at = 0;

    if (sscanf(ours, "decoder.layers.%" SCNd64 ".%n", &layer, &at) == 1 && at) {
        snprintf(before, sizeof before, gpt2 ? "transformer.h.%" PRId64 "." : "model.layers.%" PRId64 ".", layer);
        for (size_t i = 0; i < sizeof layer_names / sizeof *layer_names; i++) {
            size_t n = strlen(layer_names[i].ours);

            if (strncmp(ours + at, layer_names[i].ours, n) == 0)
                return split_names(before, gpt2 ? layer_names[i].gpt2 : layer_names[i].llama, ours + at + n, piece);
        }
        if (strncmp(ours + at, "mlp.shared_experts.", 19) == 0)
            return shared_pieces(before, ours + at + 19, piece);
        if (strncmp(ours + at, "mlp.router.", 11) == 0)
            return split_names(before, mixtral ? "block_sparse_moe.gate." : "mlp.gate.", ours + at + 11, piece);
        return expert_pieces(before, ours + at, mixtral, piece);
    }
    for (size_t i = 0; i < sizeof top_names / sizeof *top_names; i++) {
        size_t n = strlen(top_names[i].ours);

        if (strncmp(ours, top_names[i].ours, n) == 0)
            return split_names("", gpt2 ? top_names[i].gpt2 : top_names[i].llama, ours + n, piece);
    }
    return 0;
}

int hf_pieces(const struct model_config *m, enum hf_family family, const struct params *p, int i,
              struct hf_piece piece[HF_PIECES])
{
    const struct param *q = &p->v[i];
    bool vocab = i == p->word || i == p->output, gpt2 = family == HF_GPT2;
    int n = name_pieces(q->name, family, piece);
    int64_t row = 0;

    for (int k = 0; k < n; k++) {
        piece[k].row = row;
        piece[k].rows = vocab ? m->vocab : n == 1 ? q->shape[0] : q->part[k];
        piece[k].transposed = gpt2 && q->dims == 2 && !vocab && i != p->position;
        row += piece[k].rows;
    }
    return n;
}

/* ---- files ---- */

int hf_index_parse(struct arena *a, const char *what, struct span text, const char ***files, int *n, struct err *e)
{
    const struct node *map;
    struct node *root;

    *n = 0;
    if (node_parse_json(a, text, &root, e) < 0)
        return err_wrap(e, "%s", what);
    map = node_get(root, "weight_map");
    if (!map || map->type != NODE_MAP || !map->count)
        return err_set(e, ERR_FORMAT, "%s: no weight_map", what);
    *files = arena_calloc(a, FILES_MAX, sizeof **files);
    if (!*files)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (const struct node *f = map->child; f; f = f->next) {
        int i = 0;

        if (f->type != NODE_STR || !f->str.n || strlen(f->str.p) != f->str.n || memchr(f->str.p, '/', f->str.n) || f->str.n > 200)
            return err_set(e, ERR_FORMAT, "%s: '%s' is in no file with a name", what, f->key.p);
        while (i < *n && strcmp((*files)[i], f->str.p) != 0)
            i++;
        if (i == FILES_MAX)
            return err_set(e, ERR_LIMIT, "%s: more than %d files", what, FILES_MAX);
        (*files)[i] = f->str.p;
        *n += i == *n;
    }
    return 0;
}

/* Every tensor of the index stands in the file that it says. */
static int check_index(const struct hf_files *h, const char *what, struct span text, struct err *e)
{
    struct arena a = {0};
    struct node *root;
    int rc = node_parse_json(&a, text, &root, e);

    for (const struct node *f = rc < 0 ? NULL : node_get(root, "weight_map")->child; f && rc == 0; f = f->next) {
        const char *file = "";
        bool there = hf_files_tensor(h, hf_files_find(h, f->key.p), &file);

        if (strcmp(file, f->str.p) != 0)
            rc = err_set(e, ERR_FORMAT, "%s: '%s' is not in '%s', as it says, but %s%s", what, f->key.p, f->str.p,
                         there ? "in " : "nowhere", file);
    }
    arena_free(&a);
    return rc;
}

static int order(struct span a, struct span b)
{
    int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int by_name(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    int c = order(a->tensor->name, b->tensor->name);

    return c ? c : a->file - b->file;
}

static int sort_tensors(struct hf_files *h, struct err *e)
{
    size_t n = 0;

    for (int f = 0; f < h->n; f++)
        n += (size_t)h->files[f].n;
    h->tensors = n > INT_MAX ? NULL : arena_calloc(&h->arena, n + 1, sizeof *h->tensors);
    if (!h->tensors)
        return err_set(e, ERR_NOMEM, "no memory for the names of %zu tensors", n);
    for (int f = 0; f < h->n; f++)
        for (int i = 0; i < h->files[f].n; i++)
            h->tensors[h->n_tensors++] = (struct placed){&h->files[f].v[i], f};
    qsort(h->tensors, n, sizeof *h->tensors, by_name);
    return 0;
}

static int open_files(struct hf_files *h, const char *dir, struct err *e)
{
    static const char *single[] = {"model.safetensors"};
    const char **names = single;
    struct buf text = {0};
    char path[4352], index[4352];
    int n = 1, rc = 0;
    bool sharded;

    snprintf(index, sizeof index, "%s/model.safetensors.index.json", dir);
    snprintf(path, sizeof path, "%s/%s", dir, single[0]);
    sharded = access(path, F_OK) < 0 && access(index, F_OK) == 0; /* in transformers' order */
    if (!sharded && access(path, F_OK) < 0)
        return err_set(e, ERR_IO, "%s: neither model.safetensors nor model.safetensors.index.json (files of other kinds, as"
                       " pytorch_model.bin, are not read)", dir);
    if (sharded) {
        rc = file_read_all(index, INDEX_MAX, &text, e);
        if (rc == 0)
            rc = hf_index_parse(&h->arena, index, buf_span(&text), &names, &n, e);
    }
    if (rc == 0) {
        h->names = names;
        h->maps = arena_calloc(&h->arena, (size_t)n, sizeof *h->maps);
        h->files = arena_calloc(&h->arena, (size_t)n, sizeof *h->files);
        if (!h->maps || !h->files)
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        rc = safetensors_map(&h->maps[i], path, e);
        h->n += rc == 0;
        if (rc == 0)
            rc = safetensors_parse(&h->arena, path, (struct span){(const char *)h->maps[i].p, h->maps[i].n}, &h->files[i], e);
    }
    if (rc == 0)
        rc = sort_tensors(h, e);
    if (rc == 0 && sharded)
        rc = check_index(h, index, buf_span(&text), e);
    buf_free(&text);
    return rc;
}

int hf_files_open(struct hf_files **out, const char *dir, struct err *e)
{
    struct hf_files *h = calloc(1, sizeof *h);
    int rc;

    if (!h)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = open_files(h, dir, e);
    if (rc < 0) {
        hf_files_close(h);
        return rc;
    }
    *out = h;
    return 0;
}

void hf_files_close(struct hf_files *h)
{
    if (!h)
        return;
    for (int i = 0; i < h->n; i++)
        file_map_close(&h->maps[i]);
    arena_free(&h->arena);
    free(h);
}

int hf_files_find(const struct hf_files *h, const char *name)
{
    int low = 0, high = h->n_tensors; /* the first that is not before name is in low .. high */

    while (low < high) {
        int mid = low + (high - low) / 2;

        if (order(h->tensors[mid].tensor->name, span_of(name)) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < h->n_tensors && span_is(h->tensors[low].tensor->name, name) ? low : -1;
}

const struct safetensor *hf_files_tensor(const struct hf_files *h, int i, const char **file)
{
    if (i < 0 || i >= h->n_tensors)
        return NULL;
    *file = h->names[h->tensors[i].file];
    return h->tensors[i].tensor;
}
