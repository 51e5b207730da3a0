/* Speed of encoding in memory: tokenize_bench TOKENIZER NAME FILE.  FILE: plain text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "bench/measure.h"
#include "tokenize/tokenizer.h"

enum { PASSES = 6, PART = 1 << 14 };

/* Where texts of 16 KiB end, at line ends. */
static int cut(struct span text, struct buf *ends)
{
    for (size_t at = 0; at < text.n;) {
        const char *nl;
        at += text.n - at < PART ? text.n - at : PART;
        nl = memchr(text.p + at, '\n', text.n - at);
        at = nl ? (size_t)(nl - text.p) : text.n;
        if (buf_put(ends, &at, sizeof at) < 0)
            return -1;
    }
    return 0;
}

/* Into one buffer used again and again, as `quern tokenize` does. */
static int pass(struct encoder *enc, struct span text, const struct buf *ends, int width, struct buf *out, struct err *e)
{
    const size_t *end = (const size_t *)(const void *)ends->p;

    for (size_t i = 0, at = 0; i < ends->n / sizeof *end; at = end[i++]) {
        if (out->n > 1 << 17)
            buf_clear(out);
        TRY(encoder_encode(enc, (struct span){text.p + at, end[i] - at}, 0, width, out, e));
    }
    return 0;
}

/* The arguments' tokenizer and text; opened: how long the tokenizer took, and what opening leaves for later. */
static int open_all(char **argv, struct tokenizer **t, double opened[2], struct buf *text, struct buf *ends, struct err *e)
{
    double start = cpu_seconds();

    TRY(tokenizer_open(t, argv[1], NULL, e));
    opened[0] = cpu_seconds() - start;
    TRY(tokenizer_prepare(*t, e));
    opened[1] = cpu_seconds() - start - opened[0];
    TRY(file_read_all(argv[3], SIZE_MAX / 2, text, e));
    return cut(buf_span(text), ends) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

int main(int argc, char **argv)
{
    struct buf text = {0}, ends = {0}, out = {0};
    struct tokenizer *t;
    struct encoder *enc;
    double s[PASSES], opened[2];
    struct err e;
    int width;

    if (argc != 4 || open_all(argv, &t, opened, &text, &ends, &e) < 0) {
        fprintf(stderr, "tokenize_bench: %s\n", argc != 4 ? "TOKENIZER NAME FILE" : e.msg);
        return 3;
    }
    width = tokenizer_vocab_size(t) < 65500 ? 2 : 4;
    enc = encoder_new(t);
    for (int i = 0; i < PASSES; i++) {
        double start = cpu_seconds();
        if (!enc || pass(enc, buf_span(&text), &ends, width, &out, &e) < 0)
            return 3;
        s[i] = cpu_seconds() - start;
    }
    printf("tokenize-%s-open\t%.1f\tms\tCPU time to open the tokenizer\n", argv[2], 1e3 * opened[0]);
    printf("tokenize-%s-cold\t%.1f\tMB/s\tin memory, first pass, a core\n", argv[2], (double)text.n / 1e6 / s[0]);
    printf("tokenize-%s-warm\t%.1f\tMB/s\tin memory, median of %d passes, a core\n", argv[2],
           (double)text.n / 1e6 / median(s + 1, PASSES - 1), PASSES - 1);
    printf("tokenize-%s-prepare\t%.1f\tms\tCPU time for what waits until it is needed\n", argv[2],
           1e3 * opened[1]);
    encoder_free(enc);
    tokenizer_close(t);
    buf_free(&text);
    buf_free(&ends);
    buf_free(&out);
    return 0;
}
