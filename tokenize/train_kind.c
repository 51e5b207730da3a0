#include "tokenize/train_kind.h"

#include <stddef.h>

#define MARK "\xe2\x96\x81"

static const char byte_level[] =
    "{\n    \"type\": \"ByteLevel\",\n    \"add_prefix_space\": false,\n    \"trim_offsets\": true,\n"
    "    \"use_regex\": true\n  }";

/* Spaces are U+2581, one in front of all text; and back. */
#define SPACES_MARKED \
    "{\n    \"type\": \"Sequence\",\n    \"normalizers\": [\n" \
    "      {\"type\": \"Prepend\", \"prepend\": \"" MARK "\"},\n" \
    "      {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" MARK "\"}\n    ]\n  }"
#define SPACES_BACK \
    "{\n    \"type\": \"Sequence\",\n    \"decoders\": [\n" \
    "      {\"type\": \"Replace\", \"pattern\": {\"String\": \"" MARK "\"}, \"content\": \" \"},\n" \
    "      {\"type\": \"ByteFallback\"},\n      {\"type\": \"Fuse\"},\n" \
    "      {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}\n    ]\n  }"

static const char bpe_of_bytes[] = "    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
                                   "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
                                   "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n";

const struct train_kind train_kinds[] = {
    [TRAIN_BPE] = {.pattern = "gpt2",
                   .specials = {"<|endoftext|>"},
                   .decoder = byte_level,
                   .merges = true,
                   .model = bpe_of_bytes},
    /* Both patterns have digits in threes, and end where lines do. */
    [TRAIN_SUPERBPE] = {.pattern = "llama3",
                        .across = "\\p{N}{1,3}|[^\\p{N}\\r\\n]+[\\r\\n]*|[\\r\\n]+",
                        .specials = {"<|endoftext|>"},
                        .decoder = byte_level,
                        .merges = true,
                        .model = bpe_of_bytes},
    /* Words are cut where a SentencePiece model of such pieces cannot join, so that both give the same ids: each digit by
     * itself, letters and others apart, spaces in front. */
    [TRAIN_BYTE_FALLBACK] =
        {.characters = true,
         .bytes = true,
         .longest = 16, /* as SentencePiece's trainer has it */
         .always = MARK,
         .specials = {"<unk>", "<s>", "</s>"},
         .normalizer = SPACES_MARKED,
         .pre_tokenizer = "{\n    \"type\": \"Split\",\n    \"pattern\": {\n"
                          "      \"Regex\": \"\\\\p{N}|" MARK "*[\\\\p{L}\\\\p{M}]+|" MARK
                          "*[^" MARK "\\\\p{L}\\\\p{M}\\\\p{N}]+|" MARK "+\"},\n"
                          "    \"behavior\": \"Isolated\",\n    \"invert\": false\n  }",
         .decoder = SPACES_BACK,
         .merges = true,
         .model = "    \"type\": \"BPE\",\n    \"dropout\": null,\n"
                  "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
                  "    \"fuse_unk\": true,\n    \"byte_fallback\": true,\n    \"ignore_merges\": false,\n"},
    [TRAIN_WORDPIECE] =
        {.characters = true,
         .inside = "##",
         .specials = {"[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"},
         .normalizer = "{\n    \"type\": \"BertNormalizer\",\n    \"clean_text\": true,\n    \"handle_chinese_chars\": true,\n"
                       "    \"strip_accents\": null,\n    \"lowercase\": false\n  }",
         .pre_tokenizer = "{\n    \"type\": \"BertPreTokenizer\"\n  }",
         .decoder = "{\n    \"type\": \"WordPiece\",\n    \"prefix\": \"##\",\n    \"cleanup\": true\n  }",
         .model = "    \"type\": \"WordPiece\",\n    \"continuing_subword_prefix\": \"##\",\n"
                  "    \"max_input_chars_per_word\": 100,\n"},
    [TRAIN_UNIGRAM] =
        {.characters = true,
         .scored = true,
         .specials = {"<unk>", "<s>", "</s>"},
         .normalizer = SPACES_MARKED,
         .pre_tokenizer = "{\n    \"type\": \"Metaspace\",\n    \"replacement\": \"" MARK "\",\n"
                          "    \"prepend_scheme\": \"never\",\n    \"split\": true\n  }",
         .decoder = SPACES_BACK,
         .model = "    \"type\": \"Unigram\",\n"},
};
