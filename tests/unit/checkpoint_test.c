/* Checkpoints and safetensors: round trips, every kind of damage, failures to write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "tests/temp_folder.h"
#include "train/saver.h"

static struct params params;
static struct model_config model = {
    .layers = 2, .hidden = 24, .heads = 2, .seq = 8, .vocab = 50, .init_std = 0.02,
};
static float *slab[CHECKPOINT_PARTS], *back;
static struct err e;
static struct comm *self;
static struct device *dev;

static int start(void **state)
{
    log_init("checkpoint_test", LOG_ERROR);
    if (comm_open_self(&self, &e) < 0 || device_open(&dev, "cpu", 1, &e) < 0)
        return -1;
    if (make_dir(state) < 0 || model_config_check(&model, 16, &e) < 0 || params_init(&params, &model, NULL, &e) < 0)
        return -1;
    for (int k = 0; k < CHECKPOINT_PARTS; k++) {
        slab[k] = mem_aligned(params.elements * sizeof(float));
        params_fill(&params, (uint64_t)k + 1, slab[k]);
    }
    back = mem_aligned(params.elements * sizeof(float));
    return 0;
}

static int end(void **state)
{
    for (int k = 0; k < CHECKPOINT_PARTS; k++)
        free(slab[k]);
    free(back);
    params_free(&params);
    device_close(dev);
    comm_close(self);
    return remove_dir(state);
}

/* Every other one of a copy, as beside training. */
static int save(int64_t step)
{
    struct checkpoint_arg args[] = {{.name = "lr", .text = "0.001"}, {.name = "split", .text = "a \"quoted\", one"}};
    struct checkpoint_info info = {step, step * 4, model, args, 2, {2.5, 0.1, step}, step, {0}};

    struct piece v[CHECKPOINT_PARTS * 64];
    struct saver *s;
    int64_t done;
    int n = 0, rc;

    for (int k = 0; k < CHECKPOINT_PARTS; k++)
        n += params_pieces(&params, (enum checkpoint_part)k, slab[k], DTYPE_F32, v + n);
    rc = saver_open(&s, self, NULL, dir, NULL, v, n, step / 10 % 2, &e);
    if (rc < 0)
        return rc;
    rc = saver_start(s, &info, &e);
    if (rc == 0)
        rc = saver_done(s, true, &done, &e);
    saver_close(s);
    return rc == SAVER_FAILED ? e.code : rc < 0 ? rc : 0;
}

/* The step that opening dir gives; 0: none there, < 0: an error. */
static int64_t opened(int64_t step)
{
    struct checkpoint *ck;
    int rc = checkpoint_open(&ck, dir, step, &e);
    int64_t got = rc < 0 ? rc : ck ? checkpoint_info(ck)->iteration : 0;

    if (rc == 0)
        checkpoint_close(ck);
    return got;
}

/* Entries of the folder that are not there to stay. */
static int leftovers(void)
{
    DIR *d = opendir(dir);
    struct dirent *f;
    int n = 0;

    assert_non_null(d);
    while ((f = readdir(d)))
        n += strncmp(f->d_name, ".iter", 5) == 0;
    closedir(d);
    return n;
}

