/* quern.h -- tokenizers and indexed datasets for any program: link with -lquern.
 *
 * What holds for every function:
 *   - Failure is a negative enum quern_code, and why stands in the caller's quern_error, if one is given.  A NULL where
 *     something is needed, a number out of range, a file that is damaged: an error, never a crash.
 *   - Output goes to the caller's memory.  Functions with `room` write as much as fits and return how much there is, so a
 *     result above `room` says what to come back with; room 0 (the pointer may be NULL then) only asks.
 *   - Strings are bytes with their size, and need no NUL; paths end with NUL.  Nothing that was passed is kept.
 *   - What was opened may be used by any number of threads at once, and is the caller's to close, once, when no other call
 *     uses it any more.  Closing NULL does nothing.  Objects do not know of each other: they are closed in any order.
 *   - The library prints nothing, ends no process, handles no signal, reads no standard input.  Threads of its own live only
 *     within the call that asks for them, with all signals blocked.  After fork() a child may go on with what is open.
 *
 * Files that are mapped (datasets, cached indices) must not be cut short while they are open: as with any mapping the
 * process would get SIGBUS.
 */
#ifndef QUERN_H
#define QUERN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_API __attribute__((visibility("default")))

enum quern_code {
    QUERN_MEMORY = -1,      /* out of memory */
    QUERN_IO = -2,          /* the system refused a read or a write */
    QUERN_FORMAT = -3,      /* a file is damaged, or of no known kind; an id that is none; a text without tokens */
    QUERN_ARGUMENT = -4,    /* the caller asked for something impossible */
    QUERN_UNSUPPORTED = -5, /* well-formed, but this build cannot do it */
    QUERN_LIMIT = -6        /* a text of 2 GiB and more, a file of more than 1 GiB */
};

/* Of the caller.  A call that fails fills it, others leave it alone; the message ends with NUL, and is cut if it is long. */
typedef struct quern_error {
    int32_t code;
    char message[508];
} quern_error;

/* Of the library that runs, as "0.2.0"; never freed. */
QUERN_API const char *quern_version(void);

/* ---- tokenizers ---- */

typedef struct quern_tokenizer quern_tokenizer;

/* What is to be otherwise than the files say; zeros, or NULL for all of it: nothing. */
typedef struct quern_tokenizer_settings {
    size_t size;                /* sizeof (quern_tokenizer_settings): later ones may have more */
    const char *pattern;        /* how text is cut: gpt2, cl100k, llama3, qwen2, o200k, tekken, none, or an expression */
    const char *special_tokens; /* a JSON file of special tokens for ranks or vocab.json: tokens and ids */
    const char *eod;            /* the token that ends a document, or its id */
} quern_tokenizer_settings;

/* Opens what quern reads: a tokenizer.json, a tekken.json, a SentencePiece model, a tiktoken rank file, or a folder with
 * tokenizer.json, vocab.json and merges.txt, or encoder.json and vocab.bpe.  0; *t is NULL after a failure. */
QUERN_API int quern_tokenizer_open(quern_tokenizer **t, const char *path, const quern_tokenizer_settings *s, quern_error *e);
QUERN_API void quern_tokenizer_close(quern_tokenizer *t);

/* The highest id, plus one; 0 for NULL. */
QUERN_API size_t quern_vocab_size(const quern_tokenizer *t);
/* The id of the token that stands for exactly these bytes, special and added tokens included; -1: there is none. */
QUERN_API int64_t quern_token_to_id(const quern_tokenizer *t, const char *token, size_t size);
/* The bytes that an id stands for; their number, or -1: there is no such id. */
QUERN_API int64_t quern_id_to_token(const quern_tokenizer *t, uint32_t id, char *token, size_t room);
/* 1 for a special token, else 0. */
QUERN_API int quern_is_special(const quern_tokenizer *t, uint32_t id);
/* The id of the token that ends a document; -1: none. */
QUERN_API int64_t quern_eod(const quern_tokenizer *t);

enum quern_flags {
    QUERN_SPECIAL = 1,     /* encode: special tokens that are written in a text become their ids; else they are plain text */
    QUERN_SKIP_SPECIAL = 2 /* decode: special tokens are left out */
};

/* The ids of a text (UTF-8; other bytes too, as the tokenizer can have them).  No tokens are put around it.  Returns their
 * number.  Byte-level tokenizers without normalisation make at most an id a byte.  A thread that encodes takes up to some
 * 40 MB for the words that it has seen; they are kept for the next call, and freed when the tokenizer is closed. */
QUERN_API int64_t quern_encode(quern_tokenizer *t, const char *text, size_t size, int flags, uint32_t *ids, size_t room,
                               quern_error *e);
