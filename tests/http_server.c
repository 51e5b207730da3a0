/* A web server for tests, on 127.0.0.1, with the faults that servers and networks have.
 *
 *     http_server DIR LOG     prints its port; each request is a line of LOG: method, path, range, the key that signed it
 *
 * GET /MODE/N/NAME gives the file NAME of DIR as MODE says:
 *   plain      whole or by range, with a strong ETag
 *   cut        N bytes a connection, which is then closed
 *   reset      as cut, and the connection is reset
 *   dated      as cut, with Last-Modified and no ETag
 *   bare       as cut, with neither
 *   norange    the first connection is cut after N bytes; ranges are not known
 *   stuck      N bytes a connection, always the first ones: ranges are not known
 *   lies       as cut; a range begins a byte later than the one asked for
 *   changes    as cut; each answer has another ETag
 *   grows      as cut; each answer tells another length
 *   busy       the first N requests of this path are answered 503
 *   later      the first N are answered 429 with Retry-After: 1
 *   never      429 with Retry-After: 3600
 *   silent     no answer
 *   stalls     N bytes, and then nothing more
 *   chunked    no length
 *   redirect   N redirects, the last one to /plain/0/NAME
 *   escape     a redirect to a file of the machine
 *   status     the status N and no body
 *   garbage    no HTTP
 *   signed     as cut, to a request with a signature for S3; another is answered 403, in XML
 *   slow       a kilobyte each N microseconds
 *   store      a store like S3: PUT, uploads in parts, and HEAD; files of DIR are its objects, the first N requests of each
 *              method and path are answered 503
 *   lossy      the same, and the first request of each method and path is done, but gets no answer
 * Of the lines of NAME.head each answer with bytes of NAME has more headers, and of those of NAME.first each redirect.
 * PUT /latest/api/token and GET /latest/meta-data/iam/security-credentials/ are answered as by a machine whose role has the keys
 * LENT and lent.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 8192, PATHS = 256 };

static const char *dir;
static FILE *log_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { char path[520]; int n; } asked[PATHS];

struct request {
    int fd, before; /* before: requests of this path so far */
    char head[HEAD], mode[32], name[200], method[8], query[200];
    const char *body; /* what of it was read with the head, n_body bytes */
    size_t n_body;
    long n;
    bool ranged;
    long long from, to, size; /* bytes asked for: [from, to) */
};

/* Counts a request and notes it, with the key by which it is signed. */
static int count(const char *method, const char *path, const char *range, const char *key)
{
    char asked_for[520];
    int n = 0;

    snprintf(asked_for, sizeof asked_for, "%s%s", method, path);

    pthread_mutex_lock(&lock);
    fprintf(log_file, "%s %s %s%s%.*s\n", method, path, range, key ? " by " : "",
            key ? (int)strcspn(key, "/") : 0, key ? key : "");
    fflush(log_file);
    for (int i = 0; i < PATHS; i++)
        if (!asked[i].path[0] || strcmp(asked[i].path, asked_for) == 0) {
            snprintf(asked[i].path, sizeof asked[i].path, "%s", asked_for);
            n = asked[i].n++;
            break;
        }
    pthread_mutex_unlock(&lock);
    return n;
}

static void put(int fd, const char *p, size_t n)
{
    for (ssize_t k; n; p += k, n -= (size_t)k) {
        k = send(fd, p, n, MSG_NOSIGNAL);
        if (k <= 0)
            return;
    }
}

static bool is(const struct request *q, const char *mode)
{
    return strcmp(q->mode, mode) == 0;
}

/* A short answer. */
static void put_text(int fd, long status, const char *more, const char *body)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "HTTP/1.1 %ld S\r\nContent-Length: %zu\r\n%s\r\n%s", status, strlen(body), more, body);

    put(fd, text, (size_t)n);
}

/* The head of an answer with no body. */
static void put_status(const struct request *q, long status, const char *more)
{
    put_text(q->fd, status, more, "");
}

/* Appends the lines of a file beside NAME, if it is there, to a head of n bytes. */
static int more_lines(const struct request *q, const char *ending, char *head, int n, size_t size)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s%s", dir, q->name, ending);
    f = fopen(path, "r");
    for (int c; f && (c = getc(f)) != EOF && (size_t)n + 3 < size; head[n++] = (char)c)
        if (c == '\n')
            head[n++] = '\r';
    if (f)
        fclose(f);
    head[n] = '\0';
    return n;
}

