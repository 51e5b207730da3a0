#include "train/model_pool.h"

#include <stdlib.h>

enum { ROOM_ROWS = FP8_BLOCK }; /* what is transposed in FP8 has so many more at most */

static int64_t whole_lines(int64_t rows)
{
    return (rows + ROOM_ROWS - 1) / ROOM_ROWS * ROOM_ROWS;
}

static int rooms_of(const struct model_pool_size *s)
{
    return s->slots * s->slot_rooms + s->work_rooms;
}

#define MOST(a, b) ((a) > (b) ? (a) : (b))

void model_pool_fit(struct model_pool_size *all, const struct model_pool_size *part)
{
    *all = (struct model_pool_size){
        .slots = MOST(all->slots, part->slots), .slot = MOST(all->slot, part->slot), .work = MOST(all->work, part->work),
        .slot_rooms = MOST(all->slot_rooms, part->slot_rooms), .work_rooms = MOST(all->work_rooms, part->work_rooms),
        .rows = MOST(all->rows, part->rows), .row = MOST(all->row, part->row),
        .most = MOST(all->most, part->most), .scratch_row = MOST(all->scratch_row, part->scratch_row),
    };
}

static size_t bytes_with(const struct model_pool_size *s, int64_t rows)
{
    return model_pool_slab(s) + (size_t)(whole_lines(rows) * (rooms_of(s) * s->row + s->scratch_row));
}

size_t model_pool_bytes(const struct model_pool_size *s)
{
    return bytes_with(s, s->rows);
}

size_t model_pool_most(const struct model_pool_size *s)
{
    return bytes_with(s, s->most);
}

static int open_room(struct model_pool *p, struct model_room *r, int64_t rows, struct err *e)
{
    device_free(p->dev, r->mem);
    r->mem = NULL;
    r->rows = rows;
    if (rows && r->row && device_alloc_as(p->dev, MEMORY_ACTIVATIONS, &r->mem, (size_t)(rows * r->row), e) < 0)
        return err_wrap(e, "%lld rows for experts", (long long)rows);
    return 0;
}

int model_pool_open(struct model_pool *p, struct device *dev, const struct model_pool_size *size, struct err *e)
{
    size_t bytes = model_pool_slab(size);

    *p = (struct model_pool){.dev = dev, .size = *size, .scratch.row = size->scratch_row};
    p->rooms = calloc((size_t)rooms_of(size) + 1, sizeof *p->rooms);
    if (!p->rooms)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (device_alloc_as(dev, MEMORY_ACTIVATIONS, (void **)&p->slab, bytes, e) < 0)
        return err_wrap(e, "activations: %zu MiB", bytes >> 20);
    for (int i = 0; i < rooms_of(size); i++) {
        p->rooms[i].row = size->row;
        TRY(open_room(p, &p->rooms[i], whole_lines(size->rows), e));
    }
    return open_room(p, &p->scratch, whole_lines(size->rows), e);
}

void model_pool_close(struct model_pool *p)
{
    if (!p->dev)
        return;
    device_free(p->dev, p->slab);
    for (int i = 0; p->rooms && i < rooms_of(&p->size); i++)
        device_free(p->dev, p->rooms[i].mem);
    device_free(p->dev, p->scratch.mem);
    free(p->rooms);
    *p = (struct model_pool){0};
}

int model_pool_room(struct model_pool *p, struct model_room *r, int64_t rows, struct err *e)
{
    int64_t more = whole_lines(rows + rows / 8);

    if (rows <= r->rows)
        return 0;
    p->grown += (size_t)((more - r->rows) * r->row);
    return open_room(p, r, more, e);
}
