#include "base/near.h"

#include <stdio.h>
#include <string.h>

enum { LETTERS_MAX = 63 };

/* Optimal string alignment: a row for each letter of a, of which the last three are kept. */
static size_t distance(struct span a, struct span b)
{
    uint8_t row[3][LETTERS_MAX + 1];

    for (size_t j = 0; j <= b.n; j++)
        row[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= a.n; i++) {
        uint8_t *at = row[i % 3];
        const uint8_t *up = row[(i + 2) % 3], *above = row[(i + 1) % 3];
        at[0] = (uint8_t)i;
        for (size_t j = 1; j <= b.n; j++) {
            unsigned least = up[j - 1] + (a.p[i - 1] != b.p[j - 1]);
            if (up[j] + 1u < least)
                least = up[j] + 1u;
            if (at[j - 1] + 1u < least)
                least = at[j - 1] + 1u;
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1] && above[j - 2] + 1u < least)
                least = above[j - 2] + 1u;
            at[j] = (uint8_t)least;
        }
    }
    return row[a.n % 3][b.n];
}

struct near near_to(struct span typed)
{
    return (struct near){.typed = typed, .distance = typed.n / 3 + 1};
}

void near_try(struct near *n, const char *name)
{
    struct span s = span_of(name);

    if (n->typed.n > LETTERS_MAX || s.n > LETTERS_MAX)
        return;
    bool begins = n->typed.n > 1 && s.n > n->typed.n && memcmp(s.p, n->typed.p, n->typed.n) == 0;
    size_t d = begins ? 0 : distance(n->typed, s);
    if (d < n->distance) {
        n->best = name;
        n->distance = d;
    }
}

const char *near_say(const struct near *n, const char *prefix, char *buf, size_t size)
{
    if (n->best)
        snprintf(buf, size, "; did you mean '%s%s'?", prefix, n->best);
    else
        buf[0] = '\0';
    return buf;
}
