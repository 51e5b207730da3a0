/* A reader is libcurl's multi handle with one transfer: it runs while a byte is waited for, and stands still while the buffer is
 * full.  What has to be asked for again is a new transfer on the same handle, from the byte on that was to come next. */
#include "base/http.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/s3.h"

bool http_is_address(const char *name)
{
    return strncasecmp(name, "http://", 7) == 0 || strncasecmp(name, "https://", 8) == 0 || s3_is_address(name);
}

/* Where the host of an address begins. */
static const char *host_of(const char *address)
{
    return strstr(address, "//") + 2;
}

/* Whether an address names a user. */
static bool names_user(const char *address)
{
    const char *host = host_of(address);

    return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

int http_check(const char *address, struct err *e)
{
    return names_user(address) ? err_set(e, ERR_ARG, "an address with a user or a password in it is not read") : 0;
}

const char *http_bare(const char *address)
{
    const char *at = strrchr(address, '@');

    return at ? at + 1 : address;
}

int http_name_length(const char *address)
{
    if (!http_is_address(address))
        return (int)strlen(address);
    if (names_user(address))
        return (int)(host_of(address) - address);
    return (int)(s3_is_address(address) ? strlen(address) : strcspn(address, "?#"));
}

char *http_name(const char *address)
{
    return strndup(address, (size_t)http_name_length(address));
}

/* A decimal number at *p, which is moved behind it. */
static bool number(const char **p, uint64_t *v)
{
    const char *s = *p;

    for (*v = 0; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, (uint64_t)(*s - '0'), v))
            return false;
    if (s == *p)
        return false;
    *p = s;
    return true;
}

bool http_parse_range(const char *p, uint64_t *first, uint64_t *last, uint64_t *whole)
{
    *first = *last = *whole = UINT64_MAX;
    if (strncasecmp(p, "bytes", 5) != 0)
        return false;
    p += 5;
    p += strspn(p, " =");
    if (*p == '*')
        p++;
    else if (!number(&p, first) || *p++ != '-' || !number(&p, last) || *last < *first)
        return false;
    if (*p++ != '/')
        return false;
    if (*p == '*' && *first != UINT64_MAX)
        p++;
    else if (!number(&p, whole) || (*first != UINT64_MAX && *last >= *whole))
        return false;
    return p[strspn(p, " \t")] == '\0';
}

#if HAVE_CURL
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/curl_api.h"
#include "base/http_sum.h"
#include "base/log.h"
#include "base/s3_sign.h"
#include "base/version.h"

#define HUB "https://huggingface.co/"

enum {
    AT_ONCE = 128 << 10,  /* bytes that libcurl gives at a time */
    ROOM = 4 * AT_ONCE,   /* and that wait to be read */
    REDIRECTS = 5,
    TIMEOUT = 300,        /* seconds without a byte */
    WORDS = 1024, WORDS_MAX = 64 << 10 /* bytes that a refusal has: those that are looked at, and at most */
};

struct http {
    char *address, *name;
    struct s3_object *s3; /* NULL: another address */
    struct curl_slist *headers;
    CURLM *multi;
    CURL *easy;
    char said[CURL_ERROR_SIZE]; /* by libcurl, of what went wrong */

    uint64_t at;          /* offset of the next byte that is given out */
    uint64_t end;         /* where what was asked for ends */
    uint64_t size;        /* of the object; UINT64_MAX: not known */
    char state[HTTP_STATE_MAX]; /* its ETag or date */
    bool dated;           /* it is a date */
    bool known;           /* size and state are those of an answer */
    struct http_sum *sum; /* of the bytes given out, from the first on, where the server states one; NULL */

    /* The transfer: */
    bool added, paused, ended, answered; /* answered: the answer's head has been looked at */
    bool silent;          /* no byte came in time */
    CURLcode result;      /* once it has ended */
    uint64_t asked;       /* its first byte */
    char words[WORDS + 1]; /* what the server says of a request that it refuses */
    size_t n_words;
    uint64_t skip;        /* bytes before the one that was asked for, from a server that knows no ranges */
    uint8_t *bytes;       /* [from, n) are to be given out */
    size_t from, n;

