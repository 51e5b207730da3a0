/* libquern.so as a program has it, through quern.h alone; what it answers is held against the same functions linked in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/version.h"
#include "bindings/quern.h"
#include "indexed_dataset/gpt_dataset.h"
#include "indexed_dataset/idx_write.h"
#include "tests/sanitized.h"
#include "tests/temp_folder.h"
#include "tokenize/tokenizer.h"

enum { ROOM = 4096, TEXTS = 300, THREADS = 8, EOD = 0 };
static const char tokenizer_json[] = "tests/data/train/sft/tokenizer.json";
static const char sentence[] = "The mill grinds the grain.<|endoftext|> \xC3\xA9t\xC3\xA9 \xFF";
static char prefix[64];
static quern_error err;

static quern_tokenizer *open_tokenizer(const char *path)
{
    quern_tokenizer *t = NULL;

    if (quern_tokenizer_open(&t, path, NULL, &err) < 0)
        fail_msg("%s", err.message);
    return t;
}

static void assert_refused(int64_t rc, int code, const char *why)
{
    assert_int_equal(rc, code);
    assert_int_equal(err.code, code);
    if (!strstr(err.message, why))
        fail_msg("no '%s' in: %s", why, err.message);
    err = (quern_error){0};
}

/* ---- tokenizers ---- */

static void ids_and_texts_go_there_and_back(void **state)
{
    quern_tokenizer *t = open_tokenizer(tokenizer_json);
    uint32_t ids[ROOM];
    char text[ROOM];
    struct tokenizer *own;
    struct encoder *enc;
    struct buf want = {0};
    int64_t n;

    (void)state;
    assert_string_equal(quern_version(), QUERN_VERSION);
    assert_int_equal(tokenizer_open(&own, tokenizer_json, NULL, NULL), 0);
    enc = encoder_new(own);
    for (int special = 0; special < 2; special++) {
        struct span s = {sentence, sizeof sentence - 1};
        buf_clear(&want);
        assert_int_equal(encoder_encode(enc, s, special ? ENCODER_SPECIAL : 0, 4, &want, NULL), 0);
        n = quern_encode(t, s.p, s.n, special ? QUERN_SPECIAL : 0, ids, ROOM, &err);
        assert_int_equal(n, want.n / 4);
        assert_memory_equal(ids, want.p, want.n);
        assert_int_equal(quern_decode(t, ids, (size_t)n, 0, text, ROOM, &err), s.n);
        assert_memory_equal(text, s.p, s.n);
    }
    assert_int_equal(quern_decode(t, ids, (size_t)n, QUERN_SKIP_SPECIAL, text, ROOM, &err), sizeof sentence - 1 - 13);
    assert_memory_equal(text, "The mill grinds the grain. ", 27);
    assert_int_equal(quern_encode(t, NULL, 0, 0, NULL, 0, &err), 0);
    assert_int_equal(quern_decode(t, NULL, 0, 0, NULL, 0, &err), 0);
    buf_free(&want);
    encoder_free(enc);
    tokenizer_close(own);
    quern_tokenizer_close(t);
}

static void tokens_are_looked_up(void **state)
{
    quern_tokenizer *t = open_tokenizer(tokenizer_json);
    char token[16] = "................";

    (void)state;
    assert_int_equal(quern_vocab_size(t), 352);
    assert_int_equal(quern_eod(t), EOD);
    assert_int_equal(quern_token_to_id(t, "<|endoftext|>", 13), EOD);
    assert_int_equal(quern_token_to_id(t, "no such token", 13), -1);
    assert_int_equal(quern_is_special(t, EOD), 1);
    assert_int_equal(quern_id_to_token(t, EOD, NULL, 0), 13);
    assert_int_equal(quern_id_to_token(t, EOD, token, 4), 13);
    assert_memory_equal(token, "<|en............", 16);
    for (uint32_t id = 0; id < 352; id++) {
        int64_t n = quern_id_to_token(t, id, token, sizeof token);
        assert_true(n > 0);
        if (n <= (int64_t)sizeof token)
            assert_int_equal(quern_token_to_id(t, token, (size_t)n), id);
    }
    assert_int_equal(quern_id_to_token(t, 352, token, 16), -1);
    assert_int_equal(quern_is_special(t, 352), 0);
    assert_int_equal(quern_is_special(t, UINT32_MAX), 0);
    quern_tokenizer_close(t);
}