static bool knows_ranges(const struct request *q)
{
    return !is(q, "norange") && !is(q, "stuck");
}

/* The head of an answer that has the bytes asked for, and what tells the file's state. */
static void put_head(const struct request *q)
{
    char head[1024];
    bool partial = q->ranged && knows_ranges(q);
    long long grown = q->size + (is(q, "grows") ? q->before : 0);
    int n = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nAccept-Ranges: bytes\r\n", partial ? "206 Partial Content" : "200 OK");

    if (partial)
        n += snprintf(head + n, sizeof head - (size_t)n, "Content-Range: bytes %lld-%lld/%lld\r\n",
                      q->from + is(q, "lies"), q->to - 1 + is(q, "lies"), grown + is(q, "lies"));
    if (is(q, "chunked"))
        n += snprintf(head + n, sizeof head - (size_t)n, "Transfer-Encoding: chunked\r\n");
    else
        n += snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %lld\r\n",
                      q->to - q->from + (partial ? 0 : grown - q->size));
    if (is(q, "dated"))
        n += snprintf(head + n, sizeof head - (size_t)n, "Last-Modified: Mon, 02 Jan 2023 03:04:05 GMT\r\n");
    else if (!is(q, "bare"))
        n += snprintf(head + n, sizeof head - (size_t)n, "ETag: \"%lld-%d\"\r\n", q->size, is(q, "changes") ? q->before : 0);
    n = more_lines(q, ".head", head, n, sizeof head);
    n += snprintf(head + n, sizeof head - (size_t)n, "\r\n");
    put(q->fd, head, (size_t)n);
}

/* The bytes asked for, or the first N of them; false: the connection is to end. */
static bool put_bytes(const struct request *q, FILE *f)
{
    static const char *const whole[] = {"plain", "busy", "later", "chunked", "slow", "store", "lossy"};
    long long left = q->to - q->from, most = q->n;
    char bytes[4096], size[32];

    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (is(q, whole[i]) || (is(q, "norange") && q->before))
            most = left;
    fseeko(f, q->from, SEEK_SET);
    for (long long n = left < most ? left : most; n > 0;) {
        size_t k = fread(bytes, 1, n < (long long)sizeof bytes ? (size_t)n : sizeof bytes, f);
        if (k == 0)
            return false;
        if (is(q, "chunked"))
            put(q->fd, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", k));
        put(q->fd, bytes, k);
        if (is(q, "slow"))
            usleep((unsigned)(q->n * 4));
        if (is(q, "chunked"))
            put(q->fd, "\r\n", 2);
        n -= (long long)k;
    }
    if (is(q, "chunked"))
        put(q->fd, "0\r\n\r\n", 5);
    if (is(q, "stalls") && most < left)
        pause();
    if (is(q, "reset"))
        setsockopt(q->fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    return most >= left;
}

/* Gives the file by the request's range. */
static bool give(struct request *q)
{
    char path[512], more[64];
    FILE *f;
    struct stat st;
    const char *range = strcasestr(q->head, "\r\nRange: bytes=");
    bool on = true;

    snprintf(path, sizeof path, "%s/%s", dir, q->name);
    f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) < 0) {
        put_status(q, 404, "");
        return true;
    }
    q->size = q->to = st.st_size;
    q->ranged = range != NULL;
    if (range && knows_ranges(q)) {
        long long last = -1;
        sscanf(range, "\r\n%*[Rr]ange: bytes=%lld-%lld", &q->from, &last);
        q->to = last >= 0 && last < q->size ? last + 1 : q->size;
    }
    if (q->ranged && q->from >= q->size) {
        snprintf(more, sizeof more, "Content-Range: bytes */%lld\r\n", q->size);
        put_status(q, 416, more);
    } else {
        put_head(q);
        on = put_bytes(q, f);
    }
    fclose(f);
    return on;
}

/* ---- a store ---- */