static void round_trip(void **state)
{
    struct checkpoint *ck;
    const struct checkpoint_info *info;
    char text[16] = "";
    FILE *f;

    (void)state;
    assert_int_equal(opened(CHECKPOINT_LAST), 0); /* an empty folder has none */
    assert_int_equal(save(10), 0);
    assert_int_equal(save(20), 0);
    assert_int_equal(checkpoint_open(&ck, dir, CHECKPOINT_LAST, &e), 0);
    info = checkpoint_info(ck);
    assert_int_equal(info->iteration, 20);
    assert_int_equal(info->consumed, 80);
    assert_int_equal(info->model.hidden, 24);
    assert_int_equal(info->model.padded_vocab, 64);
    assert_true(info->guard.loss == 2.5 && info->guard.norm == 0.1 && info->guard.n == 20);
    assert_int_equal(info->n_args, 2);
    assert_string_equal(info->args[1].text, "a \"quoted\", one");
    for (int k = 0; k < CHECKPOINT_PARTS; k++) {
        memset(back, 0xff, params.elements * sizeof(float));
        assert_int_equal(checkpoint_load_slab(ck, dev, (enum checkpoint_part)k, &params, back, &e), 0);
        assert_memory_equal(back, slab[k], params.elements * sizeof(float));
    }
    checkpoint_close(ck);
    assert_int_equal(opened(10), 10);
    f = fopen(at("latest_checkpointed_iteration.txt"), "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "20\n");
    assert_int_equal(save(20), 0); /* replaces */
    assert_int_equal(opened(20), 20);
    assert_int_equal(leftovers(), 0);
}

/* Every byte of every file matters: flip some all over, cut it, remove it. */
static void damage_is_found_and_the_one_before_used(void **state)
{
    static const char *const names[] = {"metadata.json", "model.safetensors", "optimizer.safetensors"};

    (void)state;
    assert_int_equal(save(10) | save(20), 0);
    for (int i = 0; i < 3; i++) {
        struct buf b = {0};
        char path[256];

        snprintf(path, sizeof path, "%s/iter_0000020/%s", dir, names[i]);
        assert_int_equal(file_read_all(path, 1 << 28, &b, &e), 0);
        for (size_t k = 0; k < 40; k++) {
            size_t where = k < 20 ? k * 7 % b.n : (b.n - 1) - (k - 20) * (b.n / 23);

            b.p[where] ^= 0x10;
            spew(path, b.p, b.n);
            b.p[where] ^= 0x10;
            if (opened(CHECKPOINT_LAST) != 10)
                fail_msg("%s: flipped byte %zu of %zu was not found", names[i], where, b.n);
            assert_true(opened(20) < 0);
            if (!strstr(e.msg, names[i]))
                fail_msg("'%s' does not name %s", e.msg, names[i]);
        }
        for (size_t n = 0; n < b.n; n += b.n / 11 + 1) {
            spew(path, b.p, n);
            assert_int_equal(opened(CHECKPOINT_LAST), 10);
        }
        assert_int_equal(unlink(path), 0);
        assert_int_equal(opened(CHECKPOINT_LAST), 10);
        spew(path, b.p, b.n);
        assert_int_equal(opened(CHECKPOINT_LAST), 20);
        buf_free(&b);
    }
}

/* Puts `to` in the place of `from` in the metadata of step 20, under a good checksum, and opens it. */
static int64_t opened_with(const char *from, const char *to)
{
    const char *path = at("iter_0000020/metadata.json");
    struct buf was = {0}, b = {0};
    const char *found;
    int64_t got;

    assert_int_equal(file_read_all(path, 1 << 28, &was, &e), 0);
    found = strstr(was.p, from);
    assert_non_null(found);
    assert_int_equal(buf_put(&b, was.p, (size_t)(found - was.p)), 0);
    assert_int_equal(buf_puts(&b, to), 0);
    assert_int_equal(buf_puts(&b, found + strlen(from)), 0);
    b.n -= strlen(",\"xxh3\":\"0123456789abcdef\"}\n");
    assert_int_equal(buf_printf(&b, ",\"xxh3\":\"%016" PRIx64 "\"}\n", hash_xxh3_64(buf_span(&b))), 0);
    spew(path, b.p, b.n);
    got = opened(20);
    spew(path, was.p, was.n);
    buf_free(&b);
    buf_free(&was);
    return got;
}

/* Metadata that is as it was written and says what cannot be. */
static void metadata_are_not_trusted(void **state)
{
    static const char name[] = "\"name\":\"model.safetensors\"", file[] = "\"bytes\":";
    static const struct {
        const char *from, *to, *why;
    } t[] = {
        {name, "\"name\":\"../iter_0000010/model.safetensors\"", "a file without name"},
        {name, "\"name\":\"/etc/passwd\"", "a file without name"},
        {name, "\"name\":\"..\"", "it is no regular file"},
        {name, "\"name\":\"\"", "it is no regular file"},
        {name, "\"name\":7", "a file without name"},
        {name, "\"name\":\"metadata.json\"", "metadata.json: "},
        {name, "\"name\":\"no.safetensors\"", "No such file"},
        {name, "\"name\":\"optimizer.safetensors\"", "optimizer.safetensors: "},
        {file, "\"bytes\":-1,\"was\":", "model.safetensors: "},
        {file, "\"bytes\":9999999999999999,\"was\":", "not the 9999999999999999 that were written"},
        {"\"tensors\":{", "\"tensors\":3,\"were\":{", "damaged: the checksum of"},
        {"\"tensors\":{", "\"none\":{", "without name or tensors"},
        {"\"files\":[", "\"files\":[],\"were\":[", "no files"},
        {"\"files\":[", "\"files\":[3,", "without name or tensors"},
        {"\"iteration\":20", "\"iteration\":10", "it is of step 10"},
        {"\"updates\":20", "\"updates\":-1", "no iteration, consumed_samples or updates"},
        {"\"version\":1", "\"version\":3", "version 3 is not known"},
    };

    (void)state;
    assert_int_equal(save(10) | save(20), 0);
    assert_int_equal(opened_with(name, name), 20);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (opened_with(t[i].from, t[i].to) >= 0 || !strstr(e.msg, t[i].why) || !strstr(e.msg, "iter_0000020"))
            fail_msg("%s: '%s'", t[i].to, e.msg);
    assert_int_equal(unlink(at("iter_0000020/model.safetensors")), 0);
    assert_int_equal(mkfifo(at("iter_0000020/model.safetensors"), 0666), 0);
    assert_int_equal(opened(CHECKPOINT_LAST), 10); /* and does not wait for a writer */
    assert_int_equal(unlink(at("iter_0000020/model.safetensors")), 0);
    assert_int_equal(save(20), 0);
}

static void all_damaged_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(save(10) | save(20), 0);
    spew(at("iter_0000010/model.safetensors"), "x", 1);
    spew(at("iter_0000020/model.safetensors"), "x", 1);
    assert_int_equal(opened(CHECKPOINT_LAST), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "none of its 2 checkpoints is whole"));
    assert_true(opened(30) < 0);
    assert_int_equal(save(10), 0);
    assert_int_equal(save(20), 0);
}

