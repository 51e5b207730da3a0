#include "curate/report/rules.h"

#include "curate/filter/filter.h"

/* ---- the stages but filter ---- */

static const struct {
    const char *stage, *rule, *value, *why, *drops;
} of_stages[] = {
    {"extract", "empty", "characters of content", "The page has no text.", "below"},
    {"extract", "not_html", NULL, "The record is no HTML.", NULL},
    {"extract", "withdrawn", NULL, "The source holds nothing but the mark of a withdrawn paper.", NULL},
    {"extract", "namespace", "number of the namespace", "The page is in a namespace that was not asked for.", NULL},
    {"extract", "redirect", NULL, "The page only leads to another.", NULL},
    {"extract", "model", NULL, "The page is no wikitext.", NULL},
    {"langid", "lang", "score of the language found", "The language is none of those that are kept.", NULL},
    {"langid", "lang_score", "score of the language", "The language is kept, but its score is too low.", "below"},
    {"langid", "lang_lines", "lines removed", "Nothing is left once lines in other languages are removed.", NULL},
    {"classify", "score", "score of the classifier", NULL, "below"},
    {"classify", "pareto", "score of the classifier", "The score is not above the number drawn for this document.", "below"},
    {"dedup exact", "duplicate", NULL, "Another document has the same text, as texts were to be compared.", NULL},
    {"dedup fuzzy", "near-duplicate", "similarity (Jaccard, of shingles) to the survivor",
     "Another document is nearly the same.", "from"},
    {"dedup lines", "nothing-left", NULL, "Nothing is left once repeated lines are removed.", NULL},
    {"dedup substring", "nothing-left", NULL, "Nothing is left once repeated passages are removed.", NULL},
    {"", "words-left", "words left", "Too little is left once repeated text is removed.", "below"},
    {"", "sentences-left", "sentences left", "Too little is left once repeated text is removed.", "below"},
    {"", "nothing-left", NULL, "Nothing is left once repeated text is removed.", NULL},
    {"decontaminate", "words", "words in a row that a question has too", "It holds a question of an evaluation set.", "from"},
    {"decontaminate", "share", "share of a question's words", "It holds most of a question of an evaluation set.", "from"},
    {"decontaminate", "ngram", NULL, "It shares words in a row with a question of an evaluation set.", NULL},
    {"decontaminate", "score", "score of a question of an evaluation set", NULL, "from"},
    {"decontaminate", "pieces", "pieces left", "Nothing is left once the passages of questions are cut out.", "below"},
    {"decontaminate", "splits", "pieces", "Cutting out the passages of questions leaves too many pieces.", "above"},
};

/* ---- filter's rules: what the value is.  # stands for the N of N-grams ---- */

