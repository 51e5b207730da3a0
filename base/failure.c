#include "base/failure.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/node.h"

static const char key[] = "quern_failed";

int failure_put(struct buf *b, const char *tool, const char *reason)
{
    TRY(buf_putc(b, '{'));
    TRY(json_put_key(b, key));
    TRY(buf_putc(b, '{'));
    TRY(json_put_key(b, "tool"));
    TRY(json_put_name(b, tool));
    TRY(json_put_key(b, "reason"));
    TRY(json_put_name(b, reason));
    return buf_puts(b, "}}\n");
}

int failure_find(struct span line, struct err *e)
{
    static const char start[] = "{\"quern_failed\":{";
    const struct node *what;
    struct arena a = {0};
    struct node *n;
    int rc = 0;

    if (line.n < sizeof start - 1 || memcmp(line.p, start, sizeof start - 1) != 0)
        return 0;
    if (node_parse_json(&a, line, &n, NULL) == 0 && n->type == NODE_MAP && n->count == 1) {
        what = node_get(n, key);
        if (what && what->type == NODE_MAP && what->count == 2 && node_str(what, "tool") && node_str(what, "reason"))
            rc = err_set(e, ERR_IO, "%s, which writes this input, failed: %s", node_str(what, "tool"),
                         node_str(what, "reason"));
    }
    arena_free(&a);
    return rc;
}

void failure_end_with(struct span line, bool in_line)
{
    struct stat st;

    if (fstat(STDOUT_FILENO, &st) < 0 || !S_ISFIFO(st.st_mode))
        return;
    if (in_line)
        fd_put(STDOUT_FILENO, "\n", 1);
    fd_put(STDOUT_FILENO, line.p, line.n);
}

void failure_end(const char *tool, const char *reason, bool in_line)
{
    static const char short_of_memory[] = "{\"quern_failed\":{\"tool\":\"quern\",\"reason\":\"out of memory\"}}\n";
    struct buf b = {0};

    if (failure_put(&b, tool, reason) == 0)
        failure_end_with(buf_span(&b), in_line);
    else
        failure_end_with((struct span){short_of_memory, sizeof short_of_memory - 1}, in_line);
    buf_free(&b);
}