static void the_text_file_says_which_is_last(void **state)
{
    (void)state;
    assert_int_equal(save(10) | save(20), 0);
    spew(at("latest_checkpointed_iteration.txt"), "10\n", 3);
    assert_int_equal(opened(CHECKPOINT_LAST), 10); /* a user may go back */
    spew(at("latest_checkpointed_iteration.txt"), "15", 2);
    assert_int_equal(opened(CHECKPOINT_LAST), 10);
    spew(at("latest_checkpointed_iteration.txt"), "5", 1);
    assert_int_equal(opened(CHECKPOINT_LAST), ERR_FORMAT);
    spew(at("latest_checkpointed_iteration.txt"), "nonsense", 8);
    assert_int_equal(opened(CHECKPOINT_LAST), 20);
    unlink(at("latest_checkpointed_iteration.txt"));
    assert_int_equal(opened(CHECKPOINT_LAST), 20);
}

/* In a child, so that limits and death stay there. */
static int in_child(int (*fn)(int), int arg)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(fn(arg));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int save_with_limit(int bytes)
{
    struct rlimit r = {(rlim_t)bytes, (rlim_t)bytes};

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &r);
    return save(30) == ERR_IO && strstr(e.msg, "iter_0000030") ? 7 : 0;
}

static void a_failed_save_leaves_nothing(void **state)
{
    static const int limits[] = {0, 100, 5000, 100000};

    (void)state;
    assert_int_equal(save(10) | save(20), 0);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        int status = in_child(save_with_limit, limits[i]);

        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        assert_int_equal(access(at("iter_0000030"), F_OK), -1);
        assert_int_equal(leftovers(), 0);
        assert_int_equal(opened(CHECKPOINT_LAST), 20);
    }
}

static int save_and_be_killed(int microseconds)
{
    (void)microseconds;
    for (int64_t step = 40;; step++)
        save(step);
    return 0;
}

static void a_killed_save_leaves_a_whole_one(void **state)
{
    int64_t before = 20;

    (void)state;
    assert_int_equal(save(20), 0);
    for (int i = 0; i < 8; i++) {
        pid_t pid = fork();
        int64_t got;

        if (pid == 0)
            _exit(save_and_be_killed(0));
        usleep((useconds_t)(3000 + i * 1700));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        got = opened(CHECKPOINT_LAST);
        assert_true(got >= before || got >= 40);
    }
    assert_int_equal(mkdir(at(".iter_0000050.tmp"), 0777), 0); /* as older versions named them */
    assert_int_equal(save(1000000), 0); /* clears what was left */
    assert_int_equal(leftovers(), 0);
    assert_int_equal(opened(CHECKPOINT_LAST), 1000000);
}