#define STOPS "occurrences of the, be, to, of, and, that, have, with"
#define TOP "share of characters in the most frequent N-gram"
#define TWICE "share of characters in N-grams that occur twice"
static const struct {
    const char *rule, *value;
} of_filter[] = {
    {"gopher_short_doc", "words that are more than symbols"},
    {"gopher_long_doc", "words that are more than symbols"},
    {"gopher_below_avg_threshold", "mean characters of a word"},
    {"gopher_above_avg_threshold", "mean characters of a word"},
    {"gopher_too_many_hashes", "# signs / words"},
    {"gopher_too_many_ellipsis", "ellipses / words"},
    {"gopher_too_many_bullets", "share of lines that begin with a bullet"},
    {"gopher_too_many_end_ellipsis", "share of lines that end in an ellipsis"},
    {"gopher_below_alpha_threshold", "share of words with a letter"},
    {"gopher_enough_stop_words", "different stop words"},
    {"empty", "1 if there is no text"},
    {"no_lines", "1 if there is no line"},
    {"dup_para_frac", "share of paragraphs that are copies"},
    {"dup_para_char_frac", "share of characters in copies of paragraphs"},
    {"dup_line_frac", "share of lines that are copies"},
    {"dup_line_char_frac", "share of characters in copies of lines"},
    {"top_#_gram", TOP},
    {"duplicated_#_n_grams", "share of characters in N-grams that were there before"},
    {"line_too_long_word", "lines with a word too long"},
    {"line_no_terminal_punct", "lines without an end mark"},
    {"line_too_few_words", "lines of too few words"},
    {"line_javascript", "lines with javascript"},
    {"line_policy", "lines with the words of a policy"},
    {"lorem_ipsum", "lines with lorem ipsum"},
    {"curly_bracket", "lines with a curly bracket"},
    {"too_few_sentences", "sentences of the lines that stay"},
    {"line_punct_ratio", "share of lines that end in punctuation"},
    {"short_line_ratio", "share of short lines"},
    {"char_dup_ratio", "share of characters in copies of lines"},
    {"list_ratio", "newlines / words"},
    {"unknown_language", "1 if the language has no numbers"},
    {"alpha_numeric", "share of characters that are no letters, digits or marks of ASCII"},
    {"symbol_to_word", "symbols / words"},
    {"numbers_ratio", "share of digits"},
    {"urls_ratio", "share of characters in URLs"},
    {"white_space", "share of white space"},
    {"parentheses_ratio", "share of brackets"},
    {"boilerplate_string_ratio", "share of paragraphs with a boilerplate phrase"},
    {"repeated_lines", "distinct lines / lines"},
    {"repeated_lines_char", "characters of distinct lines / those of lines"},
    {"repeated_paragraphs", "distinct paragraphs / paragraphs"},
    {"repeated_paragraphs_char", "characters of distinct paragraphs / those of paragraphs"},
    {"word_count", "words"},
    {"word_count_max", "words"},
    {"punctuation", "share of lines without an end mark"},
    {"words_without_alphabets", "share of words with a letter"},
    {"common_english_words", STOPS},
    {"mean_word_length", "mean characters of a word"},
    {"mean_word_length_max", "mean characters of a word"},
    {"max_word_length", "characters of the longest word"},
    {"ellipsis", "share of lines that end in an ellipsis"},
    {"repeating_top_#grams", TOP},
    {"repeating_dup_#gram", "share of characters in N-grams that were there before"},
    {"bullet_ratio", "share of lines that begin with a bullet"},
    {"median_word_length", "median characters of a word"},
    {"median_word_length_max", "median characters of a word"},
    {"symbol_to_word_ratio", "words with # or an ellipsis / words"},
    {"fraction_of_words_with_alpha_character", "share of words with a letter"},
    {"required_word_count", STOPS},
    {"fraction_of_lines_starting_with_bullet_point", "share of lines that begin with a bullet"},
    {"fraction_of_lines_ending_with_ellipsis", "share of lines that end in an ellipsis"},
    {"fraction_of_duplicate_lines", "share of lines that have an equal"},
    {"fraction_of_characters_in_duplicate_lines", "characters of lines that have an equal / those of words"},
    {"fraction_of_characters_in_most_common_#grams", TOP},
    {"fraction_of_characters_in_duplicate_#grams", TWICE},
    {"lines_with_no_ending_punctuation", "lines without an end mark"},
    {"lines_with_too_few_words", "lines of too few words"},
    {"has_javascript", "1 if the text has the word javascript"},
    {"has_lorem_ipsum", "1 if the text has lorem ipsum"},
    {"has_curly_brace", "1 if the text has a curly bracket"},
    {"page_length", "words that begin with a letter or digit"},
    {"page_length_max", "words that begin with a letter or digit"},
    {"word_length", "mean characters of a word"},
    {"word_length_max", "mean characters of a word"},
    {"symbol_ratio", "symbols / words"},
    {"bullet_count", "share of lines that begin with a bullet"},
    {"ellipsis_count", "share of lines that end in an ellipsis"},
    {"alphabetic_word_ratio", "share of words without a letter"},
    {"stop_word", STOPS},
    {"repetition_line", "share of lines that have an equal"},
    {"repetition_line_char", "share of characters in lines that have an equal"},
    {"repetition_paragraph", "share of paragraphs that have an equal"},
    {"repetition_paragraph_char", "share of characters in paragraphs that have an equal"},
    {"repetition_#_gram", "share of characters in repeated N-grams"},
    {"nothing_left", "1 if no line is left"},
    {"word_removal_ratio", "share of words that went with lines"},
    {"rps_doc_word_count", "words"},
    {"rps_doc_word_count_most", "words"},
    {"rps_doc_mean_word_length", "mean characters of a word"},
    {"rps_doc_mean_word_length_most", "mean characters of a word"},
    {"rps_doc_symbol_to_word_ratio", "symbols / words"},
    {"rps_lines_start_with_bulletpoint", "share of lines that begin with a bullet"},
    {"rps_doc_frac_chars_top_#gram", TOP},
    {"rps_doc_frac_chars_dupe_#grams", TWICE},
    {"rps_doc_frac_lines_end_with_ellipsis", "share of lines that end in an ellipsis"},
    {"rps_doc_frac_no_alph_words", "share of words without a letter"},
    {"rps_doc_stop_word_fraction", "share of stop words"},
    {"rps_doc_frac_unique_words", "distinct words / words"},
    {"rps_doc_unigram_entropy", "entropy of the words"},
    {"rps_doc_frac_all_caps_words", "share of words in capitals"},
    {"rps_doc_num_sentences", "sentences"},
    {"ccnet_length", "characters"},
    {"ccnet_nlines", "lines"},
    {"rps_doc_ldnoobw_words", "words on the list"},
    {"rps_doc_ut1_blacklist", "1 if the host is listed"},
    {"domain", "1 if the registered domain is listed"},
    {"subdomain", "1 if the host is listed"},
    {"url", "1 if the URL is listed"},
    {"hard_blacklisted", "words of the URL that are listed"},
    {"soft_blacklisted", "different words of the URL that are listed"},
    {"blacklisted_subword", "1 if a listed word stands in the URL"},
};

