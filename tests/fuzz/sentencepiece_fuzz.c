/* A SentencePiece model of any bytes; what opens must encode a text and decode it. */
#include <stdlib.h>

#include "tokenize/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tokenizer_settings as_it_says;
    static const char bytes[] =
        "The mill's 1234  grains,\n\n d'accord \xc3\xa9\xe4\xb8\x80 \xff\xe2\x96 <s>\xe2\x96\x81 the mill";
    struct span text = {bytes, sizeof bytes - 1};
    struct buf ids = {0}, back = {0};
    struct tokenizer *t;
    struct encoder *enc;
    struct err e;

    if (tokenizer_open_sentencepiece(&t, "fuzz", (struct span){(const char *)data, size}, &as_it_says, &e) < 0)
        return 0;
    enc = encoder_new(t);
    if (encoder_encode(enc, text, size & 1 ? ENCODER_SPECIAL : 0, 4, &ids, &e) < 0 ||
        tokenizer_decode(t, (const uint32_t *)(const void *)ids.p, ids.n / 4, &back, &e) < 0)
        abort();
    encoder_free(enc);
    tokenizer_close(t);
    buf_free(&ids);
    buf_free(&back);
    return 0;
}