/* Of two folders that runs have begun one is still written. */
static void what_killed_saves_left_is_swept(void **state)
{
    struct checkpoint_folder live = {.dir = dir, .step = 60};
    char killed[512];

    (void)state;
    assert_int_equal(checkpoint_begin(&live, &e), 0);
    snprintf(killed, sizeof killed, "%s", at(".iter_0000061.0123456789abcdef.tmp"));
    assert_int_equal(mkdir(killed, 0777), 0);
    assert_int_equal(leftovers(), 2);
    checkpoint_sweep(dir);
    assert_int_equal(access(killed, F_OK), -1);
    assert_int_equal(leftovers(), 1);
    assert_int_equal(save(1000000), 0); /* a save spares it too */
    assert_int_equal(leftovers(), 1);
    checkpoint_abort(&live);
    assert_int_equal(leftovers(), 0);
    checkpoint_sweep(at("nowhere"));
}

static void another_models_checkpoint_is_refused(void **state)
{
    struct model_config other = model;
    struct params p;
    struct checkpoint *ck;

    (void)state;
    other.hidden = 16;
    assert_int_equal(params_init(&p, &other, NULL, &e), 0);
    assert_int_equal(save(1000001), 0);
    assert_int_equal(checkpoint_open(&ck, dir, 1000001, &e), 0);
    assert_int_equal(checkpoint_load_slab(ck, dev, CHECKPOINT_WEIGHTS, &p, back, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "embedding.word_embeddings.weight"));
    checkpoint_close(ck);
    params_free(&p);
}

/* ---- memory, and disks that fail ---- */

enum { LARGE = 64 << 20, LARGE_ROWS = 4096, LARGE_COLS = LARGE / LARGE_ROWS / 4 };

static int some(void *arg, int i, size_t from, struct span *data, struct err *err)
{
    static float room[4096];

    (void)arg, (void)i, (void)err;
    for (size_t k = 0; k < 4096; k++)
        room[k] = (float)(from / sizeof(float) + k);
    *data = (struct span){(const char *)room, sizeof room};
    return 0;
}

static long most_memory(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss << 10;
}

/* Verifies a checkpoint and takes columns of all its rows: 0, if the process has grown by less than half of it. */
static int take_columns(int cut)
{
    static float room[LARGE_ROWS * 8];
    struct piece want = {.name = "w", .dims = 2, .shape = {LARGE_ROWS, LARGE_COLS}, .rows = LARGE_ROWS, .col = 900, .cols = 8,
                         .data = room, .ld = 8};
    long before = most_memory();
    struct checkpoint *ck;
    int rc = checkpoint_open(&ck, dir, 3000000, &e);

    if (rc < 0)
        return 1;
    if (cut && truncate(at("iter_3000000/model.safetensors"), LARGE / 2) < 0)
        return 2;
    rc = checkpoint_load(ck, NULL, &want, 1, &e);
    checkpoint_close(ck);
    if (cut)
        return rc == ERR_IO && strstr(e.msg, "'w': cannot read") ? 0 : 3;
    for (int i = 0; i < LARGE_ROWS * 8; i++)
        if (room[i] != (float)(i / 8 * LARGE_COLS + 900 + i % 8))
            return 4;
    return rc < 0 ? 5 : most_memory() - before < LARGE / 2 ? 0 : 6;
}

static void files_are_not_held_in_memory(void **state)
{
    struct checkpoint_info info = {.iteration = 3000000, .model = model};
    struct piece v = {.name = "w", .dims = 2, .shape = {LARGE_ROWS, LARGE_COLS}, .rows = LARGE_ROWS, .cols = LARGE_COLS};

    (void)state;
    assert_int_equal(checkpoint_save_from(dir, &info, &v, 1, some, NULL, &e), 0);
    assert_int_equal(in_child(take_columns, 0), 0);
    assert_int_equal(in_child(take_columns, 1), 0); /* no signal */
    assert_int_equal(unlink(at("iter_3000000/model.safetensors")) | unlink(at("iter_3000000/metadata.json")), 0);
    assert_int_equal(rmdir(at("iter_3000000")), 0);
}

/* ---- rectangles ---- */

