/* What a server says of a range, and the files of a user's settings for S3. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <stdio.h>
#include <unistd.h>

#include "base/http.h"
#include "base/s3.h"
#include "base/s3_settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void range(const char *text)
{
    uint64_t first, last, whole;

    if (!http_parse_range(text, &first, &last, &whole))
        return;
    if (first == UINT64_MAX ? last != UINT64_MAX || whole == UINT64_MAX : last < first || last >= whole)
        abort();
}

/* An address under the settings, if they make sense. */
static void find(const char *address)
{
    struct s3_object *o;
    struct err e;

    if (s3_find(&o, address, &e) < 0)
        return;
    if (strncmp(s3_url(o), "http", 4) != 0 || strpbrk(s3_url(o), " \n\r"))
        abort();
    s3_free(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    struct s3_settings s;
    char *text = malloc(size + 6);
    struct err e;

    if (file < 0) {
        file = memfd_create("settings", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        setenv("AWS_CONFIG_FILE", path, 1);
        setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
        setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    }
    if (!text || file < 0 || ftruncate(file, 0) < 0 || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    memcpy(text, "s3://", 5);
    if (size)
        memcpy(text + 5, data, size);
    text[size + 5] = '\0';
    range(text + 5);
    if (s3_settings_read(&s, &e) == 0 && (strlen(s.region) >= sizeof s.region || (s.keys.access[0] && !memchr(data, '[', size))))
        abort();
    find(text);
    find("s3://bucket/key");
    free(text);
    return 0;
}