/* n texts one behind the other: those of text i end at ids[ends[i]] and begin where those before end.  All of ends is
 * written, whatever the room.  threads: at most so many, 0: as many as this process may use; the ids are the same for any.
 * Of several texts that fail the first is named. */
QUERN_API int64_t quern_encode_batch(quern_tokenizer *t, const char *const *texts, const size_t *sizes, size_t n, int flags,
                                     int threads, uint32_t *ids, size_t room, size_t *ends, quern_error *e);
/* The bytes that n ids stand for; their number.  QUERN_FORMAT: an id is none. */
QUERN_API int64_t quern_decode(quern_tokenizer *t, const uint32_t *ids, size_t n, int flags, char *text, size_t room,
                               quern_error *e);
/* n texts one behind the other, of ids as quern_encode_batch leaves them: text i ends at text[text_ends[i]]. */
QUERN_API int64_t quern_decode_batch(quern_tokenizer *t, const uint32_t *ids, const size_t *ends, size_t n, int flags,
                                     int threads, char *text, size_t room, size_t *text_ends, quern_error *e);

/* ---- indexed datasets: Megatron's PREFIX.bin and PREFIX.idx ---- */

typedef struct quern_dataset quern_dataset;

/* Maps both files; prefix with or without .bin or .idx.  What is damaged is found when it is read.  0; *d is NULL after a
 * failure. */
QUERN_API int quern_dataset_open(quern_dataset **d, const char *prefix, quern_error *e);
QUERN_API void quern_dataset_close(quern_dataset *d);
/* Documents are made of sequences, mostly of one each; 0 for NULL. */
QUERN_API size_t quern_dataset_sequences(const quern_dataset *d);
QUERN_API size_t quern_dataset_documents(const quern_dataset *d);
/* How tokens lie in the file, by Megatron's codes: 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 6 f64, 7 f32, 8 u16; 0 for NULL. */
QUERN_API int quern_dataset_dtype(const quern_dataset *d);
/* The lengths in tokens of n sequences from the first-th on; 0. */
QUERN_API int quern_dataset_lengths(const quern_dataset *d, size_t first, size_t n, int32_t *lengths, quern_error *e);
/* Entries [first, first + n) of Megatron's document indices, of which there is one more than documents: document k has the
 * sequences from entry k up to entry k + 1; 0. */
QUERN_API int quern_dataset_boundaries(const quern_dataset *d, size_t first, size_t n, int64_t *sequences, quern_error *e);
/* The tokens of sequence i from number `from` on, and of all sequences of document k; their number.  Tokens beyond 32 bits
 * are QUERN_FORMAT, fractions QUERN_UNSUPPORTED. */
QUERN_API int64_t quern_dataset_read(const quern_dataset *d, size_t i, size_t from, int32_t *tokens, size_t room,
                                     quern_error *e);
QUERN_API int64_t quern_dataset_read_document(const quern_dataset *d, size_t k, int32_t *tokens, size_t room, quern_error *e);

/* ---- training samples: Megatron's GPTDataset, or a blend of several ---- */

typedef struct quern_samples quern_samples;

enum quern_part { QUERN_TRAIN, QUERN_VALID, QUERN_TEST };

typedef struct quern_samples_settings {
    size_t size;              /* sizeof (quern_samples_settings) */
    const char *const *paths; /* the words of Megatron's --data-path: prefixes, or weights and prefixes by turns */
    size_t n_paths;
    const char *split;        /* as "969,30,1": which share of the sequences is for which part; NULL: all are for this one */
    int part;                 /* enum quern_part */
    uint32_t seed;
    int64_t sequence_length;  /* a sample has one token more */
    int64_t samples;          /* at least so many, over as many epochs as it takes; 0: one epoch, not of a weighted blend */
    const char *cache;        /* a folder where the indices are kept for the next time, if it can be written; NULL: none */
} quern_samples_settings;

/* Opens the files, and takes the indices from the cache or builds them, bit for bit as Megatron core 0.16: 12 bytes of memory
 * a sample, and 8 a sequence and epoch.  0; *s is NULL after a failure. */
QUERN_API int quern_samples_open(quern_samples **s, const quern_samples_settings *settings, quern_error *e);
QUERN_API void quern_samples_close(quern_samples *s);
/* How many there are: what was asked for, or a few more; 0 for NULL. */
QUERN_API int64_t quern_samples_count(const quern_samples *s);
/* Writes the sequence_length + 1 tokens of sample i, in drawing order; 0. */
QUERN_API int quern_samples_read(const quern_samples *s, int64_t i, int32_t *tokens, quern_error *e);

#ifdef __cplusplus
}
#endif
#endif
