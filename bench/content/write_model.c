#include "bench/content/trainer.h"

#include <stdio.h>

/* A table of numbers as C. */
static void write_numbers(FILE *f, const char *type, const char *name, const void *v, size_t n, size_t size)
{
    size_t width = 0;

    fprintf(f, "static const %s %s[] = {\n   ", type, name);
    for (size_t i = 0; i < n; i++) {
        int x = size == 1                       ? ((const uint8_t *)v)[i]
                : strcmp(type, "int16_t") == 0 ? ((const int16_t *)v)[i]
                                               : ((const uint16_t *)v)[i];
        if (width > 112) {
            fprintf(f, "\n   ");
            width = 0;
        }
        width += (size_t)fprintf(f, " %d,", x);
    }
    fprintf(f, "\n};\n");
}

static void write_forest(FILE *f, const char *name, const struct content_forest *m)
{
    char full[64];
    size_t tests = (size_t)m->n_trees * (size_t)m->depth;

    snprintf(full, sizeof full, "%s_feature", name);
    write_numbers(f, "uint16_t", full, m->feature, tests, 2);
    snprintf(full, sizeof full, "%s_threshold", name);
    write_numbers(f, "uint8_t", full, m->threshold, tests, 1);
    snprintf(full, sizeof full, "%s_leaf", name);
    write_numbers(f, "int16_t", full, m->leaf, (size_t)m->n_trees << m->depth, 2);
}

static void put_forest(FILE *f, const char *name, const struct content_forest *m)
{
    fprintf(f, "{%d, %d, %d, %s_feature, %s_threshold, %s_leaf}", m->depth, m->n_trees, (int)m->bias, name, name, name);
}

/* Writes the model as curate/html/content_model.c includes it. */
void write_model(const struct content_model *m, const char *path)
{
    FILE *f = fopen(path, "w");
    char name[16];

    fprintf(f, "/* The models of main content: of tokens a hash, a score and a page's token, and trees.\n"
               " * Written by `MODEL=curate/html/content_weights.inc make bench BENCH=content`; docs/extract.md\n"
               " * says from what. */\n"
               "#define CONTENT_MODEL_NAME \"main-%016llx\"\n\n", (unsigned long long)content_model_hash(m));
    fprintf(f, "static const struct {\n    uint32_t hash;\n    int8_t score;\n    uint16_t token;\n} trained_tokens[] = {\n   ");
    size_t width = 0;
    for (uint32_t i = 0; i < CONTENT_LEXICON_SLOTS; i++) {
        if (!m->lexicon.hash[i])
            continue;
        if (width > 100) {
            fprintf(f, "\n   ");
            width = 0;
        }
        width += (size_t)fprintf(f, " {0x%x, %d, %u},", m->lexicon.hash[i], m->lexicon.score[i], m->lexicon.token[i]);
    }
    fprintf(f, "\n};\n");
    for (int k = 0; k < CONTENT_KINDS; k++) {
        snprintf(name, sizeof name, "kind_%d", k);
        write_forest(f, name, &m->kind[k]);
    }
    write_forest(f, "first", &m->first);
    write_forest(f, "second", &m->second);
    fprintf(f, "static const struct content_forest trained_kinds[] = {");
    for (int k = 0; k < CONTENT_KINDS; k++) {
        snprintf(name, sizeof name, "kind_%d", k);
        fprintf(f, "\n    ");
        put_forest(f, name, &m->kind[k]);
        fprintf(f, ",");
    }
    fprintf(f, "\n};\nstatic const struct content_forest trained_first = ");
    put_forest(f, "first", &m->first);
    fprintf(f, ";\nstatic const struct content_forest trained_second = ");
    put_forest(f, "second", &m->second);
    fprintf(f, ";\n");
    fclose(f);
}
