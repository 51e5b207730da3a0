/* tokenize/hf_table.h -- classes of characters as Hugging Face's library knows them: its parts come
 * from several versions of Unicode, so they are recorded from it. */
#ifndef TOKENIZE_HF_TABLE_H
#define TOKENIZE_HF_TABLE_H

#include <stdint.h>

enum hf_class {
    HF_WORD = 1,
    HF_NUMBER = 2,
    HF_PUNCT = 4,
    HF_ACCENT = 8,       /* what StripAccents removes */
    HF_BERT_ACCENT = 16, /* what BertNormalizer removes once characters are decomposed */
    HF_BERT_CONTROL = 32,
    HF_CHINESE = 64
};

extern const uint32_t hf_ranges[], hf_n_ranges;

struct hf_capitals {
    uint32_t first, last;
    int32_t step, add;
};
extern const struct hf_capitals hf_capitals[];
extern const uint32_t hf_n_capitals;

/* The bits of enum hf_class. */
static inline unsigned hf_class(uint32_t cp)
{
    uint32_t lo = 0, hi = hf_n_ranges;

    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (hf_ranges[mid] >> 8 <= cp)
            lo = mid;
        else
            hi = mid;
    }
    return hf_ranges[lo] & 255;
}

/* The lower case of one character by itself; U+0130 stays. */
static inline uint32_t hf_lower(uint32_t cp)
{
    uint32_t lo = 0, hi = hf_n_capitals;

    if (cp < 'A')
        return cp;
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (hf_capitals[mid].first <= cp)
            lo = mid;
        else
            hi = mid;
    }
    if (cp > hf_capitals[lo].last || (cp - hf_capitals[lo].first) % (uint32_t)hf_capitals[lo].step)
        return cp;
    return cp + (uint32_t)hf_capitals[lo].add;
}

#endif
