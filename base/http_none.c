/* Without libcurl. */
#include "base/http.h"

#include <stdlib.h>

#if !HAVE_CURL
int http_open(struct http **h, const char *address, uint64_t offset, uint64_t n, struct err *e)
{
    char *name = http_name(address);
    int rc = name ? err_set(e, ERR_UNSUPPORTED, "cannot read '%.150s': this quern was built without libcurl", name)
                  : err_set(e, ERR_NOMEM, "out of memory for an address");

    (void)offset;
    (void)n;
    *h = NULL;
    free(name);
    return rc;
}

int http_new(struct http **h, struct err *e)
{
    *h = NULL;
    return err_set(e, ERR_UNSUPPORTED, "this quern was built without libcurl");
}

int http_turn(struct http *h, const char *address, uint64_t offset, uint64_t n, struct err *e)
{
    return http_open(&h, address, offset, n, e);
}

bool http_is_beyond(const struct http *h)
{
    (void)h;
    return false;
}

void http_go(struct http *h, uint64_t offset, uint64_t n)
{
    (void)h;
    (void)offset;
    (void)n;
}

ssize_t http_read(struct http *h, void *p, size_t n, struct err *e)
{
    (void)h;
    (void)p;
    (void)n;
    return err_set(e, ERR_UNSUPPORTED, "this quern was built without libcurl");
}

uint64_t http_size(const struct http *h)
{
    (void)h;
    return 0;
}

const char *http_state(const struct http *h)
{
    (void)h;
    return "";
}

void http_close(struct http *h)
{
    (void)h;
}
#endif
