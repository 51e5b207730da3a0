#include "base/curl_api.h"

#if HAVE_CURL
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct curl_api curl;
static const char *missing;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    static char why[256];
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL), *found;

    if (!library) {
        snprintf(why, sizeof why, "%s", dlerror());
        missing = why;
        return;
    }
#define FIND(name)                                    \
    found = dlsym(library, "curl_" #name);            \
    memcpy(&curl.name, &found, sizeof found);         \
    missing = found ? missing : "libcurl.so.4 is too old: it lacks curl_" #name;
    CURL_CALLS(FIND)
    if (!missing && curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        missing = "libcurl cannot begin";
}

const char *curl_load(void)
{
    pthread_once(&once, load);
    return missing;
}

bool curl_may_pass(CURLcode c)
{
    static const CURLcode passing[] = {
        CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT,
        CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_SSL_CONNECT_ERROR};

    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (c == passing[i])
            return true;
    return false;
}

bool curl_status_may_pass(long status)
{
    return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

struct curl_slist *curl_headers(const char *p, size_t n)
{
    struct curl_slist *list = NULL, *more;

    for (size_t i = 0; i < n; i += strlen(p + i) + 1) {
        more = curl.slist_append(list, p + i);
        if (!more) {
            curl.slist_free_all(list);
            return NULL;
        }
        list = more;
    }
    return list;
}
#endif
