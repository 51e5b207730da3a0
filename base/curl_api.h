/* base/curl_api.h -- libcurl, opened at run time by the first address: programs that read none do not load its thirty libraries.
 *
 * Internal to base.  libcurl 7.85 or newer.
 */
#ifndef BASE_CURL_API_H
#define BASE_CURL_API_H

#if HAVE_CURL
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdbool.h>

#define CURL_CALLS(X)                                                                                                          \
    X(global_init) X(easy_init) X(easy_setopt) X(easy_getinfo) X(easy_pause) X(easy_header) X(easy_strerror) X(easy_perform)   \
    X(easy_reset) X(easy_cleanup) X(multi_init) X(multi_add_handle) X(multi_remove_handle) X(multi_perform) X(multi_poll)      \
    X(multi_info_read) X(multi_cleanup) X(slist_append) X(slist_free_all)
#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
extern struct curl_api { CURL_CALLS(CURL_MEMBER) } curl;

/* Opens it, once; NULL, or why there is none. */
const char *curl_load(void);
/* Whether the failure of a transfer can be another time's luck. */
bool curl_may_pass(CURLcode c);
/* Whether an answer with this status can be. */
bool curl_status_may_pass(long status);
/* The lines of b, a NUL behind each, as headers of a request.  NULL: out of memory. */
struct curl_slist *curl_headers(const char *p, size_t n);
#endif
#endif