/* Each range of a matrix, as rectangles: together they are its elements in their order. */
static void ranges_are_rectangles(void **state)
{
    enum { R = 5, C = 4, LD = 6 };
    float data[R * LD], got[R * C];
    const struct piece whole = {.name = "x", .dims = 2, .shape = {9, 7}, .row = 3, .rows = R, .col = 2, .cols = C,
                                .data = data, .ld = LD};
    struct piece out[3];

    (void)state;
    for (int i = 0; i < R * LD; i++)
        data[i] = i % LD < C ? (float)(i / LD * C + i % LD) : -1;
    for (int64_t first = 0; first < R * C; first++)
        for (int64_t n = 1; first + n <= R * C; n++) {
            int k = piece_range(&whole, first, n, out);
            int64_t at = first;

            assert_in_range(k, 1, 3);
            for (int i = 0; i < k; i++) {
                assert_int_equal((out[i].row - 3) * C + out[i].col - 2, at);
                assert_true(out[i].row + out[i].rows <= 8 && out[i].col + out[i].cols <= 6);
                assert_int_equal(piece_get(NULL, &out[i], 0, out[i].rows * out[i].cols, got, &e), 0);
                for (int64_t j = 0; j < out[i].rows * out[i].cols; j++, at++)
                    assert_true(got[j] == (float)at);
            }
            assert_int_equal(at, first + n);
        }
    assert_int_equal(piece_range(&whole, 0, R * C, out), 1);
    assert_int_equal(piece_get(dev, &whole, 6, 9, got, &e), 0); /* from the middle of a row to another */
    assert_true(got[0] == 6 && got[8] == 14);
}

static int zeros(void *arg, int i, size_t at, struct span *data, struct err *err)
{
    static const float zero;

    (void)arg, (void)i, (void)at, (void)err;
    *data = (struct span){(const char *)&zero, 4}; /* an element at a time */
    return 0;
}

/* A checkpoint that says of itself that something is missing is no checkpoint. */
static void a_hole_is_named(void **state)
{
    struct checkpoint_info info = {.iteration = 2000000, .model = model};
    struct piece v[] = {
        {.name = "w", .dims = 2, .shape = {6, 8}, .row = 0, .rows = 2, .col = 0, .cols = 8},
        {.name = "w", .dims = 2, .shape = {6, 8}, .row = 2, .rows = 4, .col = 0, .cols = 3},
        {.name = "w", .dims = 2, .shape = {6, 8}, .row = 2, .rows = 3, .col = 3, .cols = 5},
        {.name = "w", .dims = 2, .shape = {6, 8}, .row = 5, .rows = 1, .col = 3, .cols = 4},
    };
    float room[16] = {0};
    struct piece want = {.name = "w", .dims = 2, .shape = {6, 8}, .row = 1, .rows = 2, .col = 1, .cols = 4, .data = room,
                         .ld = 8};
    struct checkpoint *ck;

    (void)state;
    assert_int_equal(save(1000002), 0);
    assert_int_equal(checkpoint_save_from(dir, &info, v, 4, zeros, NULL, &e), 0);
    assert_int_equal(checkpoint_peek(&ck, dir, 2000000, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "rows 5 to 5, columns 7 to 7 of 'w' are in none of its files"));
    assert_int_equal(opened(CHECKPOINT_LAST), 1000002);
    v[3].cols = 5;
    assert_int_equal(checkpoint_save_from(dir, &info, v, 4, zeros, NULL, &e), 0);
    assert_int_equal(opened(CHECKPOINT_LAST), 2000000);
    assert_int_equal(checkpoint_open(&ck, dir, 2000000, &e), 0);
    assert_int_equal(checkpoint_load(ck, NULL, &want, 1, &e), 0);
    want.name = "v";
    assert_int_equal(checkpoint_load(ck, NULL, &want, 1, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "no tensor 'v'"));
    want.name = "w";
    want.shape[1] = 9;
    assert_int_equal(checkpoint_load(ck, NULL, &want, 1, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "another shape"));
    checkpoint_close(ck);
    v[1].shape[1] = 9; /* one of them is of another tensor */
    assert_int_equal(checkpoint_save_from(dir, &info, v, 4, zeros, NULL, &e), 0);
    assert_int_equal(checkpoint_peek(&ck, dir, 2000000, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "of different shapes"));
}