/* The body of a request into a file; false: it did not come. */
static bool take_body(const struct request *q, const char *path)
{
    const char *length = strcasestr(q->head, "\r\nContent-Length:");
    long long left = length ? strtoll(length + 17, NULL, 10) : 0;
    size_t n = q->n_body < (size_t)left ? q->n_body : (size_t)left;
    char bytes[65536];
    FILE *f = fopen(path, "wb");

    if (strcasestr(q->head, "\r\nExpect: 100"))
        put(q->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    if (f)
        fwrite(q->body, 1, n, f);
    for (left -= (long long)n; f && left > 0;) {
        ssize_t k = recv(q->fd, bytes, left < (long long)sizeof bytes ? (size_t)left : sizeof bytes, 0);
        if (k <= 0)
            break;
        fwrite(bytes, 1, (size_t)k, f);
        left -= k;
    }
    return f && fclose(f) == 0 && left == 0;
}

/* Keeps the mark of a request that begins an object, or reads the one that NAME has. */
static void mark_of(const struct request *q, const char *name, bool keep, char mark[64])
{
    const char *at = strcasestr(q->head, "\r\nx-amz-meta-quern-upload: ");
    char path[600];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.mark", dir, name);
    f = fopen(path, keep ? "w" : "r");
    mark[0] = '\0';
    if (f && keep && at)
        fprintf(f, "%.16s", at + 27);
    else if (f && !keep && !fgets(mark, 64, f))
        mark[0] = '\0';
    if (f)
        fclose(f);
}

/* Makes the object of its parts, up to the first that is not there; false: there is none. */
static bool join_parts(const struct request *q)
{
    char path[600], bytes[65536];
    FILE *out = NULL, *in;
    size_t n;

    for (int i = 1; ; i++) {
        snprintf(path, sizeof path, "%s/%s.part%d", dir, q->name, i);
        in = fopen(path, "rb");
        if (!in)
            break;
        if (!out) {
            char whole[600];
            snprintf(whole, sizeof whole, "%s/%s", dir, q->name);
            out = fopen(whole, "wb");
        }
        while (out && (n = fread(bytes, 1, sizeof bytes, in)) > 0)
            fwrite(bytes, 1, n, out);
        fclose(in);
        unlink(path);
    }
    return out && fclose(out) == 0;
}

/* False: the connection is to end. */
static bool answer_store(struct request *q)
{
    bool lost = is(q, "lossy") && q->before == 0, done = true;
    char path[600], more[200] = "", mark[64];
    const char *text = "";
    long status = 200, part = strncmp(q->query, "partNumber=", 11) == 0 ? strtol(q->query + 11, NULL, 10) : 0;

    snprintf(path, sizeof path, part ? "%s/%s.part%ld" : "%s/%s", dir, q->name, part);
    if (strcmp(q->method, "PUT") == 0) {
        if (is(q, "store") && q->before < q->n)
            snprintf(path, sizeof path, "%s/refused", dir);
        done = take_body(q, path);
        snprintf(more, sizeof more, "ETag: \"tag-%ld\"\r\n", part);
    } else if (strcmp(q->method, "POST") == 0 && strncmp(q->query, "uploads", 7) == 0) {
        mark_of(q, q->name, true, mark);
        text = "<InitiateMultipartUploadResult><UploadId>an/id+1</UploadId></InitiateMultipartUploadResult>";
    } else if (strcmp(q->method, "POST") == 0) {
        snprintf(path, sizeof path, "%s/list", dir);
        done = take_body(q, path);
        if (is(q, "store") && q->before < q->n)
            ;
        else if (join_parts(q))
            text = "<CompleteMultipartUploadResult/>";
        else {
            status = 404;
            text = "<Error><Code>NoSuchUpload</Code></Error>";
        }
    } else if (strcmp(q->method, "HEAD") == 0) {
        mark_of(q, q->name, false, mark);
        snprintf(more, sizeof more, "x-amz-meta-quern-upload: %s\r\n", mark);
    }
    if (!done || lost)
        return false;
    if (is(q, "store") && q->before < q->n)
        put_text(q->fd, 503, "", "<Error><Code>SlowDown</Code></Error>");
    else
        put_text(q->fd, status, more, text);
    return true;
}

/* One request; false: the connection is to end. */
static bool answer(struct request *q)
{
    char more[400];

    if (is(q, "silent"))
        pause();
    if (strcmp(q->method, "GET") != 0)
        return answer_store(q);
    if (is(q, "garbage"))
        put(q->fd, "\x01\x02 no HTTP\r\n\r\n", 14);
    else if (is(q, "status"))
        put_status(q, q->n, "");
    else if (is(q, "never"))
        put_status(q, 429, "Retry-After: 3600\r\n");
    else if ((is(q, "busy") || is(q, "later")) && q->before < q->n)
        put_status(q, is(q, "busy") ? 503 : 429, is(q, "busy") ? "" : "Retry-After: 1\r\n");
    else if (is(q, "signed") && !strcasestr(q->head, "\r\nAuthorization: AWS4-HMAC-SHA256 Credential="))
        put_text(q->fd, 403, "", "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code><Message>No</Message></Error>");
    else if (is(q, "escape"))
        put_status(q, 302, "Location: file:///etc/passwd\r\n");
    else if (is(q, "redirect")) {
        more_lines(q, ".first", more, snprintf(more, sizeof more, "Location: /%s/%ld/%s\r\n", q->n > 1 ? "redirect" : "plain",
                                               q->n - 1, q->name), sizeof more);
        put_status(q, 302, more);
    } else {
        return give(q);
    }
    return !is(q, "garbage");
}

/* What a machine says of its role; false: it was asked for something else. */
static bool answer_machine(int fd, const char *head)
{
    static const char keys[] = "{\"Code\":\"Success\",\"AccessKeyId\":\"LENT\",\"SecretAccessKey\":\"lent\",\"Token\":\"T/+=\","
                               "\"Expiration\":\"2099-01-01T00:00:00Z\"}";
    bool known = strcasestr(head, "\r\nX-aws-ec2-metadata-token: WORD\r\n") != NULL;

    if (strncmp(head, "PUT /latest/api/token ", 22) == 0)
        put_text(fd, 200, "", "WORD");
    else if (strncmp(head, "GET /latest/meta-data/iam/security-credentials/ ", 48) == 0)
        put_text(fd, known ? 200 : 401, "", known ? "role" : "");
    else if (strncmp(head, "GET /latest/meta-data/iam/security-credentials/role ", 52) == 0)
        put_text(fd, known ? 200 : 401, "", known ? keys : "");
    else
        return false;
    return true;
}

static void *serve(void *arg)
{
    struct request *q = malloc(sizeof *q);
    int fd = (int)(intptr_t)arg;
    bool on = q != NULL;

    while (on) {
        char path[256] = "", range[64] = "-", whole[500];
        const char *r;
        size_t n = 0;

        *q = (struct request){.fd = fd};
        while (n < HEAD - 1 && !strstr(q->head, "\r\n\r\n")) {
            ssize_t k = recv(fd, q->head + n, HEAD - 1 - n, 0);
            if (k <= 0)
                break;
            n += (size_t)k;
        }
        r = strcasestr(q->head, "\r\nRange: ");
        if (r)
            sscanf(r + 9, "%63[^\r]", range);
        if (answer_machine(fd, q->head))
            continue;
        on = strstr(q->head, "\r\n\r\n") && sscanf(q->head, "%7s %200[^ ?]?%199[^ ]", q->method, path, q->query) >= 2 &&
             sscanf(path, "/%31[^/]/%ld/%199s", q->mode, &q->n, q->name) == 3 && !strstr(q->name, "..");
        if (on) {
            const char *key = strcasestr(q->head, "Credential=");
            snprintf(whole, sizeof whole, "%s%s%s", path, *q->query ? "?" : "", q->query);
            q->before = count(q->method, whole, range, key ? key + 11 : NULL);
            q->body = strstr(q->head, "\r\n\r\n") + 4;
            q->n_body = n - (size_t)(q->body - q->head);
            on = answer(q);
        }
    }
    close(fd);
    free(q);
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    dir = argc == 3 ? argv[1] : NULL;
    log_file = dir ? fopen(argv[2], "a") : NULL;
    if (!log_file || fd < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &size) < 0) {
        perror("http_server DIR LOG");
        return 2;
    }
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    for (;;) {
        int c = accept(fd, NULL, NULL);
        pthread_t t;
        if (c >= 0 && pthread_create(&t, NULL, serve, (void *)(intptr_t)c) == 0)
            pthread_detach(t);
    }
}
