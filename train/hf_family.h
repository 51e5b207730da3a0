/* train/hf_family.h -- the families of models of transformers that are known, as data: keys of config.json, names of tensors, and
 * what no key says.  hf_config.c reads and writes config.json by it, hf_names.c finds the tensors.
 */
#ifndef TRAIN_HF_FAMILY_H
#define TRAIN_HF_FAMILY_H

#include "train/model_config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a key of config.json is about. */
enum hf_kind {
    HF_SIZE,    /* an int64_t of struct model_config */
    HF_NUM,     /* a positive double */
    HF_INVERSE, /* 1 over one */
    HF_BOOL,    /* a bool */
    HF_NOT,     /* the opposite of one */
    HF_SWITCH,  /* an int that is `on` for true, else 0 */
    HF_WIDTH,   /* ffn, which is that of experts too */
    HF_ACT,     /* the activation, which makes the kind of MLP of two that gate alike; the word `value` stands for the base's;
                   written as the kind's word `on` */
    HF_BIAS_QKV, HF_BIAS_ATTENTION, HF_BIAS_MLP, /* whether these have biases */
    HF_THETA,   /* the base of rotary angles, with how they are scaled (rope_parameters, rope_scaling) */
    HF_SHARE,   /* the share of a head that turns; `value`: it can only be all */
    HF_CAP,     /* a double; null: 0 */
    HF_SCALE,   /* what queries times keys are multiplied with; `on`: 1 over its square */
    HF_LOCAL,   /* the base of rotary angles of layers with a window */
    HF_NO_ROPE, /* which layers turn, a list; or the last of every `also` does not */
    HF_WINDOW,  /* how far attention sees; in the last of every `on` layers without bound */
    HF_LAYERS,  /* which layers have the window, "sliding_attention" or "full_attention" */
    HF_SLIDES,  /* whether there is a window */
    HF_DENSE,   /* so many layers come before the first with experts */
    HF_SHARED,  /* the shared expert is so many times as wide as another */
    HF_GROUPS,  /* groups of experts, and under `also` of how many a token's are; their two best judge them; 1: of any */
    HF_METHOD,  /* "greedy", or "group_limited_greedy": by groups of n_group and topk_group, each judged by its best */
    HF_NORMED,  /* whether weights of several experts are divided by their sum; those of one never are here */
    HF_LEFT,    /* of something that is left out, and is written as `value` */
    HF_IS,      /* it can only be `value` (or null, or absent), and is written so */
    HF_PART     /* another key's row reads it, or nothing is computed by it */
};
#define HF_NEEDED (-1.0)

struct hf_key {
    const char *key;
    enum hf_kind kind;
    size_t at;         /* offset in struct model_config */
    double fallback;   /* where the key is absent; HF_NEEDED: that is an error */
    const char *value, *also; /* as the kind says; another name of the key */
    int on;
};

/* How the rows of a matrix of ours stand in theirs. */
enum hf_rows {
    HF_ROWS,      /* as they are, or cut among several tensors, "a.|b." */
    HF_TURNED,    /* the matrix is transposed, a vector as it is */
    HF_FP32,      /* as they are, in fp32 whatever the others are in */
    HF_BY_HEAD,   /* queries, keys and values of a head together */
    HF_HALVES,    /* of queries and keys the halves of each head change places */
    HF_HEAD_PAIRS, HF_LAST_PAIRS, /* what turns, the last rows of each head, or of all, stands in pairs of neighbours */
    HF_STACKED,   /* transposed, those of all experts along a first axis; of vectors too */
    HF_PAIRS      /* so too, and after each row of the first half comes one of the second */
};

/* Parameters by the beginnings of their names, ours and theirs; a star is a number.  What follows in the name is kept. */
struct hf_name {
    const char *ours, *theirs;
    enum hf_rows rows;
};

struct hf_family {
    const char *type, *class; /* model_type; architectures */
    struct model_config base; /* what no key says */
    const struct hf_key *keys;
    const struct hf_key *more; /* further ones, or NULL */
    const struct hf_name *names; /* first these, then `others`, or NULL */
    const struct hf_name *others;
    bool plain_rope;          /* rotary angles cannot be scaled */
    bool scaled_rope;         /* without a word on rotary angles they are scaled somehow */
    bool next_layer;          /* one more layer may stand behind the last, which predicts a further token: it is left out */
    bool embeds_root;         /* embeddings are multiplied by the root of the hidden size */
};

extern const struct hf_family hf_families[];
extern const int hf_families_n;

/* That of a model_type; NULL if it is not known. */
const struct hf_family *hf_family_named(const char *type);
/* The field of m that a row is about. */
static inline void *hf_field(const struct model_config *m, const struct hf_key *k)
{
    return (char *)(size_t)m + k->at;
}
/* rope_type by enum rope_kind; by how much yarn's cosines grow where nothing else is said. */
enum { HF_ROPES = 4 };
extern const char *const hf_rope_name[HF_ROPES];
double hf_yarn_attention(double factor, double scale);
/* Whether a list of words, with a space before and after each, has a key. */
bool hf_listed(const char *list, const char *key);
/* Keys that say nothing of what is computed, or of training alone, in any family. */
bool hf_key_idle(const char *key);

#ifdef __cplusplus
}
#endif
#endif
