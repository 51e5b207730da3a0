#include "base/s3_write.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/http_call.h"
#include "base/log.h"
#include "base/s3.h"
#include "base/s3_sign.h"
#include "base/sha256.h"

enum { PART = 32 << 20, PARTS = 10000, ANSWER = 1 << 20, TIMEOUT = 300, ID = 1024 };
#define MARK "x-amz-meta-quern-upload"

/* A part that is filled, and then sent by a thread of its own. */
struct part {
    char *bytes;
    size_t n;
    int number;
    bool sent; /* its thread is to be joined */
    pthread_t thread;
    struct s3_writer *w;
    int rc;
    struct err why;
    char etag[256];
};

struct s3_writer {
    char *name;
    struct s3_object *object;
    double timeout;
    char mark[17];   /* tells this upload's object from others under the name */
    char id[ID];     /* the upload's, as it stands in a query; "": none was begun */
    struct buf list; /* of the parts, in XML */
    struct part part[2];
    int filling, parts; /* which of them; how many were begun */
};

/* ---- requests ---- */

static int failed(const struct s3_writer *w, const struct http_call *c, const struct err *why, struct err *e)
{
    const char *code = c->answer.n ? strstr(c->answer.p, "<Code>") : NULL;

    if (why->code)
        return err_set(e, why->code, "cannot write '%.150s': %.200s", w->name, why->msg);
    return err_set(e, ERR_IO, "cannot write '%.150s': the store answers %ld%s%.*s%s%s", w->name, c->status, code ? " (" : "",
                   code ? (int)strcspn(code + 6, "<") : 0, code ? code + 6 : "", code ? ")" : "", s3_why_not(w->object));
}

/* One request, signed: 0, or what http_call says. */
static int ask(struct s3_writer *w, struct http_call *c, const char *query, struct err *e)
{
    struct s3_header mark = {MARK, w->mark};
    bool names = strcmp(query, "uploads=") == 0 || !*query; /* what makes an object */
    char url[8192], hash[2 * SHA256_SUM + 1];
    uint8_t sum[SHA256_SUM];
    struct buf headers = {0};
    int rc;

    sha256_of(&c->body, 1, sum);
    sha256_hex(sum, hash);
    if ((size_t)snprintf(url, sizeof url, "%s%s%s", s3_url(w->object), *query ? "?" : "", query) >= sizeof url)
        return err_set(e, ERR_ARG, "its name is too long");
    rc = s3_headers(w->object, c->method, query, hash, names && strcmp(c->method, "HEAD") != 0 ? &mark : NULL, &headers, e);
    c->url = url;
    c->headers = buf_span(&headers);
    c->answer.max = ANSWER;
    if (rc == 0)
        rc = http_call(c, e);
    c->url = NULL;
    c->headers = (struct span){NULL, 0};
    buf_free(&headers);
    return rc;
}

/* Asks until there is an answer that is final: 0 for a status of 200 or 204.  lost: whether one may have been done of which the
 * answer was lost; NULL: no matter. */
static int ask_again(struct s3_writer *w, struct http_call *c, const char *query, bool *lost, struct err *e)
{
    double begun = log_seconds(), wait = .1, left;
    struct err why = {.code = 0};
    int rc;

    for (c->seconds = (int)(w->timeout / 4) + 1;; wait = wait < 15 ? 2 * wait : 30) {
        rc = ask(w, c, query, &why);
        if (rc == 0 && (c->status == 200 || c->status == 204) && !strstr(c->answer.p, "<Error>"))
            return 0;
        if (rc == 0 && c->status == 200) /* S3 may find out after it has answered */
            c->may_pass = true;
        left = begun + w->timeout - log_seconds();
        wait = (double)c->after > wait ? (double)c->after : wait;
        if (!c->may_pass || wait > left)
            return failed(w, c, rc < 0 ? &why : &(struct err){.code = 0}, e);
        if (lost)
            *lost = true;
        log_msg(LOG_DEBUG, "'%s': %s; trying again in %g seconds", w->name, rc < 0 ? why.msg : "the store is busy", wait);
        nanosleep(&(struct timespec){(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)}, NULL);
    }
}

/* Whether the object that stands under the name is this upload's. */
static bool stands(struct s3_writer *w)
{
    struct http_call c = {.method = "HEAD", .wanted = MARK};
    struct err e;
    bool is = ask_again(w, &c, "", NULL, &e) == 0 && strcmp(c.header, w->mark) == 0;

    buf_free(&c.answer);
    return is;
}

/* ---- parts ---- */

static void *send_part(void *arg)
{
    struct part *p = arg;
    struct http_call c = {.method = "PUT", .body = {p->bytes, p->n}, .wanted = "ETag"};
    char query[ID + 64];

    snprintf(query, sizeof query, "partNumber=%d&uploadId=%s", p->number, p->w->id);
    p->rc = ask_again(p->w, &c, query, NULL, &p->why);
    if (p->rc == 0 && !c.header[0])
        p->rc = err_set(&p->why, ERR_IO, "cannot write '%.150s': the store gives no ETag for a part", p->w->name);
    memcpy(p->etag, c.header, sizeof p->etag);
    buf_free(&c.answer);
    return NULL;
}

