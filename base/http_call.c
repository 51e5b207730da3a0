#include "base/http_call.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/curl_api.h"
#include "base/version.h"

#if HAVE_CURL
/* The body as far as it has been sent. */
struct sending {
    struct span left;
};

static size_t on_wanted(char *to, size_t one, size_t n, void *arg)
{
    struct sending *s = arg;
    size_t k = s->left.n < one * n ? s->left.n : one * n;

    if (k)
        memcpy(to, s->left.p, k);
    s->left = (struct span){s->left.p + k, s->left.n - k};
    return k;
}

static size_t on_bytes(char *p, size_t one, size_t n, void *arg)
{
    struct http_call *c = arg;

    return buf_put(&c->answer, p, one * n) < 0 ? 0 : one * n;
}

static void set_up(CURL *easy, struct http_call *c, struct sending *s, const struct curl_slist *headers, char *said)
{
    struct { CURLoption option; long value; } const numbers[] = {
        {CURLOPT_NOSIGNAL, 1}, {CURLOPT_PATH_AS_IS, 1}, {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
        {CURLOPT_CONNECTTIMEOUT, c->seconds},
        {CURLOPT_LOW_SPEED_LIMIT, 1}, {CURLOPT_LOW_SPEED_TIME, c->seconds}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        curl.easy_setopt(easy, numbers[i].option, numbers[i].value);
    curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(easy, CURLOPT_URL, c->url);
    curl.easy_setopt(easy, CURLOPT_USERAGENT, "quern/" QUERN_VERSION);
    curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, said);
    curl.easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl.easy_setopt(easy, CURLOPT_WRITEDATA, c);
    if (strcmp(c->method, "PUT") == 0 || strcmp(c->method, "POST") == 0) {
        curl.easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl.easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)c->body.n);
        curl.easy_setopt(easy, CURLOPT_READFUNCTION, on_wanted);
        curl.easy_setopt(easy, CURLOPT_READDATA, s);
    }
    if (strcmp(c->method, "HEAD") == 0)
        curl.easy_setopt(easy, CURLOPT_NOBODY, 1L);
    curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, c->method);
}

static int judge(CURL *easy, struct http_call *c, CURLcode rc, const char *said, struct err *e)
{
    curl_off_t after = 0;
    struct curl_header *h;

    if (rc != CURLE_OK) {
        c->may_pass = curl_may_pass(rc);
        return rc == CURLE_OUT_OF_MEMORY || c->answer.failed ? err_set(e, ERR_NOMEM, "out of memory for an answer")
               : rc == CURLE_WRITE_ERROR ? err_set(e, ERR_LIMIT, "the answer is too long")
                                         : err_set(e, ERR_IO, "%s", said[0] ? said : curl.easy_strerror(rc));
    }
    if (buf_putc(&c->answer, '\0') < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an answer");
    c->answer.n--;
    curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &c->status);
    curl.easy_getinfo(easy, CURLINFO_RETRY_AFTER, &after);
    c->after = (long)after;
    c->may_pass = curl_status_may_pass(c->status);
    if (c->wanted && curl.easy_header(easy, c->wanted, 0, CURLH_HEADER, -1, &h) == CURLHE_OK &&
        strlen(h->value) < sizeof c->header)
        snprintf(c->header, sizeof c->header, "%s", h->value);
    return 0;
}

int http_call(struct http_call *c, struct err *e)
{
    const char *missing = curl_load();
    char said[CURL_ERROR_SIZE] = "";
    struct sending s = {c->body};
    struct curl_slist *headers;
    CURL *easy;
    int rc;

    c->status = c->after = 0;
    c->header[0] = '\0';
    c->may_pass = false;
    buf_clear(&c->answer);
    if (missing)
        return err_set(e, ERR_UNSUPPORTED, "addresses need libcurl: %s", missing);
    headers = curl_headers(c->headers.p, c->headers.n);
    easy = headers || !c->headers.n ? curl.easy_init() : NULL;
    if (easy) {
        set_up(easy, c, &s, headers, said);
        rc = judge(easy, c, curl.easy_perform(easy), said, e);
        curl.easy_cleanup(easy);
    } else {
        rc = err_set(e, ERR_NOMEM, "out of memory for a request");
    }
    curl.slist_free_all(headers);
    return rc;
}
#else

int http_call(struct http_call *c, struct err *e)
{
    (void)c;
    return err_set(e, ERR_UNSUPPORTED, "this quern was built without libcurl");
}
#endif
