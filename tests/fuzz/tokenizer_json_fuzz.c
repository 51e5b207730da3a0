/* A tokenizer.json of any kind; what opens must encode a text and give it back. */
#include <stdlib.h>

#include "tokenize/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of("The mill's 1234 grains,\n\n  d'accord \xc3\xa9\xe4\xb8\x80 <|endoftext|>");
    struct buf ids = {0}, back = {0};
    struct tokenizer *t;
    struct encoder *enc;
    struct err e;

    if (tokenizer_open_json(&t, "fuzz", (struct span){(const char *)data, size}, NULL, &e) < 0)
        return 0;
    enc = encoder_new(t);
    if (encoder_encode(enc, text, ENCODER_SPECIAL, 4, &ids, &e) == 0 &&
        tokenizer_decode(t, (const uint32_t *)(const void *)ids.p, ids.n / 4, &back, &e) < 0)
        abort();
    encoder_free(enc);
    tokenizer_close(t);
    buf_free(&ids);
    buf_free(&back);
    return 0;
}
