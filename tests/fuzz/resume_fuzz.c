/* What a killed run of `tokenize` left to go on from: the JSON of an indexed dataset and of token shards, beside files of
 * some tokens; and the place in an input. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/node.h"
#include "indexed_dataset/idx_write.h"
#include "indexed_dataset/token_shards.h"
#include "tokenize/line_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/resume_fuzz.XXXXXX";
static char dataset[64], shards[64], input[64]; /* paths there */
static int dir;
static const uint16_t tokens[40] = {1, 2, 3};
static const int32_t lengths[4] = {10, 10, 5, 15};

static void remove_folder(void)
{
    rmdir(folder);
}

/* A new run, which stops behind a checkpoint. */
static void leave(struct err *e)
{
    struct idx_writer *w;
    struct token_shards *s;
    struct buf state = {0};
    FILE *f = fopen(input, "w");

    if (!f || fputs("{\"text\":\"a\"}\n{\"text\":\"b\"}\n", f) < 0 || fclose(f) != 0)
        abort();
    if (idx_create(&w, dataset, IDX_U16, e) < 0 || idx_add_block(w, tokens, lengths, 4, NULL, 0, e) < 0 ||
        idx_checkpoint(w, &state, e) < 0 || token_shards_create(&s, shards, TOKEN_SHARDS_LLMC, 2, 30, e) < 0 ||
        token_shards_add(s, tokens, 40, e) < 0 || token_shards_checkpoint(s, &state, e) < 0)
        abort();
    idx_leave(w);
    token_shards_leave(s);
    buf_free(&state);
}

static void clear(void)
{
    static const char *const names[] = {".x.bin.part", ".x.lengths.part", ".x.documents.part", "in.jsonl",
                                        "s_000000.bin", "s_000001.bin", ".s_000000.bin.part", ".s_000001.bin.part"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlinkat(dir, names[i], 0);
}

static void go_on(const struct node *state, struct err *e)
{
    static char *const paths[] = {input};
    struct lines_place place = {(int)node_int(state, "at", 0), (uint64_t)node_int(state, "offset", 0),
                                 (uint64_t)node_int(state, "damages", 0)};
    struct line_block b = {0};
    struct idx_writer *w;
    struct token_shards *s;
    struct lines_in c;

    if (idx_resume(&w, dataset, IDX_U16, state, e) == 0)
        idx_leave(w);
    if (token_shards_resume(&s, shards, TOKEN_SHARDS_LLMC, 2, 30, state, e) == 0)
        token_shards_leave(s);
    c = LINES_OF_TEXTS(LINES_JSON, paths, 1);
    if (lines_check(&c, NULL, e) < 0)
        abort();
    if (lines_goto(&c, &place, e) == 0)
        lines_fill(&c, &b, e);
    line_block_free(&b);
    lines_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    struct arena a = {0};
    struct node *state;
    struct err e;

    if (!ready) {
        if (!mkdtemp(folder) || (dir = open(folder, O_RDONLY | O_DIRECTORY)) < 0)
            abort();
        snprintf(dataset, sizeof dataset, "%s/x", folder);
        snprintf(shards, sizeof shards, "%s/s", folder);
        snprintf(input, sizeof input, "%s/in.jsonl", folder);
        atexit(remove_folder);
        ready = true;
    }
    if (node_parse_json(&a, (struct span){(const char *)data, size}, &state, &e) == 0) {
        leave(&e);
        go_on(state, &e);
        clear();
    }
    arena_free(&a);
    return 0;
}
