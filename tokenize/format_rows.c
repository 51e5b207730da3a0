#include "tokenize/format_rows.h"

#include <stdlib.h>

#include "base/ascii.h"

enum { MEMBER_WIDTH = 4, STRING_WIDTH = 2, RANK_WIDTH = 14 };

bool hf_is_map(const struct node *n)
{
    return n && (n->type == NODE_MAP || (n->type == NODE_ROWS && n->rows->width == MEMBER_WIDTH));
}

bool hf_is_list(const struct node *n)
{
    return n && (n->type == NODE_LIST || (n->type == NODE_ROWS && n->rows->width != MEMBER_WIDTH));
}

int row_reader_begin(struct row_reader *r, const struct node *list, struct err *e)
{
    size_t i = 0;

    *r = (struct row_reader){.n = (size_t)list->count, .map = hf_is_map(list)};
    if (list->type == NODE_ROWS) {
        r->rows = *list->rows;
        return 0;
    }
    r->items = malloc((r->n + 1) * sizeof *r->items);
    if (!r->items)
        return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
    for (const struct node *x = list->child; x; x = x->next)
        r->items[i++] = x;
    return 0;
}

void row_reader_free(struct row_reader *r)
{
    free(r->items);
    buf_free(&r->text);
    buf_free(&r->second);
}

/* A number of one to eight digits; -1: it is something else. */
static int64_t small_integer(struct span s)
{
    int64_t n = 0;

    if (s.n > 8)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        if (!ascii_is_digit(s.p[i]))
            return -1;
        n = n * 10 + (s.p[i] - '0');
    }
    return n;
}

/* {"rank": 0, "token_bytes": "AA==", "token_str": null}; what the last one says is not used. */
static int get_rank(struct row_reader *r, size_t first, struct row *row, struct err *e)
{
    static const char *const keys[] = {"\"rank\"", "\"token_bytes\"", "\"token_str\""};
    struct json_rows *x = &r->rows;
    struct span last = json_rows_token(x, first + 11);

    for (size_t i = 0; i < 3; i++)
        if (!span_is(json_rows_token(x, first + 1 + 4 * i), keys[i]))
            return err_set(e, ERR_FORMAT, "its keys are unusual");
    TRY(json_rows_number(x, first + 3, &row->second, e));
    if (*last.p == '"')
        TRY(json_rows_string(x, first + 11, &r->text, &last, e));
    else if (!span_is(last, "null"))
        return err_set(e, ERR_FORMAT, "token_str is unusual");
    row->kind = HF_ROW_NUMBER;
    row->integer = small_integer(row->second);
    return json_rows_string(x, first + 7, &r->text, &row->text, e);
}

static int get_row(struct row_reader *r, size_t i, struct row *row, struct err *e)
{
    struct json_rows *x = &r->rows;
    size_t first = i * x->width + (!r->map && x->width != STRING_WIDTH), other = first + 2;

    if (x->width == RANK_WIDTH)
        return get_rank(r, i * x->width, row, e);
    TRY(json_rows_string(x, first, &r->text, &row->text, e));
    if (x->width == STRING_WIDTH) {
        row->kind = HF_ROW_STRING;
    } else if (x->text[x->at[other]] == '"') {
        row->kind = HF_ROW_STRINGS;
        TRY(json_rows_string(x, other, &r->second, &row->second, e));
    } else {
        row->kind = HF_ROW_NUMBER;
        row->second = json_rows_token(x, other);
        row->integer = small_integer(row->second);
        if (row->integer < 0 || *row->second.p == '0')
            TRY(json_rows_number(x, other, &row->second, e));
    }
    return 0;
}

static void get_node(const struct row_reader *r, const struct node *x, struct row *row)
{
    const struct node *a = r->map ? x : x->type == NODE_LIST && x->count == 2 ? x->child : NULL, *b;

    *row = (struct row){.text = x->str};
    if (!r->map && x->type == NODE_MAP) {
        const struct node *token = node_get(x, "token_bytes");
        row->kind = token && token->type == NODE_STR ? HF_ROW_NUMBER : HF_ROW_OTHER;
        row->text = token ? token->str : row->text;
        row->integer = node_int(x, "rank", -1);
        return;
    }
    if (!a) {
        row->kind = x->type == NODE_STR ? HF_ROW_STRING : HF_ROW_OTHER;
        return;
    }
    row->text = r->map ? x->key : a->str;
    b = r->map ? x : a->next;
    row->second = b->str;
    row->integer = b->type == NODE_INT ? b->integer : -1;
    if (!r->map && a->type != NODE_STR)
        row->kind = HF_ROW_OTHER;
    else if (b->type == NODE_INT || b->type == NODE_NUM)
        row->kind = HF_ROW_NUMBER;
    else
        row->kind = b->type == NODE_STR && !r->map ? HF_ROW_STRINGS : HF_ROW_OTHER;
}

int row_reader_get(struct row_reader *r, size_t i, struct row *row, struct err *e)
{
    if (!r->items)
        return get_row(r, i, row, e);
    get_node(r, r->items[i], row);
    return 0;
}