    double timeout, heard; /* heard: when the last byte came, or waiting began */
    bool any;             /* a server has answered */
    bool beyond;          /* and said that the offset lies behind the object's end */
    int tries;            /* since a byte came that was to come next */
    double waited;        /* between these: seconds */
    struct err why;       /* what cannot be tried again; code 0: nothing */
};

/* A failure that trying again does not mend. */
__attribute__((format(printf, 2, 3))) static void fail(struct http *h, const char *fmt, ...)
{
    char what[320];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    err_set(&h->why, ERR_IO, "cannot read '%.150s' at offset %" PRIu64 ": %s", h->name, h->at, what);
}

static long status(const struct http *h)
{
    long code = 0;

    curl.easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

/* A header of the last answer, or of the first in a chain of redirects; "": it has none, or one too long. */
static const char *header_of(const struct http *h, const char *name, bool last)
{
    struct curl_header *v;

    if (curl.easy_header(h->easy, name, 0, CURLH_HEADER, last ? -1 : 0, &v) != CURLHE_OK || strlen(v->value) >= HTTP_STATE_MAX)
        return "";
    return v->value;
}

static const char *header(const struct http *h, const char *name)
{
    return header_of(h, name, true);
}

/* For http_sum_begin. */
static const char *sum_header(const void *h, const char *name)
{
    return header_of(h, name, strcmp(name, "X-Linked-ETag") != 0);
}

/* Whether the answer is of the object that was begun; notes the first one's state. */
static bool same_object(struct http *h, uint64_t size)
{
    const char *tag = header(h, "ETag"), *date = header(h, "Last-Modified");
    const char *state = tag[0] == '"' ? tag : date;

    if (!h->known) {
        if (h->at == 0 && h->end == UINT64_MAX)
            h->sum = http_sum_begin(sum_header, h);
        h->known = true;
        h->dated = state == date;
        memcpy(h->state, state, strlen(state) + 1);
        h->size = size;
        return true;
    }
    if (!h->state[0])
        fail(h, "the connection was cut, and the server gives no ETag or Last-Modified by which to go on");
    else if (strcmp(h->dated ? date : tag, h->state) != 0 || (size != UINT64_MAX && h->size != UINT64_MAX && size != h->size))
        fail(h, "it has changed while it was read");
    if (h->size == UINT64_MAX)
        h->size = size;
    return h->why.code == 0;
}

/* Looks at the head of an answer with status 200 or 206: its bytes are to be taken, or h->why says why not. */
static void look_at_range(struct http *h, long code)
{
    uint64_t first, last, whole;
    curl_off_t n = -1;

    curl.easy_getinfo(h->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &n);
    if (code == 200) {
        if (same_object(h, n >= 0 ? (uint64_t)n : UINT64_MAX))
            h->skip = h->asked;
        return;
    }
    if (!http_parse_range(header(h, "Content-Range"), &first, &last, &whole) || first != h->asked ||
        (n >= 0 && (uint64_t)n != last - first + 1) || (h->end != UINT64_MAX && last >= h->end))
        fail(h, "the server answers with another range than the one asked for: '%.100s'", header(h, "Content-Range"));
    else
        same_object(h, whole);
}

/* An offset that is the object's end is fine. */
static void look_at_end(struct http *h)
{
    uint64_t first, last, whole;

    if (!http_parse_range(header(h, "Content-Range"), &first, &last, &whole) || first != UINT64_MAX)
        return fail(h, "the server answers 416 (it has no such range)");
    h->beyond = whole < h->asked;
    if (whole != h->asked)
        fail(h, "it has %" PRIu64 " bytes", whole);
    else
        same_object(h, whole);
}

/* Whether the answer's bytes are the object's. */
static bool is_object(long code)
{
    return code == 200 || code == 206;
}

/* Looks at the head of an answer, once. */
static void look_at_answer(struct http *h)
{
    long code = status(h);

    if (h->answered)
        return;
    h->answered = h->any = true;
    if (is_object(code))
        look_at_range(h, code);
    else if (code == 416)
        look_at_end(h);
}

/* Says that the server refuses the request, and why: by the error's code in S3's XML, if that is there. */
static void refuse(struct http *h, long code)
{
    const char *begin = strstr(h->words, "<Code>"), *region = header(h, "x-amz-bucket-region");
    size_t n = begin ? strspn(begin + 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") : 0;

    if (h->s3 && code >= 300 && code < 400 && *region)
        fail(h, "the bucket is in another region: AWS_REGION=%.60s", region);
    else if (n && n < 60)
        fail(h, "the server answers %ld (%.*s)%s", code, (int)n, begin + 6, h->s3 ? s3_why_not(h->s3) : "");
    else
        fail(h, "the server answers %ld%s%s", code,
             code == 404 ? " (not found)" : code == 401 || code == 403 ? " (no access)" : "", h->s3 ? s3_why_not(h->s3) : "");
}

/* Keeps the beginning of what a server says with another status; false: that is too long. */
static bool take_words(struct http *h, const char *p, size_t n)
{
    size_t k = h->n_words >= WORDS ? 0 : n < WORDS - h->n_words ? n : WORDS - h->n_words;

    memcpy(h->words + (k ? h->n_words : 0), p, k);
    h->n_words += n;
    h->words[h->n_words < WORDS ? h->n_words : WORDS] = '\0';
    return h->n_words < WORDS_MAX;
}

/* libcurl's CURLOPT_WRITEFUNCTION. */
static size_t on_bytes(char *p, size_t one, size_t n, void *arg)
{
    struct http *h = arg;
    uint64_t left;
    size_t drop;

    look_at_answer(h);
    if (!h->why.code && !is_object(status(h)))
        return take_words(h, p, n) ? n : 0;
    if (h->why.code)
        return n ? 0 : one; /* ends the transfer */
    drop = h->skip < n ? (size_t)h->skip : n;
    left = h->end - (h->at + (h->n - h->from));
    if (n - drop > left) /* a server that knows no ranges gives more */
        n = drop + (size_t)left;
    if (h->n + (n - drop) > ROOM) {
        h->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    h->skip -= drop;
    memcpy(h->bytes + h->n, p + drop, n - drop);
    h->n += n - drop;
    h->heard = log_seconds();
    if (n > drop) {
        h->tries = 0;
        h->waited = 0;
    }
    return n;
}

/* Sets what all transfers share. */
static int set_up(struct http *h, struct err *e)
{
    struct { CURLoption option; long value; } const numbers[] = {
        {CURLOPT_NOSIGNAL, 1}, {CURLOPT_FOLLOWLOCATION, !h->s3}, {CURLOPT_MAXREDIRS, REDIRECTS},
        {CURLOPT_PATH_AS_IS, h->s3 != NULL},
        {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1}, /* a stream of HTTP/2 that is paused takes megabytes */
        {CURLOPT_BUFFERSIZE, AT_ONCE}};
    const char *token = getenv("HF_TOKEN"), *url = h->s3 ? s3_url(h->s3) : h->address;
    bool secure = strncasecmp(url, "https", 5) == 0;
    bool fine = curl.easy_setopt(h->easy, CURLOPT_PROTOCOLS_STR, secure ? "https" : "http") == CURLE_OK &&
                curl.easy_setopt(h->easy, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https") == CURLE_OK &&
                curl.easy_setopt(h->easy, CURLOPT_URL, url) == CURLE_OK &&
                curl.easy_setopt(h->easy, CURLOPT_USERAGENT, "quern/" QUERN_VERSION) == CURLE_OK;

    if (!h->s3 && token && *token && strncasecmp(url, HUB, sizeof HUB - 1) == 0) /* not sent on to hosts that it redirects to */
        fine = curl.easy_setopt(h->easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER) == CURLE_OK &&
               curl.easy_setopt(h->easy, CURLOPT_XOAUTH2_BEARER, token) == CURLE_OK && prctl(PR_SET_DUMPABLE, 0) == 0 && fine;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        fine = curl.easy_setopt(h->easy, numbers[i].option, numbers[i].value) == CURLE_OK && fine;
    curl.easy_setopt(h->easy, CURLOPT_ERRORBUFFER, h->said);
    curl.easy_setopt(h->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl.easy_setopt(h->easy, CURLOPT_WRITEDATA, h);
    return fine ? 0 : err_set(e, ERR_UNSUPPORTED, "cannot read '%.150s': libcurl has no HTTP, or memory is short", h->name);
}

static void stop(struct http *h)
{
    if (h->added)
        curl.multi_remove_handle(h->multi, h->easy);
    h->added = false;
}

/* The headers that a request to S3 has now. */
static int sign(struct http *h)
{
    static const struct s3_header sums = {"x-amz-checksum-mode", "ENABLED"};
    struct buf b = {0};
    int rc = s3_headers(h->s3, "GET", "", S3_NO_PAYLOAD, &sums, &b, &h->why);

    curl.slist_free_all(h->headers);
    h->headers = rc == 0 && b.n ? curl_headers(b.p, b.n) : NULL;
    if (rc == 0 && b.n && !h->headers)
        rc = err_set(&h->why, ERR_NOMEM, "out of memory for '%.150s'", h->name);
    buf_free(&b);
    curl.easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers);
    return rc;
}

/* Starts a transfer from h->at on.  Negative: h->why. */
static int start(struct http *h)
{
    char range[64];

    stop(h);
    h->asked = h->at;
    h->from = h->n = 0;
    h->paused = h->ended = h->answered = h->silent = false;
    h->skip = 0;
    h->said[0] = h->words[0] = '\0';
    h->n_words = 0;
    if (h->s3)
        TRY(sign(h));
    if (h->end != UINT64_MAX)
        snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, h->at, h->end - 1);
    else
        snprintf(range, sizeof range, "%" PRIu64 "-", h->at);
    curl.easy_setopt(h->easy, CURLOPT_RANGE, h->at || h->end != UINT64_MAX ? range : NULL);
    h->added = curl.multi_add_handle(h->multi, h->easy) == CURLM_OK;
    return h->added ? 0 : err_set(&h->why, ERR_NOMEM, "out of memory for '%.150s'", h->name);
}

/* Whether the head of an answer is there whose bytes are the object's, or cannot be. */
static bool has_head(const struct http *h)
{
    return h->answered && (h->why.code || is_object(status(h)));
}

/* Runs the transfer until a byte is there, the head of an answer is if that is all, or it has ended. */
static void run(struct http *h, bool head)
{
    double most = h->timeout / 4, began = log_seconds();
    const struct CURLMsg *m;
    int n;

    if (h->paused) {
        h->paused = false;
        curl.easy_pause(h->easy, CURLPAUSE_CONT);
    }
    while (!h->ended && h->from == h->n && !(head && has_head(h))) {
        CURLMcode rc = curl.multi_perform(h->multi, &n);
        double left = most - (log_seconds() - (h->heard > began ? h->heard : began));

        while ((m = curl.multi_info_read(h->multi, &n)))
            if (m->msg == CURLMSG_DONE) {
                h->ended = true;
                h->result = m->data.result;
            }
        if (h->ended || h->from < h->n || (head && has_head(h)))
            return;
        h->silent = left <= 0;
        if (rc != CURLM_OK || h->silent) {
            h->ended = true;
            h->result = rc == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_RECV_ERROR;
        } else {
            curl.multi_poll(h->multi, NULL, 0, left < 1 ? (int)(left * 1000) + 1 : 1000, NULL);
        }
    }
}

/* Why the transfer that has ended has to be tried again. */
static void say_why(const struct http *h, char *to, size_t size)
{
    long code = status(h);

    if (h->answered && curl_status_may_pass(code))
        snprintf(to, size, "the server answers %ld", code);
    else if (h->silent)
        snprintf(to, size, "no byte came for %g seconds", h->timeout / 4);
    else
        snprintf(to, size, "%s", h->said[0] ? h->said : h->result ? curl.easy_strerror(h->result) : "the connection was cut");
}

/* Waits before the next try, or sets h->why when there is to be none. */
static void wait_for_next(struct http *h)
{
    bool nobody = !h->any && (h->result == CURLE_COULDNT_RESOLVE_HOST || h->result == CURLE_COULDNT_CONNECT);
    double patience = nobody ? h->timeout / 10 : h->timeout, wait = .1, left;
    char what[CURL_ERROR_SIZE + 64];
    curl_off_t after = 0;

    say_why(h, what, sizeof what);
    for (int i = 0; i < h->tries && wait < 30; i++)
        wait *= 2;
    h->tries++;
    if (h->answered)
        curl.easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &after);
    left = h->heard + patience - log_seconds();
    if (left > patience - h->waited) /* what was heard were bytes passed over */
        left = patience - h->waited;
    if (after > 0 && (double)after > left)
        fail(h, "%s, and asks to come again after %" PRId64 " seconds", what, (int64_t)after);
    else if (wait > left)
        fail(h, "%s; tried %d times in %.3g seconds", what, h->tries, patience - left);
    if (h->why.code)
        return;
    wait = (double)after > wait ? (double)after : wait;
    h->waited += wait;
    log_msg(LOG_DEBUG, "'%s' at offset %" PRIu64 ": %s; trying again in %g seconds", h->name, h->at, what, wait);
    nanosleep(&(struct timespec){(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)}, NULL);
}

/* A transfer has ended and all its bytes are given out.  1: nothing more is to come; 0: it has to be tried again, after a
 * wait; negative: h->why. */
static int judge(struct http *h)
{
    bool all;

    if (h->result == CURLE_OK)
        look_at_answer(h);
    if (h->why.code)
        return h->why.code;
    all = h->at == h->end || (h->known && h->at == h->size);
    if (h->answered && (is_object(status(h)) || status(h) == 416) && (all || (h->result == CURLE_OK && h->size == UINT64_MAX)))
        return 1;
    if (h->answered && !is_object(status(h)) && status(h) != 416 && !curl_status_may_pass(status(h)))
        refuse(h, status(h));
    else if (h->result == CURLE_OUT_OF_MEMORY)
        return err_set(&h->why, ERR_NOMEM, "out of memory for '%.150s'", h->name);
    else if (!(h->answered && curl_status_may_pass(status(h))) && h->result != CURLE_OK && !curl_may_pass(h->result))
        fail(h, "%s", h->said[0] ? h->said : curl.easy_strerror(h->result));
    else
        wait_for_next(h);
    return h->why.code;
}

/* Until a byte is there (or, head, the answer): 1; 0: the end; negative: h->why. */
static int get(struct http *h, bool head)
{
    int rc = h->why.code;

    h->heard = log_seconds(); /* the time that the caller took is not the server's */
    while (rc == 0 && h->from == h->n) {
        if (h->at == h->end || (h->known && h->at == h->size))
            return 0;
        if (!h->added && start(h) < 0)
            return h->why.code;
        run(h, head);
        if (h->from < h->n || (head && h->answered && !h->why.code && is_object(status(h))))
            return 1;
        rc = judge(h);
        stop(h);
        if (rc == 1)
            return 0;
    }
    return h->why.code ? h->why.code : 1;
}

static int give_why(const struct http *h, struct err *e)
{
    if (e)
        *e = h->why;
    return h->why.code;
}

/* Forgets the object, and keeps the connection. */
static void forget(struct http *h)
{
    stop(h);
    curl.easy_reset(h->easy);
    curl.slist_free_all(h->headers);
    s3_free(h->s3);
    free(h->name);
    free(h->address);
    h->headers = NULL;
    h->s3 = NULL;
    h->name = h->address = NULL;
    h->state[0] = '\0';
    http_sum_free(h->sum);
    h->sum = NULL;
    h->dated = h->known = h->any = h->beyond = false;
    h->tries = 0;
    h->waited = 0;
    h->why.code = 0;
    h->size = UINT64_MAX;
}

int http_turn(struct http *h, const char *address, uint64_t offset, uint64_t n, struct err *e)
{
    forget(h);
    h->address = strdup(address);
    h->name = http_name(address);
    if (!h->address || !h->name)
        return err_set(e, ERR_NOMEM, "out of memory for an address");
    http_go(h, offset, n);
    TRY(http_check(address, e));
    if (s3_is_address(address))
        TRY(s3_find(&h->s3, address, e));
    TRY(set_up(h, e));
    return get(h, true) < 0 ? give_why(h, e) : 0;
}

int http_new(struct http **out, struct err *e)
{
    const char *given = getenv("QUERN_HTTP_TIMEOUT"), *missing = curl_load();
    struct http *h = *out = missing ? NULL : calloc(1, sizeof *h);

    if (missing)
        return err_set(e, ERR_UNSUPPORTED, "addresses need libcurl: %s", missing);
    if (h) {
        h->bytes = malloc(ROOM);
        h->easy = curl.easy_init();
        h->multi = curl.multi_init();
        h->timeout = given && strtod(given, NULL) > 0 ? strtod(given, NULL) : TIMEOUT;
    }
    if (h && h->bytes && h->easy && h->multi)
        return 0;
    http_close(h);
    *out = NULL;
    return err_set(e, ERR_NOMEM, "out of memory for an address");
}

int http_open(struct http **out, const char *address, uint64_t offset, uint64_t n, struct err *e)
{
    char *name = http_name(address);
    int rc = http_new(out, e);

    if (rc == ERR_UNSUPPORTED)
        err_wrap(e, "cannot read '%.150s'", name ? name : "");
    free(name);
    if (rc == 0 && (rc = http_turn(*out, address, offset, n, e)) < 0) {
        http_close(*out);
        *out = NULL;
    }
    return rc;
}

bool http_is_beyond(const struct http *h)
{
    return h->beyond;
}

void http_go(struct http *h, uint64_t offset, uint64_t n)
{
    if (h->added)
        stop(h);
    http_sum_free(h->sum);
    h->sum = NULL;
    h->from = h->n = 0;
    h->at = offset;
    h->end = n < UINT64_MAX - offset ? offset + n : UINT64_MAX;
}

/* With the last n bytes the sum has to hold. */
static int check_sum(struct http *h, const void *p, size_t n)
{
    if (!h->sum)
        return 0;
    http_sum_add(h->sum, p, n);
    if (h->at + n < h->size && n)
        return 0;
    if (!http_sum_holds(h->sum))
        fail(h, "what came does not have the checksum that the server states (%s)", http_sum_header(h->sum));
    http_sum_free(h->sum);
    h->sum = NULL;
    return h->why.code;
}

ssize_t http_read(struct http *h, void *p, size_t n, struct err *e)
{
    int rc = get(h, false);
    size_t k = h->n - h->from < n ? h->n - h->from : n;

    if (rc < 0 || check_sum(h, h->bytes + h->from, rc ? k : 0) < 0)
        return give_why(h, e);
    if (rc == 0)
        return 0;
    memcpy(p, h->bytes + h->from, k);
    h->from += k;
    h->at += k;
    if (h->from == h->n)
        h->from = h->n = 0;
    return (ssize_t)k;
}

uint64_t http_size(const struct http *h)
{
    return h->size == UINT64_MAX ? 0 : h->size;
}

const char *http_state(const struct http *h)
{
    return h->state;
}

void http_close(struct http *h)
{
    if (!h)
        return;
    if (h->multi) {
        stop(h);
        curl.multi_cleanup(h->multi);
    }
    if (h->easy)
        curl.easy_cleanup(h->easy);
    if (h->headers)
        curl.slist_free_all(h->headers);
    s3_free(h->s3);
    http_sum_free(h->sum);
    free(h->bytes);
    free(h->name);
    free(h->address);
    free(h);
}
#endif
