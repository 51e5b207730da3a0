/* Best fit decreasing. */
#include <stdlib.h>
#include <string.h>

#include "indexed_dataset/sft_dataset.h"

/* Bins by the room that they have left, in the order in which they came to have it, and what is in each. */
struct bins {
    int32_t room;
    uint64_t *has;        /* a bit for each room 0 .. room: there is such a bin */
    int64_t *oldest, *newest; /* (room + 1); -1: none */
    int64_t *next;        /* (n) the bin behind it in the same row */
    int64_t *head, *tail; /* (n) of each bin: its first item and its last */
    int64_t *after;       /* (n) of each item: the next one in its bin; -1: none */
    int64_t n;
};

static void bins_free(struct bins *b)
{
    free(b->has);
    free(b->oldest);
    free(b->newest);
    free(b->next);
    free(b->head);
    free(b->tail);
    free(b->after);
}

static int bins_open(struct bins *b, int64_t n, int32_t room, struct err *e)
{
    size_t rooms = (size_t)room + 1, items = (size_t)n + 1;

    *b = (struct bins){
        .room = room, .has = calloc(rooms / 64 + 1, sizeof *b->has), .oldest = malloc(rooms * sizeof *b->oldest),
        .newest = malloc(rooms * sizeof *b->newest), .next = malloc(items * sizeof *b->next),
        .head = malloc(items * sizeof *b->head), .tail = malloc(items * sizeof *b->tail),
        .after = malloc(items * sizeof *b->after),
    };
    return b->has && b->oldest && b->newest && b->next && b->head && b->tail && b->after ? 0
               : err_set(e, ERR_NOMEM, "out of memory for the packing of %lld documents", (long long)n);
}

/* The smallest room of a bin that is at least that; -1: no bin has it. */
static int32_t best_room(const struct bins *b, int32_t least)
{
    int32_t words = b->room / 64 + 1, w = least / 64;
    uint64_t bits = b->has[w] & ~UINT64_C(0) << least % 64;

    while (!bits && ++w < words)
        bits = b->has[w];
    return bits ? w * 64 + __builtin_ctzll(bits) : -1;
}

static int64_t take_bin(struct bins *b, int32_t room)
{
    int64_t bin = b->oldest[room];

    if (bin == b->newest[room])
        b->has[room / 64] &= ~(UINT64_C(1) << room % 64);
    b->oldest[room] = b->next[bin];
    return bin;
}

static void put_bin(struct bins *b, int64_t bin, int32_t room)
{
    if (b->has[room / 64] >> room % 64 & 1)
        b->next[b->newest[room]] = bin;
    else
        b->oldest[room] = bin;
    b->newest[room] = bin;
    b->has[room / 64] |= UINT64_C(1) << room % 64;
}

static void add_item(struct bins *b, int64_t item, int32_t length)
{
    int32_t room = best_room(b, length);
    int64_t bin = room < 0 ? b->n++ : take_bin(b, room);

    if (room < 0)
        b->head[bin] = item;
    else
        b->after[b->tail[bin]] = item;
    b->tail[bin] = item;
    b->after[item] = -1;
    put_bin(b, bin, (room < 0 ? b->room : room) - length);
}

/* The items by length, the longest first, of one length in their order. */
static int64_t *by_length(const int32_t *length, int64_t n, int32_t room)
{
    int64_t *sorted = calloc((size_t)n + 1, sizeof *sorted), *at = calloc((size_t)room + 2, sizeof *at);

    for (int64_t i = 0; at && i < n; i++)
        at[room - length[i] + 1]++;
    for (int32_t r = 0; at && r < room; r++)
        at[r + 1] += at[r];
    for (int64_t i = 0; sorted && at && i < n; i++)
        sorted[at[room - length[i]]++] = i;
    if (!at) {
        free(sorted);
        sorted = NULL;
    }
    free(at);
    return sorted;
}

int sft_pack(const int32_t *length, int64_t n, int32_t room, int64_t *order, int64_t *first, int64_t *bins, struct err *e)
{
    int64_t *sorted = by_length(length, n, room), k = 0;
    struct bins b = {0};
    int rc = sorted ? bins_open(&b, n, room, e) : err_set(e, ERR_NOMEM, "out of memory for the order of documents");

    for (int64_t i = 0; rc == 0 && i < n; i++)
        add_item(&b, sorted[i], length[sorted[i]]);
    for (int64_t bin = 0; rc == 0 && bin < b.n; bin++) {
        first[bin] = k;
        for (int64_t i = b.head[bin]; i >= 0; i = b.after[i])
            order[k++] = i;
    }
    first[b.n] = k;
    *bins = b.n;
    bins_free(&b);
    free(sorted);
    return rc;
}
