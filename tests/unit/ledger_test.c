/* Ledgers: Merkle trees by RFC 6962, and that no bit of a dataset and its ledger flips unseen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "base/file.h"
#include "indexed_dataset/idx_copy.h"
#include "indexed_dataset/ledger_format.h"
#include "tests/temp_folder.h"

static int begin(void **state)
{
    return make_dir(state) == 0 && chdir(dir) == 0 ? 0 : -1;
}

static int end(void **state)
{
    static const char *const endings[] = {"bin", "idx", "ledger", "sum.json"};
    char name[64];

    (void)state;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            snprintf(name, sizeof name, "%c.%s", "ab"[k], endings[i]);
            unlink(name);
        }
    return rmdir(dir);
}

/* The roots over the leaves SHA-256(0, i), as Python's hashlib and the RFC's recursion give them. */
static void test_tree(void **state)
{
    static const struct {
        int n;
        const char *root;
    } want[] = {
        {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {1, "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"},
        {2, "a20bf9a7cc2dc8a08f5f415a71b19f6ac427bab54d24eec868b5d3103449953a"},
        {3, "3b6cccd7e3e023ff393006f030315ee7ad9eb111b022b41fba7e5b7a3973f688"},
        {5, "b855b42d6c30f5b087e05266783fbd6e394f7b926013ccaa67700a8b0c5a596f"},
        {7, "3560191803028444b232018ac047fdb561c09c23a7a6876c85e08b5e4d48e9f3"},
        {8, "ef7f49b620f6c7ea9b963a214da34b5021c6ded8ed57734380a311ab726aa907"},
        {100, "9eccc8f11ab3ecd41cbf41f5045df576dcedc60f44d4a3de5f40b7d4f7e9d7e3"},
    };

    (void)state;
    if (!sha256_is_built())
        skip();
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        struct ledger_tree t = {.n = 0};
        uint8_t sum[SHA256_SUM];
        char hex[2 * SHA256_SUM + 1];
        for (int i = 0; i < want[k].n; i++) {
            char leaf[2] = {0, (char)i};
            sha256_of(&(struct span){leaf, 2}, 1, sum);
            ledger_tree_add(&t, sum);
        }
        ledger_tree_root(&t, sum);
        sha256_hex(sum, hex);
        assert_string_equal(hex, want[k].root);
    }
}

/* Five documents, one of them empty. */
static void write_dataset(const char *prefix)
{
    static const uint16_t tokens[] = {7, 8, 9, 300, 1, 65000, 2};
    static const int32_t lengths[] = {3, 0, 1, 2, 1};
    struct ledger_item item[5];
    struct buf records = {0};
    struct idx_writer *w;
    const uint16_t *at = tokens;
    struct err e;

    assert_int_equal(idx_create(&w, prefix, IDX_U16, &e), 0);
    assert_int_equal(idx_keep_ledger(w, &e), 0);
    for (int i = 0; i < 5; i++) {
        size_t from = records.n;
        char id[8], url[16];
        snprintf(id, sizeof id, "d%d", i);
        snprintf(url, sizeof url, "http://h/%d", i);
        assert_int_equal(ledger_put_record(&records, span_of(id), span_of(i ? url : ""), span_of("{\"file\":\"a\"}")), 0);
        item[i] = (struct ledger_item){.record = (uint32_t)(records.n - from), .tokens = (uint64_t)lengths[i]};
        ledger_leaf(IDX_U16, (struct span){records.p + from, records.n - from},
                    (struct span){(const char *)at, (size_t)lengths[i] * 2}, item[i].leaf);
        at += lengths[i];
    }
    assert_int_equal(idx_add_block(w, tokens, lengths, 5, NULL, 0, &e), 0);
    assert_int_equal(idx_add_ledger(w, buf_span(&records), item, 5, &e), 0);
    assert_int_equal(idx_commit(w, (struct span){0}, &e), 0);
    buf_free(&records);
}

/* Whether three files in memory are a dataset and its ledger. */
static bool fine(const struct buf f[3])
{
    struct idx *x = NULL;
    struct ledger *l = NULL;
    struct idx_report r;
    struct err e;
    bool good = idx_open_mem(&x, (uint8_t *)f[1].p, f[1].n, (uint8_t *)f[0].p, f[0].n, &e) == 0 &&
                ledger_open_mem(&l, (uint8_t *)f[2].p, f[2].n, &e) == 0 && idx_verify(x, 0, 1, &r, &e) == 0 &&
                ledger_verify(l, x, &e) == 0;

    ledger_close(l);
    idx_close(x);
    return good;
}

static void test_flipped_bits(void **state)
{
    static const char *const names[] = {"a.bin", "a.idx", "a.ledger"};
    struct buf f[3] = {{0}};
    struct err e;

    (void)state;
    if (!sha256_is_built())
        skip();
    write_dataset("a");
    for (int k = 0; k < 3; k++)
        assert_int_equal(file_read_all(names[k], 1 << 20, &f[k], &e), 0);
    assert_true(fine(f));
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < 8 * f[k].n; i++) {
            f[k].p[i / 8] ^= (char)(1 << i % 8);
            if (fine(f))
                fail_msg("bit %zu of %s", i, names[k]);
            f[k].p[i / 8] ^= (char)(1 << i % 8);
        }
    for (int k = 0; k < 3; k++)
        for (f[k].n--; f[k].n; f[k].n /= 2)
            assert_false(fine(f));
    for (int k = 0; k < 3; k++)
        buf_free(&f[k]);
}

static void test_documents(void **state)
{
    struct ledger_document d;
    struct idx_wanted want = {.min_tokens = 1, .max_tokens = -1};
    struct ledger *l;
    struct idx *x;
    uint64_t kept;
    struct err e;

    (void)state;
    if (!sha256_is_built())
        skip();
    write_dataset("a");
    assert_int_equal(idx_filter("b", "a.idx", &want, &kept, &e), 0);
    assert_int_equal(ledger_open(&l, "b.bin", &e), 0);
    assert_int_equal(ledger_n_documents(l), 4);
    assert_int_equal(ledger_document(l, 2, &d, &e), 0);
    assert_true(span_is(d.id, "d3") && span_is(d.url, "http://h/3") && span_is(d.source, "{\"file\":\"a\"}"));
    assert_int_equal(d.first, 4);
    assert_int_equal(d.end, 6);
    assert_int_equal(idx_open(&x, "b", &e), 0);
    assert_int_equal(ledger_verify(l, x, &e), 0);
    idx_close(x);
    ledger_close(l);
    unlink("b.ledger");
    assert_int_equal(ledger_open(&l, "b", &e), 0);
    assert_null(l);
    assert_int_equal(idx_merge("c", (const char *const[]){"a", "b"}, 2, &e), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree), cmocka_unit_test(test_flipped_bits), cmocka_unit_test(test_documents)};

    return cmocka_run_group_tests(tests, begin, end);
}