static void names_of_slices_are_checked(void **state)
{
    static const struct {
        const char *name;
        int dims;
        int64_t rows, cols;
        int rc;
    } t[] = {
        {"w", 2, 2, 3, 0}, {"w[0:2/4,1:4/4]", 2, 2, 3, 0}, {"exp_avg_sq.w[3:4/9]", 1, 1, 0, 0}, {"a[0]b", 1, 2, 0, 0},
        {"w[0:2/4,1:4/4]", 2, 3, 2, ERR_FORMAT}, {"w[0:2/4]", 2, 2, 3, ERR_FORMAT}, {"w[0:2/4,1:4/4]", 1, 2, 0, ERR_FORMAT},
        {"w[0:2/1,0:3/3]", 2, 2, 3, ERR_FORMAT}, {"w[-2:0/4]", 1, 2, 0, ERR_FORMAT}, {"w[2:2/4]", 1, 0, 0, ERR_FORMAT},
        {"w[0:2/4]]", 1, 2, 0, ERR_FORMAT}, {"w[ 0:2/4]", 1, 2, 0, ERR_FORMAT},
        {"w[0:2/99999999999999999999]", 1, 2, 0, ERR_FORMAT},
        {"w[]", 1, 2, 0, ERR_FORMAT}, {"w", 2, 0, 3, ERR_FORMAT}, {"w", 0, 0, 0, ERR_FORMAT}, {"w", 3, 1, 1, ERR_FORMAT},
    };
    struct arena a = {0};
    struct slice s;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct safetensor st = {.name = span_of(t[i].name), .dtype = "F32", .dims = t[i].dims, .shape = {t[i].rows, t[i].cols}};
        char name[SLICE_NAME];

        if (slice_parse(&a, "x", &st, &s, &e) != t[i].rc)
            fail_msg("%s: not %d", t[i].name, t[i].rc);
        if (t[i].rc == 0) {
            assert_int_equal(slice_name(&s.at, name, &e), 0);
            assert_string_equal(name, t[i].name);
        }
    }
    arena_free(&a);
}

static int parse(const char *json, size_t data)
{
    struct arena a = {0};
    struct safetensors st;
    size_t h = strlen(json);
    char *file = calloc(1, 8 + h + data);
    int rc;

    for (int i = 0; i < 8; i++)
        file[i] = (char)((uint64_t)h >> (8 * i));
    memcpy(file + 8, json, h);
    rc = safetensors_parse(&a, "x", (struct span){file, 8 + h + data}, &st, &e);
    arena_free(&a);
    free(file);
    return rc;
}

static void safetensors_headers_are_checked(void **state)
{
    static const struct {
        const char *json;
        size_t data;
        int rc;
    } t[] = {
        {"{}", 0, 0},
        {"{\"__metadata__\":{\"format\":\"pt\"}}  ", 0, 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24, 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[0,0]}}", 0, 0},
        {"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, 0},
        {"[]", 0, ERR_FORMAT},
        {"{\"a\":3}", 0, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, ERR_UNSUPPORTED},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 4, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0, ERR_FORMAT},
        {"{\"a\":", 0, ERR_FORMAT},
    };
    char tiny[8] = {9};
    struct arena a = {0};
    struct safetensors st;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (parse(t[i].json, t[i].data) != t[i].rc)
            fail_msg("%s: not %d (%s)", t[i].json, t[i].rc, e.msg);
    assert_int_equal(safetensors_parse(&a, "x", (struct span){tiny, 8}, &st, &e), ERR_FORMAT);
    assert_int_equal(safetensors_parse(&a, "x", (struct span){tiny, 7}, &st, &e), ERR_FORMAT);
    memset(tiny, 0xff, 8);
    assert_int_equal(safetensors_parse(&a, "x", (struct span){tiny, 8}, &st, &e), ERR_FORMAT);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(damage_is_found_and_the_one_before_used),
        cmocka_unit_test(metadata_are_not_trusted),
        cmocka_unit_test(all_damaged_is_an_error),
        cmocka_unit_test(the_text_file_says_which_is_last),
        cmocka_unit_test(a_failed_save_leaves_nothing),
        cmocka_unit_test(a_killed_save_leaves_a_whole_one),
        cmocka_unit_test(what_killed_saves_left_is_swept),
        cmocka_unit_test(another_models_checkpoint_is_refused),
        cmocka_unit_test(ranges_are_rectangles),
        cmocka_unit_test(a_hole_is_named),
        cmocka_unit_test(names_of_slices_are_checked),
        cmocka_unit_test(files_are_not_held_in_memory),
        cmocka_unit_test(safetensors_headers_are_checked),
    };

    return cmocka_run_group_tests_name("checkpoint", tests, start, end);
}