/* Waits for a part that is being sent, and notes it. */
static int end_part(struct s3_writer *w, struct part *p, struct err *e)
{
    if (!p->sent)
        return 0;
    pthread_join(p->thread, NULL);
    p->sent = false;
    p->n = 0;
    if (p->rc < 0) {
        *e = p->why;
        return p->rc;
    }
    if (buf_printf(&w->list, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", p->number, p->etag) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for '%.150s'", w->name);
    return 0;
}

/* Begins the upload: its id is in the answer's XML. */
static int begin(struct s3_writer *w, struct err *e)
{
    struct http_call c = {.method = "POST"};
    struct buf id = {0};
    const char *s;
    char raw[ID / 3];
    int rc = ask_again(w, &c, "uploads=", NULL, e);

    s = rc == 0 ? strstr(c.answer.p, "<UploadId>") : NULL;
    if (rc == 0 && (!s || strcspn(s + 10, "<") == 0 || strcspn(s + 10, "<") >= sizeof raw)) {
        rc = err_set(e, ERR_IO, "cannot write '%.150s': the store gives no id for an upload", w->name);
    } else if (rc == 0) {
        snprintf(raw, sizeof raw, "%.*s", (int)strcspn(s + 10, "<"), s + 10);
        rc = s3_encode(&id, raw, "") < 0 ? err_set(e, ERR_NOMEM, "out of memory for '%.150s'", w->name) : 0;
        snprintf(w->id, sizeof w->id, "%.*s", (int)id.n, id.n ? id.p : "");
    }
    buf_free(&id);
    buf_free(&c.answer);
    return rc;
}

/* Sends the part that is being filled; the other one, once it has been sent, is filled next. */
static int send(struct s3_writer *w, struct err *e)
{
    struct part *p = &w->part[w->filling];

    if (w->parts == PARTS)
        return err_set(e, ERR_LIMIT, "'%.150s' is too long: an object has at most %d parts of %d MiB", w->name, PARTS,
                       PART >> 20);
    if (!w->id[0])
        TRY(begin(w, e));
    TRY(end_part(w, &w->part[!w->filling], e));
    p->number = ++w->parts;
    p->w = w;
    if (pthread_create(&p->thread, NULL, send_part, p) != 0)
        return err_set(e, ERR_NOMEM, "no thread for '%.150s'", w->name);
    p->sent = true;
    w->filling = !w->filling;
    return 0;
}

int s3_writer_put(struct s3_writer *w, const void *from, size_t n, struct err *e)
{
    for (const char *s = from; n;) {
        struct part *p = &w->part[w->filling];
        size_t k = PART - p->n < n ? PART - p->n : n;

        if (!p->bytes && !(p->bytes = malloc(PART)))
            return err_set(e, ERR_NOMEM, "out of memory for '%.150s'", w->name);
        if (k == 0) {
            TRY(send(w, e));
            continue;
        }
        memcpy(p->bytes + p->n, s, k);
        p->n += k;
        s += k;
        n -= k;
    }
    return 0;
}

/* ---- from its begin to its end ---- */

int s3_writer_open(struct s3_writer **out, const char *address, struct err *e)
{
    struct s3_writer *w = calloc(1, sizeof *w);
    const char *seconds = getenv("QUERN_HTTP_TIMEOUT");
    uint64_t random = 0;
    double given;
    int rc;

    *out = NULL;
    if (w)
        w->name = strdup(address);
    if (!w || !w->name) {
        free(w);
        return err_set(e, ERR_NOMEM, "out of memory for an address");
    }
    given = seconds ? strtod(seconds, NULL) : 0;
    w->timeout = given > 0 ? given : TIMEOUT;
    rc = s3_find(&w->object, address, e);
    if (rc == 0 && getrandom(&random, sizeof random, 0) != sizeof random)
        rc = err_sys(e, ERR_IO, "no random number for '%.150s'", address);
    snprintf(w->mark, sizeof w->mark, "%016" PRIx64, random);
    if (rc < 0)
        s3_writer_close(w);
    else
        *out = w;
    return rc;
}

/* Has the store make the object of all parts. */
static int complete(struct s3_writer *w, struct err *e)
{
    struct http_call c = {.method = "POST"};
    struct buf body = {0};
    char query[ID + 16];
    bool lost = false;
    int rc;

    if (w->part[w->filling].n)
        TRY(send(w, e));
    TRY(end_part(w, &w->part[!w->filling], e));
    if (buf_puts(&body, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">") < 0 ||
        buf_put_span(&body, buf_span(&w->list)) < 0 || buf_puts(&body, "</CompleteMultipartUpload>") < 0) {
        rc = err_set(e, ERR_NOMEM, "out of memory for '%.150s'", w->name);
    } else {
        snprintf(query, sizeof query, "uploadId=%s", w->id);
        c.body = buf_span(&body);
        rc = ask_again(w, &c, query, &lost, e);
        if (rc < 0 && lost && stands(w))
            rc = 0;
    }
    if (rc == 0)
        w->id[0] = '\0';
    buf_free(&body);
    buf_free(&c.answer);
    return rc;
}

int s3_writer_commit(struct s3_writer *w, struct err *e)
{
    struct part *p = &w->part[w->filling];
    struct http_call c = {.method = "PUT", .body = {p->bytes, p->n}};
    int rc;

    if (w->id[0])
        return complete(w, e);
    rc = ask_again(w, &c, "", NULL, e);
    buf_free(&c.answer);
    return rc;
}

void s3_writer_close(struct s3_writer *w)
{
    struct http_call c = {.method = "DELETE", .seconds = 10};
    char query[ID + 16];
    struct err e;

    if (!w)
        return;
    for (int i = 0; i < 2; i++)
        end_part(w, &w->part[i], &e);
    if (w->id[0]) {
        snprintf(query, sizeof query, "uploadId=%s", w->id);
        (void)ask(w, &c, query, &e);
        buf_free(&c.answer);
    }
    for (int i = 0; i < 2; i++)
        free(w->part[i].bytes);
    buf_free(&w->list);
    s3_free(w->object);
    free(w->name);
    free(w);
}
