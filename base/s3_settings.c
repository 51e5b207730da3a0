/* Settings as AWS's tools read them (AWS SDKs and Tools Reference Guide: shared config and credentials files, IMDSv2, container
 * credentials). */
#include "base/s3_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/http_call.h"
#include "base/node.h"

enum { FILE_MAX = 1 << 20, ANSWER_MAX = 64 << 10, ROLE_MAX = 256 };

/* A variable that is set and not empty; else NULL. */
static const char *variable(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

static int too_long(const char *what, struct err *e)
{
    return err_set(e, ERR_ARG, "s3: %s is too long", what);
}

static int copy(char *to, size_t size, struct span s, const char *what, struct err *e)
{
    if (s.n >= size)
        return too_long(what, e);
    memcpy(to, s.p, s.n);
    to[s.n] = '\0';
    return 0;
}

/* ---- files ---- */

static struct span trimmed(struct span s)
{
    while (s.n && strchr(" \t\r", s.p[0]))
        s = (struct span){s.p + 1, s.n - 1};
    while (s.n && strchr(" \t\r", s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Whether a line, trimmed, begins the profile's section: [NAME], or [profile NAME] in a config file. */
static bool is_section(struct span line, const char *profile)
{
    struct span name = trimmed((struct span){line.p + 1, line.n - 1 - span_ends(line, "]")});

    if (span_is(name, profile))
        return true;
    return span_starts(name, "profile ") && span_is(trimmed((struct span){name.p + 8, name.n - 8}), profile);
}

/* The value of a setting in the profile's section; p NULL: it has none.  What is indented under another setting is a part of
 * that. */
static struct span find(struct span file, const char *profile, const char *name)
{
    struct span found = {NULL, 0};
    bool here = false, any = false;

    while (file.n) {
        const char *end = memchr(file.p, '\n', file.n);
        size_t n = end ? (size_t)(end - file.p) : file.n;
        struct span whole = {file.p, n}, line = trimmed(whole);
        const char *is = line.n ? memchr(line.p, '=', line.n) : NULL;

        file = (struct span){file.p + n + (end != NULL), file.n - n - (end != NULL)};
        if (!line.n || *line.p == '#' || *line.p == ';')
            continue;
        if (*line.p == '[') {
            here = is_section(line, profile);
            any = false;
        } else if (here && is && !(any && line.p != whole.p)) {
            any = true;
            if (span_is(trimmed((struct span){line.p, (size_t)(is - line.p)}), name))
                found = trimmed((struct span){is + 1, line.n - (size_t)(is + 1 - line.p)});
        }
    }
    return found;
}

/* Reads a file of settings, if it is there. */
static int read_file(const char *name, const char *below_home, struct buf *b, struct err *e)
{
    const char *given = variable(name), *home = getenv("HOME");
    char path[4096];

    b->max = FILE_MAX;
    if (!given && !home)
        return 0;
    if (snprintf(path, sizeof path, "%s%s%s", given ? given : home, given ? "" : "/.aws/", given ? "" : below_home) >=
        (int)sizeof path)
        return too_long(name, e);
    return access(path, F_OK) == 0 ? file_read_all(path, FILE_MAX, b, e) : 0;
}

/* The first that is set: of two variables, or a setting of the files. */
static int set(char *to, size_t size, const char *const *names, struct span in_files, const char *fallback, struct err *e)
{
    const char *v = variable(names[0]) ? variable(names[0]) : names[1] ? variable(names[1]) : NULL;

    return copy(to, size, v ? span_of(v) : in_files.p ? in_files : span_of(fallback), names[0], e);
}

static int keys_of(struct s3_keys *k, struct span access, struct span secret, struct span token, struct err *e)
{
    TRY(copy(k->access, sizeof k->access, access, "an access key", e));
    TRY(copy(k->secret, sizeof k->secret, secret, "a secret key", e));
    return copy(k->token, sizeof k->token, token.p ? token : span_of(""), "a session token", e);
}

static int read_profile(struct s3_settings *s, struct span config, struct span credentials, struct err *e)
{
    static const char *const others[] = {"role_arn", "sso_session", "sso_start_url", "credential_process", "login_session"};
    const char *profile = variable("AWS_PROFILE") ? variable("AWS_PROFILE") : "default";
    struct span file = find(credentials, profile, "aws_access_key_id").p ? credentials : config;
    struct span access = find(file, profile, "aws_access_key_id"), secret = find(file, profile, "aws_secret_access_key");

    TRY(set(s->region, sizeof s->region, (const char *const[]){"AWS_REGION", "AWS_DEFAULT_REGION"},
            find(config, profile, "region"), "us-east-1", e));
    TRY(set(s->endpoint, sizeof s->endpoint, (const char *const[]){"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"},
            find(config, profile, "endpoint_url"), "", e));
    if (variable("AWS_ACCESS_KEY_ID") && variable("AWS_SECRET_ACCESS_KEY"))
        return keys_of(&s->keys, span_of(variable("AWS_ACCESS_KEY_ID")), span_of(variable("AWS_SECRET_ACCESS_KEY")),
                       span_of(variable("AWS_SESSION_TOKEN")), e);
    if (access.p && secret.p)
        return keys_of(&s->keys, access, secret, find(file, profile, "aws_session_token"), e);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (find(config, profile, others[i]).p)
            return err_set(e, ERR_UNSUPPORTED, "s3: profile '%.100s' has '%s', which is not known here; the environment may "
                           "have keys instead (aws configure export-credentials --format env)", profile, others[i]);
    return 0;
}

int s3_settings_read(struct s3_settings *s, struct err *e)
{
    struct buf config = {0}, credentials = {0};
    int rc;

    memset(s, 0, sizeof *s);
    rc = read_file("AWS_CONFIG_FILE", "config", &config, e);
    if (rc == 0)
        rc = read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", &credentials, e);
    if (rc == 0)
        rc = read_profile(s, buf_span(&config), buf_span(&credentials), e);
    if (config.n)
        explicit_bzero(config.p, config.n);
    if (credentials.n)
        explicit_bzero(credentials.p, credentials.n);
    buf_free(&config);
    buf_free(&credentials);
    return rc;
}

/* ---- keys that are lent ---- */

/* Takes keys from the JSON that a container's or machine's service gives. */
static int take(struct s3_keys *k, struct span json, struct err *e)
{
    struct arena a = {0};
    struct node *n;
    const char *access = NULL, *secret = NULL, *token = NULL, *expires = NULL;
    struct tm tm = {0};
    int rc = node_parse_json(&a, json, &n, e);

    if (rc == 0) {
        access = node_str(n, "AccessKeyId");
        secret = node_str(n, "SecretAccessKey");
        token = node_str(n, "Token");
        expires = node_str(n, "Expiration");
        if (!access || !secret)
            rc = err_set(e, ERR_FORMAT, "it gives no keys");
    }
    if (rc == 0)
        rc = keys_of(k, span_of(access), span_of(secret), span_of(token), e);
    if (rc == 0 && expires && strptime(expires, "%Y-%m-%dT%H:%M:%S", &tm))
        k->expires = (int64_t)timegm(&tm);
    arena_free(&a);
    return rc;
}

/* One request to such a service.  1: an answer with status 200, in c->answer; 0: none. */
static int ask(struct http_call *c, const char *method, const char *url, struct err *e)
{
    int rc;

    c->method = method;
    c->url = url;
    c->answer.max = ANSWER_MAX;
    rc = http_call(c, e);
    return rc == ERR_NOMEM ? rc : rc == 0 && c->status == 200;
}

static int ask_container(struct s3_keys *k, const char *url, struct err *e)
{
    const char *token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"), *file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    struct http_call c = {.seconds = 2};
    struct buf header = {0}, word = {0};
    int rc = file ? file_read_all(file, ANSWER_MAX, &word, e) : 0;

    if (rc == 0 && (file || token)) {
        struct span s = file ? trimmed(buf_span(&word)) : span_of(token);
        while (s.n && s.p[s.n - 1] == '\n')
            s.n--;
        rc = buf_printf(&header, "Authorization: %.*s", (int)s.n, s.p) < 0 || buf_putc(&header, '\0') < 0 ? ERR_NOMEM : 0;
    }
    c.headers = buf_span(&header);
    if (rc == 0)
        rc = ask(&c, "GET", url, e);
    if (rc == 0)
        rc = err_set(e, ERR_IO, "it answers %ld", c.status);
    else if (rc == 1)
        rc = take(k, buf_span(&c.answer), e);
    buf_free(&header);
    buf_free(&word);
    buf_free(&c.answer);
    return rc < 0 ? err_wrap(e, "s3: keys of the container's service") : 0;
}

/* IMDSv2: a token, the name of the role, its keys.  A machine that has no such service has no keys. */
static int ask_machine(struct s3_keys *k, struct err *e)
{
    static const char lifetime[] = "X-aws-ec2-metadata-token-ttl-seconds: 21600";
    const char *at = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    struct http_call c = {.seconds = 1, .headers = {lifetime, sizeof lifetime}};
    char url[S3_NAME + ROLE_MAX], header[512];
    size_t n = strlen(at ? at : ""), n_header;
    int rc;

    at = at && n < S3_NAME - 64 ? at : "http://169.254.169.254";
    n = strlen(at) - (at[strlen(at) - 1] == '/');
    snprintf(url, sizeof url, "%.*s/latest/api/token", (int)n, at);
    rc = ask(&c, "PUT", url, e);
    if (rc == 1 && c.answer.n < sizeof header - 40) {
        n_header = (size_t)snprintf(header, sizeof header, "X-aws-ec2-metadata-token: %s", c.answer.p);
        c.headers = (struct span){header, n_header + 1};
        snprintf(url, sizeof url, "%.*s/latest/meta-data/iam/security-credentials/", (int)n, at);
        rc = ask(&c, "GET", url, e);
        if (rc == 1 && c.answer.n < ROLE_MAX) {
            snprintf(url + strlen(url), ROLE_MAX, "%.*s", (int)strcspn(c.answer.p, "\r\n"), c.answer.p);
            rc = ask(&c, "GET", url, e);
            if (rc == 1)
                rc = take(k, buf_span(&c.answer), e) < 0 ? err_wrap(e, "s3: keys of the machine's role") : 0;
        }
    }
    buf_free(&c.answer);
    return rc < 0 ? rc : 0;
}

int s3_keys_ask(struct s3_keys *k, struct err *e)
{
    const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), *off = variable("AWS_EC2_METADATA_DISABLED");
    const char *full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    char url[S3_NAME];

    memset(k, 0, sizeof *k);
    if (relative && strlen(relative) < sizeof url - 32) {
        snprintf(url, sizeof url, "http://169.254.170.2%s", relative);
        return ask_container(k, url, e);
    }
    if (full)
        return ask_container(k, full, e);
    return off && strcasecmp(off, "true") == 0 ? 0 : ask_machine(k, e);
}