static void what_does_not_fit_is_counted(void **state)
{
    quern_tokenizer *t = open_tokenizer(tokenizer_json);
    const char *texts[] = {sentence, "", sentence};
    size_t sizes[] = {sizeof sentence - 1, 0, sizeof sentence - 1}, ends[3], n;
    uint32_t all[2 * ROOM], some[ROOM];
    char text[ROOM];

    (void)state;
    n = (size_t)quern_encode(t, sentence, sizes[0], 0, all, ROOM, &err);
    for (size_t room = 0; room <= n; room++) {
        memset(some, 0xAA, sizeof some);
        assert_int_equal(quern_encode(t, sentence, sizes[0], 0, some, room, &err), n);
        assert_memory_equal(some, all, room * 4);
        assert_int_equal(some[room], 0xAAAAAAAA);
    }
    memcpy(all + n, all, n * 4);
    for (size_t room = 0; room <= 2 * n; room++) {
        memset(some, 0xAA, sizeof some);
        assert_int_equal(quern_encode_batch(t, texts, sizes, 3, 0, 1, some, room, ends, &err), 2 * n);
        assert_memory_equal(some, all, room * 4);
        assert_int_equal(some[room], 0xAAAAAAAA);
        assert_true(ends[0] == n && ends[1] == n && ends[2] == 2 * n);
    }
    memset(text, '.', sizeof text);
    assert_int_equal(quern_decode(t, all, n, 0, text, 5, &err), sizes[0]);
    assert_memory_equal(text, "The m...", 8);
    quern_tokenizer_close(t);
}

/* Texts of many lengths, some longer than what a thread takes at a time. */
struct texts {
    const char *p[TEXTS];
    size_t size[TEXTS], all;
    char *own;
};

static struct texts make_texts(void)
{
    struct texts x = {.own = malloc(TEXTS * 1000 + 200000)};
    size_t most = TEXTS * 1000 + 200000;

    assert_non_null(x.own);
    for (size_t i = 0; i < most; i++)
        x.own[i] = sentence[(i * 7 + i / 41) % (sizeof sentence - 1)];
    for (size_t i = 0; i < TEXTS; i++) {
        x.p[i] = x.own + x.all;
        x.size[i] = i % 100 == 50 ? 66000 : i * i * 31 % 997;
        x.all += x.size[i];
    }
    return x;
}