/* Is s the pattern, where # is a number?  (A pattern that begins with # is none of those.) */
static bool fits(struct span s, const char *pattern)
{
    size_t i = 0;

    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (i == s.n || s.p[i++] != *pattern)
                return false;
            continue;
        }
        if (i == s.n || s.p[i] < '0' || s.p[i] > '9')
            return false;
        while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
            i++;
    }
    return i == s.n;
}

static struct rule_words words_of_filter(struct span rule)
{
    struct rule_words w = {0};
    struct filter_rule r;
    int at = 0;

    if (filter_rule_next(&at, rule, &r))
        w.drops = r.drops;
    for (size_t i = 0; i < sizeof of_filter / sizeof *of_filter && !w.value; i++)
        if (fits(rule, of_filter[i].rule))
            w.value = of_filter[i].value;
    return w;
}

struct rule_words rule_words(struct span stage, struct span rule)
{
    if (span_is(stage, "filter"))
        return words_of_filter(rule);
    for (size_t i = 0; i < sizeof of_stages / sizeof *of_stages; i++)
        if (span_is(rule, of_stages[i].rule) && (!*of_stages[i].stage || span_is(stage, of_stages[i].stage)))
            return (struct rule_words){of_stages[i].value, of_stages[i].why, of_stages[i].drops,
                                       span_is(stage, "decontaminate")};
    return (struct rule_words){.question = span_is(stage, "decontaminate")};
}

int rule_put_presets(struct buf *b, struct span stage, struct span rule)
{
    struct filter_rule r;
    int at = 0;
    bool first = true;

    if (!span_is(stage, "filter"))
        return 0;
    for (; filter_rule_next(&at, rule, &r); first = false)
        TRY(buf_printf(b, "%s%s", first ? "" : ", ", r.preset));
    return 0;
}
