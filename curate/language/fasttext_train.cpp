#include "curate/language/fasttext_train.h"

#if HAVE_FASTTEXT
#include <cstring>
#include <exception>
#include <new>

#include <fasttext/fasttext.h>

static fasttext::Args args_of(const char *text_path, const struct fasttext_train_conf *c)
{
    fasttext::Args a;

    a.input = text_path;
    a.model = fasttext::model_name::sup;
    a.loss = static_cast<fasttext::loss_name>(c->loss);
    a.lr = c->lr;
    a.dim = static_cast<int>(c->dim);
    a.epoch = static_cast<int>(c->epoch);
    a.wordNgrams = static_cast<int>(c->word_ngrams);
    a.minn = static_cast<int>(c->minn);
    a.maxn = static_cast<int>(c->maxn);
    /* As fastText's own program does: no n-grams, no rows for them. */
    a.bucket = c->word_ngrams <= 1 && c->maxn == 0 ? 0 : static_cast<int>(c->bucket);
    a.minCount = static_cast<int>(c->min_count);
    a.minCountLabel = 0;
    a.seed = static_cast<int>(c->seed);
    a.thread = static_cast<int>(c->threads);
    a.verbose = 0;
    return a;
}

extern "C" int fasttext_train(const char *text_path, const char *model_path, const struct fasttext_train_conf *c,
                              struct err *e)
{
    try {
        fasttext::FastText f;
        f.train(args_of(text_path, c));
        f.saveModel(model_path);
    } catch (const std::bad_alloc &) {
        return err_set(e, ERR_NOMEM, "no memory to train: fewer buckets or dimensions need less");
    } catch (const std::exception &x) {
        if (std::strstr(x.what(), "cannot be opened")) // our own temporary files: the system refused
            return err_sys(e, ERR_IO, "fastText: %s", x.what());
        return err_set(e, ERR_ARG, "fastText cannot train on this: %s", x.what());
    } catch (...) {
        return err_set(e, ERR_ARG, "fastText cannot train on this");
    }
    return 0;
}
#else
extern "C" int fasttext_train(const char *text_path, const char *model_path, const struct fasttext_train_conf *c,
                              struct err *e)
{
    (void)text_path;
    (void)model_path;
    (void)c;
    return err_set(e, ERR_UNSUPPORTED, "this build lacks libfasttext, which trains");
}
#endif