static void threads_change_nothing(void **state)
{
    quern_tokenizer *t = open_tokenizer(tokenizer_json);
    struct texts x = make_texts();
    uint32_t *one = malloc(x.all * 4), *many = malloc(x.all * 4), *single = malloc(x.all * 4);
    size_t ends[TEXTS], other[TEXTS], text_ends[TEXTS], at = 0;
    char *text = malloc(x.all);
    int64_t n = quern_encode_batch(t, x.p, x.size, TEXTS, QUERN_SPECIAL, 1, one, x.all, ends, &err);

    (void)state;
    assert_true(n > 0);
    for (size_t i = 0; i < TEXTS; i++) {
        at += (size_t)quern_encode(t, x.p[i], x.size[i], QUERN_SPECIAL, single + at, x.all - at, &err);
        assert_int_equal(ends[i], at);
    }
    assert_int_equal(n, at);
    assert_memory_equal(one, single, at * 4);
    for (int threads = 0; threads < 8; threads++) {
        memset(many, 0, x.all * 4);
        n = quern_encode_batch(t, x.p, x.size, TEXTS, QUERN_SPECIAL, threads, many, x.all, other, &err);
        assert_int_equal(n, at);
        assert_memory_equal(one, many, at * 4);
        assert_memory_equal(ends, other, sizeof ends);
        assert_int_equal(quern_decode_batch(t, one, ends, TEXTS, 0, threads, text, x.all, text_ends, &err), x.all);
        assert_memory_equal(text, x.own, x.all);
        assert_int_equal(text_ends[0], x.size[0]);
        assert_int_equal(text_ends[TEXTS - 1], x.all);
        one[ends[6]] = one[ends[200]] = 352; /* no token: the first of two is named, however many threads there are */
        n = quern_decode_batch(t, one, ends, TEXTS, 0, threads, text, x.all, text_ends, &err);
        assert_refused(n, QUERN_FORMAT, "text 7: ");
        one[ends[6]] = many[ends[6]];
        one[ends[200]] = many[ends[200]];
    }
    assert_int_equal(quern_encode_batch(t, NULL, NULL, 0, 0, 4, NULL, 0, NULL, &err), 0);
    free(one);
    free(many);
    free(single);
    free(text);
    free(x.own);
    quern_tokenizer_close(t);
}

