#include "indexed_dataset/idx_sum.h"

#include <inttypes.h>
#include <stdlib.h>

void idx_sum_init(struct idx_sum *s)
{
    XXH3_64bits_reset(&s->state);
    s->bytes = 0;
    s->chunks = (struct buf){0};
}

static int close_chunk(struct idx_sum *s)
{
    uint64_t h = XXH3_64bits_digest(&s->state);

    XXH3_64bits_reset(&s->state);
    return buf_put(&s->chunks, &h, sizeof h);
}

int idx_sum_add(struct idx_sum *s, const void *p, size_t n)
{
    const char *c = p;

    while (n) {
        size_t room = IDX_CHUNK - s->bytes % IDX_CHUNK;
        size_t m = n < room ? n : room;
        XXH3_64bits_update(&s->state, c, m);
        s->bytes += m;
        c += m;
        n -= m;
        if (m == room)
            TRY(close_chunk(s));
    }
    return 0;
}

int idx_sum_finish(struct idx_sum *s, struct buf *json)
{
    int rc = s->bytes % IDX_CHUNK ? close_chunk(s) : 0;
    uint64_t h;

    if (rc == 0)
        rc = buf_printf(json, "{\"bytes\":%" PRIu64 ",\"chunk\":%d,\"xxh3\":[", s->bytes, IDX_CHUNK);
    for (size_t i = 0; rc == 0 && i < s->chunks.n; i += sizeof h) {
        memcpy(&h, s->chunks.p + i, sizeof h);
        rc = buf_printf(json, "%s\"%016" PRIx64 "\"", i ? "," : "", h);
    }
    buf_free(&s->chunks);
    return rc ? rc : buf_puts(json, "]}");
}

int idx_sum_save(const struct idx_sum *s, struct buf *json)
{
    int rc = buf_printf(json, "{\"last\":\"%016" PRIx64 "\",\"chunks\":\"", XXH3_64bits_digest(&s->state));
    uint64_t h;

    for (size_t i = 0; rc == 0 && i < s->chunks.n; i += sizeof h) {
        memcpy(&h, s->chunks.p + i, sizeof h);
        rc = buf_printf(json, "%016" PRIx64, h);
    }
    return rc ? rc : buf_puts(json, "\"}");
}

int idx_sum_restore(struct idx_sum *s, const struct node *saved, uint64_t bytes, const void *p, struct err *e)
{
    const struct node *chunks = node_get(saved, "chunks");
    const char *last = node_str(saved, "last");
    char digits[17] = "";

    if (!last || !chunks || chunks->str.n != bytes / IDX_CHUNK * 16)
        return err_set(e, ERR_FORMAT, "no checksums of %" PRIu64 " bytes were kept", bytes);
    idx_sum_init(s);
    for (size_t i = 0; i < chunks->str.n; i += 16) {
        memcpy(digits, chunks->str.p + i, 16);
        uint64_t h = strtoull(digits, NULL, 16);
        if (buf_put(&s->chunks, &h, sizeof h) < 0)
            return err_set(e, ERR_NOMEM, "out of memory");
    }
    s->bytes = bytes;
    XXH3_64bits_update(&s->state, p, bytes % IDX_CHUNK);
    if (XXH3_64bits_digest(&s->state) != strtoull(last, NULL, 16))
        return err_set(e, ERR_FORMAT, "its last bytes are not those that were written");
    return 0;
}

uint64_t idx_sum_chunk(const uint8_t *p, size_t n, size_t k)
{
    size_t at = k * IDX_CHUNK;
    return XXH3_64bits(p + at, n - at < IDX_CHUNK ? n - at : IDX_CHUNK);
}
