/* curate/dedup/rank_group_inner.h -- inside documents of large groups (curate/dedup/rank_group.h) only: their state, and a
 * batch of them. */
#ifndef CURATE_RANK_GROUP_INNER_H
#define CURATE_RANK_GROUP_INNER_H

#include "curate/dedup/dedup_prefix.h"
#include "curate/dedup/rank_group.h"
#include "curate/dedup/rank_sets.h"

enum { GROUP_READ = 1 << 16 };

/* A document of this rank. */
struct group_doc {
    uint64_t rank, number;
    uint64_t survivor;   /* by its ref, and its place in the order of all */
    uint64_t place;      /* UINT64_MAX: none was found, it may stay */
    uint64_t id_at;      /* of the survivor, in ids */
    uint32_t id_n;
    union {
        float similarity; /* with the survivor */
        uint32_t size;    /* of one that stays: how many have gone for it */
    };
};

/* A document of the batch, of any rank.  As a message from its home it has no home. */
struct batch_doc {
    uint64_t rank, number;
    uint32_t slot, local; /* its number in its home's part of the batch, and of all its home's documents */
    uint32_t home, size;
};

/* A rare shingle of a document of the batch: to its owner. */
struct posting {
    uint32_t tag, slot, room, size;
};

/* A document that an owner's lists have. */
struct entry {
    uint64_t ref, place;
    uint32_t size;
};

/* Two documents of the batch, by their places in it, that are alike; at their home what becomes of the later one. */
struct edge {
    uint32_t doc, other;
};
struct match {
    struct edge edge;
    struct group_doc fate;
};

/* Records in memory that came from others. */
struct heap {
    void *p;
    size_t n, cap;
};

struct rank_group {
    struct rank_group_conf conf;
    struct rank_sets sets;
    struct group_doc *doc;
    size_t cap;
    uint32_t *order; /* of the documents of this rank */
    struct spill ids;
    struct prefix_index *prefix;        /* counts shingles, of all ranks */
    struct prefix_index *kept, *fresh;  /* lists that this rank owns: of documents that stay; of the batch */
    struct heap entry;                  /* struct entry: documents of kept */
    struct prefix_found found;
    /* The batch. */
    uint64_t base;      /* place of its first document */
    size_t own_n, most; /* documents of this rank in it; as many at most */
    uint32_t *own;
    struct heap all;    /* struct batch_doc, in order */
    size_t *first;      /* of each rank, in place */
    uint32_t *place;    /* of the documents of the batch, by home and slot, in all */
    size_t place_cap;
    struct heap *posting; /* of each rank: struct posting */
    size_t *begin;      /* as place: where its postings begin */
    size_t begin_cap;
    bool *open;         /* of each in all: none was found that stays and is like it */
    size_t open_cap;
    uint32_t *of;       /* of each in all: the survivor */
    size_t of_cap;
    struct heap edges, matches;
    uint64_t clusters, largest, largest_of;
};

static inline int group_no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for documents that ranks share");
}

/* The highest rank comes first, then the smallest number. */
static inline int group_order(uint64_t rank_x, uint64_t number_x, uint64_t rank_y, uint64_t number_y)
{
    if (rank_x != rank_y)
        return rank_x > rank_y ? -1 : 1;
    return number_x < number_y ? -1 : number_x > number_y;
}

/* What this rank sends to others, and where it goes there. */
struct group_post {
    struct rank_group *g;
    struct rank_files out;
};

int group_post_open(struct group_post *p, struct rank_group *g, struct err *e);
/* Closes it; rc: whether it was filled. */
int group_post_send(struct group_post *p, int rc, rank_taker *take, void *to, struct err *e);

/* By all ranks, g->own having this rank's part of the batch: all learn the batch, and it is held against what was kept. */
int group_batch_look_back(struct rank_group *g, struct err *e);
/* Then: of those that are open it is decided who stays, and is kept. */
int group_batch_decide(struct rank_group *g, struct err *e);

/* A record that stands for a number. */
struct slot_record {
    uint64_t slot, zero;
};
#endif