/* Bytes of memory that the process has mapped. */
static size_t mapped(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void a_shortage_of_memory_passes(void **state)
{
    quern_tokenizer *t;
    size_t size = 64 << 20, ends[1];
    const char *text;
    uint32_t ids[ROOM];
    struct rlimit old, low;
    int64_t n, one, batch, other;

    (void)state;
    if (ASAN || TSAN)
        skip(); /* they map what no limit would allow */
    t = open_tokenizer(tokenizer_json);
    n = quern_encode(t, sentence, sizeof sentence - 1, 0, ids, ROOM, &err);
    text = calloc(size, 1);
    assert_non_null(text);
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    low = (struct rlimit){mapped() + (16 << 20), old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    one = quern_encode(t, text, size, 0, NULL, 0, &err);
    batch = quern_encode_batch(t, &text, &size, 1, 0, 1, NULL, 0, ends, NULL);
    setrlimit(RLIMIT_AS, &old);
    assert_refused(one, QUERN_MEMORY, "out of memory");
    assert_int_equal(batch, QUERN_MEMORY);
    for (int i = 0; i < 3; i++) {
        other = quern_encode(t, sentence, sizeof sentence - 1, 0, ids, ROOM, &err);
        assert_int_equal(other, n);
    }
    free((char *)(uintptr_t)text);
    quern_tokenizer_close(t);
}

struct shared {
    quern_tokenizer *t;
    struct texts x;
    uint32_t want[ROOM];
    int64_t n;
    int wrong;
};

static void *use(void *arg)
{
    struct shared *s = arg;
    uint32_t ids[ROOM];
    size_t ends[TEXTS];
    char text[ROOM];
    int wrong = 0;

    for (int i = 0; i < 50; i++) {
        wrong += quern_encode(s->t, sentence, sizeof sentence - 1, 0, ids, ROOM, NULL) != s->n ||
                 memcmp(ids, s->want, (size_t)s->n * 4) != 0;
        wrong += quern_decode(s->t, ids, (size_t)s->n, QUERN_SKIP_SPECIAL, text, ROOM, NULL) != sizeof sentence - 1;
        wrong += i % 10 == 0 && quern_encode_batch(s->t, s->x.p, s->x.size, TEXTS, 0, 2, NULL, 0, ends, NULL) < 0;
        wrong += quern_encode(s->t, NULL, 1, 0, ids, ROOM, NULL) != QUERN_ARGUMENT;
    }
    __atomic_fetch_add(&s->wrong, wrong, __ATOMIC_RELAXED);
    return NULL;
}

/* A signal to the process goes to a thread that has it not blocked: the one that made the call, none of the library's. */
static pthread_t caller;
static volatile sig_atomic_t elsewhere, here;

static void on_signal(int sig)
{
    (void)sig;
    *(pthread_equal(pthread_self(), caller) ? &here : &elsewhere) += 1;
}

static void signals_are_for_the_program(void **state)
{
    quern_tokenizer *t = open_tokenizer(tokenizer_json);
    struct texts x = make_texts();
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    size_t ends[TEXTS];

    (void)state;
    caller = pthread_self();
    sigaction(SIGPROF, &sa, &old);
    setitimer(ITIMER_PROF, &often, NULL); /* to whatever thread may have it */
    for (int i = 0; i < 50; i++)
        assert_true(quern_encode_batch(t, x.p, x.size, TEXTS, 0, 4, NULL, 0, ends, &err) > 0);
    setitimer(ITIMER_PROF, &never, NULL);
    sigaction(SIGPROF, &old, NULL);
    assert_int_equal(elsewhere, 0);
    assert_true(here > 0);
    free(x.own);
    quern_tokenizer_close(t);
}

static void threads_of_a_program_share_a_tokenizer(void **state)
{
    struct shared s = {.t = open_tokenizer(tokenizer_json), .x = make_texts()};
    pthread_t thread[THREADS];

    (void)state;
    s.n = quern_encode(s.t, sentence, sizeof sentence - 1, 0, s.want, ROOM, &err);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, use, &s), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(s.wrong, 0);
    free(s.x.own);
    quern_tokenizer_close(s.t);
}

static void a_child_goes_on(void **state)
{
    quern_tokenizer *t = open_tokenizer(tokenizer_json);
    uint32_t ids[ROOM];
    int64_t n = quern_encode(t, sentence, sizeof sentence - 1, 0, ids, ROOM, &err);
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0)
        _exit(quern_encode(t, sentence, sizeof sentence - 1, 0, ids, ROOM, &err) == n ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    quern_tokenizer_close(t);
}

static void impossible_tokenizers_are_refused(void **state)
{
    quern_tokenizer *t = (quern_tokenizer *)&err;
    quern_tokenizer_settings s = {.pattern = "(", .size = sizeof s};
    const char *texts[] = {NULL};
    size_t one = 1, ends[2] = {1, 0};
    uint32_t ids[2] = {0, 0};
    char text[ROOM], path[80];

    (void)state;
    assert_refused(quern_tokenizer_open(&t, "no/such/file", NULL, &err), QUERN_IO, "no/such/file");
    assert_null(t);
    assert_refused(quern_tokenizer_open(&t, "-", NULL, &err), QUERN_ARGUMENT, "'-'");
    assert_refused(quern_tokenizer_open(&t, NULL, NULL, &err), QUERN_ARGUMENT, "no path");
    assert_refused(quern_tokenizer_open(NULL, tokenizer_json, NULL, &err), QUERN_ARGUMENT, "no place");
    snprintf(path, sizeof path, "%s/damaged", dir);
    spew(path, "{\"model\": {", 11);
    assert_refused(quern_tokenizer_open(&t, path, NULL, &err), QUERN_FORMAT, path);
    assert_refused(quern_tokenizer_open(&t, "tests/data/tokenizer/vocab.json", &s, &err), QUERN_ARGUMENT, "(");
    s = (quern_tokenizer_settings){.special_tokens = "-", .size = sizeof s};
    assert_refused(quern_tokenizer_open(&t, tokenizer_json, &s, &err), QUERN_ARGUMENT, "'-'");
    for (size_t size = 0; size < 100; size += 99) { /* none; that of a later version */
        s.size = size;
        assert_refused(quern_tokenizer_open(&t, tokenizer_json, &s, &err), QUERN_ARGUMENT, "size");
    }
    assert_int_equal(quern_tokenizer_open(&t, "no/such/file", NULL, NULL), QUERN_IO);
    s = (quern_tokenizer_settings){.size = offsetof(quern_tokenizer_settings, eod), .eod = "which its caller does not know"};
    assert_int_equal(quern_tokenizer_open(&t, tokenizer_json, &s, &err), 0);

    assert_refused(quern_encode(NULL, "a", 1, 0, ids, 2, &err), QUERN_ARGUMENT, "no tokenizer");
    assert_refused(quern_encode(t, NULL, 1, 0, ids, 2, &err), QUERN_ARGUMENT, "no text");
    assert_refused(quern_encode(t, "a", 1, 0, NULL, 2, &err), QUERN_ARGUMENT, "nowhere");
    assert_refused(quern_encode(t, "a", 1, 64, ids, 2, &err), QUERN_ARGUMENT, "flag");
    assert_refused(quern_encode(t, "a", (size_t)1 << 31, 0, ids, 2, &err), QUERN_LIMIT, "2 GiB");
    assert_refused(quern_encode_batch(t, texts, &one, 1, 0, 1, ids, 2, ends, &err), QUERN_ARGUMENT, "NULL");
    assert_refused(quern_encode_batch(t, texts, NULL, 1, 0, 1, ids, 2, ends, &err), QUERN_ARGUMENT, "no texts");
    assert_refused(quern_encode_batch(t, texts, &one, 1, 0, -1, ids, 2, ends, &err), QUERN_ARGUMENT, "encode");
    assert_refused(quern_decode(t, NULL, 1, 0, text, ROOM, &err), QUERN_ARGUMENT, "no ids");
    assert_refused(quern_decode(t, ids, 2, QUERN_SPECIAL, text, ROOM, &err), QUERN_ARGUMENT, "flag");
    assert_refused(quern_decode_batch(t, ids, ends, 2, 0, 1, text, ROOM, ends, &err), QUERN_ARGUMENT, "end before");
    assert_refused(quern_decode_batch(t, NULL, ends, 1, 0, 1, text, ROOM, ends, &err), QUERN_ARGUMENT, "no ids");
    ids[1] = UINT32_MAX;
    assert_refused(quern_decode(t, ids, 2, QUERN_SKIP_SPECIAL, text, ROOM, &err), QUERN_FORMAT, "4294967295");
    assert_int_equal(quern_vocab_size(NULL) + quern_is_special(NULL, 0), 0);
    assert_int_equal(quern_token_to_id(NULL, "a", 1), -1);
    assert_int_equal(quern_token_to_id(t, NULL, 0), -1);
    assert_int_equal(quern_id_to_token(NULL, 0, text, ROOM), -1);
    assert_int_equal(quern_eod(NULL), -1);
    quern_tokenizer_close(t);
    quern_tokenizer_close(NULL);
}

/* ---- datasets ---- */

enum { DOCUMENTS = 40 };

/* Documents of 1 to 40 tokens; the second, of a token and two, is of two sequences. */
static void make_dataset(void)
{
    struct idx_writer *w = NULL;
    uint16_t id[DOCUMENTS];
    int32_t lengths[] = {1, 2};
    uint64_t docs[] = {2};

    snprintf(prefix, sizeof prefix, "%s/data", dir);
    assert_int_equal(idx_create(&w, prefix, IDX_U16, NULL), 0);
    for (int d = 0; d < DOCUMENTS; d++) {
        int32_t n = d + 1;
        for (int i = 0; i <= d; i++)
            id[i] = (uint16_t)(100 * d + i);
        if (d == 1)
            assert_int_equal(idx_add_block(w, (uint16_t[]){100, 101, 102}, lengths, 2, docs, 1, NULL), 0);
        else
            assert_int_equal(idx_add_block(w, id, &n, 1, NULL, 0, NULL), 0);
    }
    assert_int_equal(idx_commit(w, (struct span){NULL, 0}, NULL), 0);
}

static void documents_are_read(void **state)
{
    quern_dataset *d = NULL;
    int32_t tokens[DOCUMENTS], lengths[DOCUMENTS + 1];
    int64_t bounds[DOCUMENTS + 1];

    (void)state;
    assert_int_equal(quern_dataset_open(&d, prefix, &err), 0);
    assert_int_equal(quern_dataset_documents(d), DOCUMENTS);
    assert_int_equal(quern_dataset_sequences(d), DOCUMENTS + 1);
    assert_int_equal(quern_dataset_dtype(d), IDX_U16);
    assert_int_equal(quern_dataset_lengths(d, 0, DOCUMENTS + 1, lengths, &err), 0);
    assert_true(lengths[0] == 1 && lengths[1] == 1 && lengths[2] == 2 && lengths[DOCUMENTS] == DOCUMENTS);
    assert_int_equal(quern_dataset_boundaries(d, 0, DOCUMENTS + 1, bounds, &err), 0);
    assert_true(bounds[0] == 0 && bounds[1] == 1 && bounds[2] == 3 && bounds[DOCUMENTS] == DOCUMENTS + 1);
    assert_int_equal(quern_dataset_boundaries(d, DOCUMENTS, 1, bounds, &err), 0);
    assert_int_equal(bounds[0], DOCUMENTS + 1);
    assert_int_equal(quern_dataset_read(d, DOCUMENTS, 0, NULL, 0, &err), DOCUMENTS);
    memset(tokens, 0xAA, sizeof tokens);
    assert_int_equal(quern_dataset_read(d, 11, 4, tokens, 2, &err), 7); /* document 10 */
    assert_true(tokens[0] == 1004 && tokens[1] == 1005 && tokens[2] == (int32_t)0xAAAAAAAA);
    assert_int_equal(quern_dataset_read(d, 11, 11, NULL, 0, &err), 0);
    for (size_t room = 0; room < 4; room++) {
        memset(tokens, 0xAA, sizeof tokens);
        assert_int_equal(quern_dataset_read_document(d, 1, tokens, room, &err), 3);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(tokens[i], i < room ? 100 + (int32_t)i : (int32_t)0xAAAAAAAA);
    }
    assert_refused(quern_dataset_read(d, 11, 12, tokens, 1, &err), QUERN_ARGUMENT, "none from 12");
    assert_refused(quern_dataset_read(d, DOCUMENTS + 1, 0, tokens, 1, &err), QUERN_ARGUMENT, "no sequence");
    assert_refused(quern_dataset_read_document(d, DOCUMENTS, tokens, 1, &err), QUERN_ARGUMENT, "no document");
    assert_refused(quern_dataset_lengths(d, 1, DOCUMENTS + 1, lengths, &err), QUERN_ARGUMENT, "no such");
    assert_refused(quern_dataset_lengths(d, SIZE_MAX, 2, lengths, &err), QUERN_ARGUMENT, "no such");
    assert_refused(quern_dataset_boundaries(d, 0, DOCUMENTS + 2, bounds, &err), QUERN_ARGUMENT, "no such");
    assert_refused(quern_dataset_read(d, 0, 0, NULL, 1, &err), QUERN_ARGUMENT, "nowhere");
    assert_refused(quern_dataset_read(NULL, 0, 0, tokens, 1, &err), QUERN_ARGUMENT, "no dataset");
    assert_refused(quern_dataset_open(&d, NULL, &err), QUERN_ARGUMENT, "no prefix");
    quern_dataset_close(d);
    quern_dataset_close(NULL);
}

/* Every byte of the .idx damaged in turn: an error or other tokens, nothing worse. */
static void damaged_datasets_are_errors(void **state)
{
    char path[80], damaged[80], none[80];
    uint8_t idx[4096];
    size_t n, refused = 0;
    int32_t tokens[DOCUMENTS];
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s.idx", prefix);
    snprintf(damaged, sizeof damaged, "%s/bad", dir);
    f = fopen(path, "rb");
    assert_non_null(f);
    n = fread(idx, 1, sizeof idx, f);
    fclose(f);
    snprintf(path, sizeof path, "%s/bad.bin", dir);
    snprintf(none, sizeof none, "%s.bin", prefix);
    assert_int_equal(link(none, path), 0);
    snprintf(path, sizeof path, "%s/bad.idx", dir);
    for (size_t i = 0; i < n; i++) {
        quern_dataset *d = NULL;
        idx[i] ^= 0x80;
        spew(path, idx, n);
        idx[i] ^= 0x80;
        if (quern_dataset_open(&d, damaged, &err) < 0) {
            refused++;
            continue;
        }
        for (size_t k = 0; k < quern_dataset_documents(d); k++)
            refused += quern_dataset_read_document(d, k, tokens, DOCUMENTS, &err) < 0;
        quern_dataset_close(d);
    }
    assert_true(refused > n / 2);
}

static quern_samples_settings settings_for(const char *const *paths, size_t n)
{
    return (quern_samples_settings){.size = sizeof(quern_samples_settings), .paths = paths, .n_paths = n, .part = QUERN_TRAIN,
                                    .seed = 1234, .sequence_length = 16, .samples = 100};
}

static void assert_samples(const quern_samples_settings *s)
{
    struct gpt_conf c = {.seq_length = 16, .samples = {s->samples ? s->samples : -1}, .seed = s->seed, .split = s->split};
    struct gpt_dataset *want[GPT_SPLITS];
    quern_samples *got = NULL;
    int32_t a[17], b[17];

    c.paths = c.split_paths[0] = (struct gpt_paths){s->paths, (int)s->n_paths};
    assert_int_equal(gpt_dataset_open(want, &c, NULL), 0);
    if (quern_samples_open(&got, s, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(quern_samples_count(got), gpt_dataset_samples(want[0]));
    for (int64_t i = 0; i < gpt_dataset_samples(want[0]); i++) {
        assert_int_equal(gpt_dataset_get(want[0], i, a, NULL), 0);
        assert_int_equal(quern_samples_read(got, i, b, &err), 0);
        assert_memory_equal(a, b, sizeof a);
    }
    assert_refused(quern_samples_read(got, quern_samples_count(got), b, &err), QUERN_ARGUMENT, "no sample");
    assert_refused(quern_samples_read(got, -1, b, &err), QUERN_ARGUMENT, "no sample");
    assert_refused(quern_samples_read(got, 0, NULL, &err), QUERN_ARGUMENT, "nowhere");
    quern_samples_close(got);
    gpt_dataset_close(want[0]);
}

static void samples_come_in_training_order(void **state)
{
    const char *paths[] = {prefix}, *blend[] = {"0.25", prefix, "0.75", prefix};
    quern_samples_settings s = settings_for(paths, 1);
    char folder[80];

    (void)state;
    assert_samples(&s);
    s.samples = 0;
    assert_samples(&s);
    s.split = "80,10,10";
    snprintf(folder, sizeof folder, "%s/cache", dir);
    for (int i = 0; i < 2; i++, s.cache = folder)
        assert_samples(&s);
    assert_samples(&s); /* from the cache */
    assert_int_equal(access(folder, F_OK), 0);
    s = settings_for(blend, 4);
    assert_samples(&s);
}

/* Where 0.25 would be read as 0, and stands for 0,25. */
static void weights_have_a_point_in_any_language(void **state)
{
    const char *blend[] = {"0.25", prefix, "0.75", prefix};
    quern_samples_settings s = settings_for(blend, 4);
    quern_samples *got;
    char command[200], number[8];

    (void)state;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null", dir);
    if (system(command) != 0 || setenv("LOCPATH", dir, 1) != 0 || !setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        skip();
    assert_int_equal(quern_samples_open(&got, &s, &err), 0);
    quern_samples_close(got);
    snprintf(number, sizeof number, "%.1f", 0.5);
    assert_string_equal(number, "0,5"); /* and the program's is as it was */
    setlocale(LC_NUMERIC, "C");
}

static void impossible_samples_are_refused(void **state)
{
    const char *paths[] = {prefix}, *missing[] = {"no/such/data"}, *nothing[] = {NULL};
    quern_samples_settings s = settings_for(missing, 1);
    quern_samples *x = (quern_samples *)&err;

    (void)state;
    assert_refused(quern_samples_open(&x, NULL, &err), QUERN_ARGUMENT, "no settings");
    assert_refused(quern_samples_open(&x, &s, &err), QUERN_IO, "no/such/data");
    assert_null(x);
    s = settings_for(nothing, 1);
    assert_refused(quern_samples_open(&x, &s, &err), QUERN_ARGUMENT, "NULL");
    s = settings_for(paths, 0);
    assert_refused(quern_samples_open(&x, &s, &err), QUERN_ARGUMENT, "no paths");
    s = settings_for(paths, 1);
    s.part = 3;
    assert_refused(quern_samples_open(&x, &s, &err), QUERN_ARGUMENT, "the part");
    s = settings_for(paths, 1);
    s.samples = -1;
    assert_refused(quern_samples_open(&x, &s, &err), QUERN_ARGUMENT, "fewer than none");
    s = settings_for(paths, 1);
    s.sequence_length = 0;
    assert_refused(quern_samples_open(&x, &s, &err), QUERN_ARGUMENT, "sequence length");
    s = settings_for(paths, 1);
    s.split = "100,0,0";
    s.part = QUERN_TEST;
    assert_refused(quern_samples_open(&x, &s, &err), QUERN_ARGUMENT, "leaves nothing");
    assert_int_equal(quern_samples_count(NULL), 0);
    assert_refused(quern_samples_read(NULL, 0, (int32_t[17]){0}, &err), QUERN_ARGUMENT, "no samples");
    quern_samples_close(NULL);
}

/* A cache that cannot be written is done without; the tools warn of that. */
static void nothing_is_printed(void **state)
{
    const char *paths[] = {prefix};
    quern_samples_settings s = settings_for(paths, 1);
    quern_samples *x = NULL;
    char path[80], folder[80];
    struct stat st;
    int out, before = dup(2), rc;

    (void)state;
    snprintf(path, sizeof path, "%s/printed", dir);
    snprintf(folder, sizeof folder, "%s.idx/cache", prefix);
    s.cache = folder;
    out = open(path, O_CREAT | O_RDWR, 0600);
    assert_true(before >= 0 && out >= 0 && dup2(out, 2) == 2);
    rc = quern_samples_open(&x, &s, &err);
    dup2(before, 2);
    close(before);
    assert_int_equal(rc, 0);
    assert_int_equal(fstat(out, &st), 0);
    assert_int_equal(st.st_size, 0);
    close(out);
    quern_samples_close(x);
}

static int set_up(void **state)
{
    if (make_dir(state) < 0)
        return -1;
    make_dataset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_texts_go_there_and_back),
        cmocka_unit_test(tokens_are_looked_up),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(signals_are_for_the_program),
        cmocka_unit_test(threads_of_a_program_share_a_tokenizer),
        cmocka_unit_test(a_child_goes_on),
        cmocka_unit_test(a_shortage_of_memory_passes),
        cmocka_unit_test(impossible_tokenizers_are_refused),
        cmocka_unit_test(documents_are_read),
        cmocka_unit_test(damaged_datasets_are_errors),
        cmocka_unit_test(samples_come_in_training_order),
        cmocka_unit_test(weights_have_a_point_in_any_language),
        cmocka_unit_test(impossible_samples_are_refused),
        cmocka_unit_test(nothing_is_printed),
    };
    return cmocka_run_group_tests_name("library", tests, set_up, remove_dir);
}
