#include "curate/stream/where_range.h"

#include <math.h>

/* How the i-th value of a test lies to the range: -1 before it, 1 behind it, 0 in it. */
static int side(const struct where_node *test, const struct where_range *r, int i)
{
    if (r->type == WHERE_NUMBER)
        return (test->number[i] > r->most_number) - (test->number[i] < r->least_number);
    return (span_cmp(test->word[i], r->most) > 0) - (span_cmp(test->word[i], r->least) < 0);
}

/* Whether the i-th value is the range's least, or its greatest. */
static bool is_end(const struct where_node *test, const struct where_range *r, int i, bool most)
{
    if (r->type == WHERE_NUMBER)
        return test->number[i] == (most ? r->most_number : r->least_number);
    return span_eq(test->word[i], most ? r->most : r->least);
}

/* = and in: met by any of the values. */
static int may_be(const struct where_node *test, const struct where_range *r)
{
    int may = WHERE_MAY_FAIL;

    for (int i = 0; i < test->n; i++)
        if (side(test, r, i) == 0)
            may |= WHERE_MAY_MEET;
    for (int i = 0; i < test->n; i++)
        if (is_end(test, r, i, false) && is_end(test, r, i, true))
            may = WHERE_MAY_MEET; /* there is one value alone */
    return may;
}

/* < and <=: whether the least and the greatest are below the value, or at it. */
static int may_be_below(const struct where_node *test, const struct where_range *r, bool at)
{
    int to = side(test, r, 0);
    bool least = to > 0 || (to == 0 && (at || !is_end(test, r, 0, false)));
    bool most = to > 0 || (to == 0 && at && is_end(test, r, 0, true));

    return (least ? WHERE_MAY_MEET : 0) | (most ? 0 : WHERE_MAY_FAIL);
}

/* What fails where the other is met. */
static int turned(int may)
{
    return (may & WHERE_MAY_MEET ? WHERE_MAY_FAIL : 0) | (may & WHERE_MAY_FAIL ? WHERE_MAY_MEET : 0);
}

int where_range_may(const struct where_node *test, const struct where_range *r)
{
    for (int i = 0; r->type == WHERE_NUMBER && i < test->n; i++)
        if (isnan(test->number[i]))
            return WHERE_MAY_BOTH;
    switch (test->op) {
    case WHERE_IS: return may_be(test, r);
    case WHERE_IS_NOT: return turned(may_be(test, r));
    case WHERE_LESS: return may_be_below(test, r, false);
    case WHERE_AT_MOST: return may_be_below(test, r, true);
    case WHERE_MORE: return turned(may_be_below(test, r, true));
    case WHERE_AT_LEAST: return turned(may_be_below(test, r, false));
    default: return WHERE_MAY_BOTH;
    }
}

int where_may(const struct where_node *n, int (*may)(void *arg, const struct where_node *test), void *arg)
{
    int left, right;

    if (n->op == WHERE_NOT)
        return turned(where_may(n->left, may, arg));
    if (n->op != WHERE_AND && n->op != WHERE_OR)
        return may(arg, n);
    left = where_may(n->left, may, arg);
    right = where_may(n->right, may, arg);
    return n->op == WHERE_AND ? (left & right & WHERE_MAY_MEET) | ((left | right) & WHERE_MAY_FAIL)
                              : ((left | right) & WHERE_MAY_MEET) | (left & right & WHERE_MAY_FAIL);
}
