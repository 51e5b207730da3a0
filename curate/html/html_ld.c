#include "curate/html/html_ld.h"

#include "base/ascii.h"
#include "curate/html/html_json.h"
#include "curate/text/html_entity.h"

/* What an object is, by its @type. */
enum ld_type { LD_OTHER, LD_WRITING, LD_THING, LD_QUESTION, LD_ANSWER, LD_STEP, LD_CRITIQUE, LD_PAGE };

/* Types by what their names end with, the first that fits. */
static const struct {
    const char *end;
    enum ld_type type;
} types[] = {
    {"Review", LD_CRITIQUE}, {"JobPosting", LD_THING}, {"Posting", LD_WRITING}, {"Article", LD_WRITING},
    {"Report", LD_WRITING}, {"CreativeWork", LD_WRITING}, {"Product", LD_THING}, {"ProductGroup", LD_THING},
    {"ProductModel", LD_THING}, {"Vehicle", LD_THING}, {"Book", LD_THING}, {"Application", LD_THING},
    {"VideoGame", LD_THING}, {"Course", LD_THING}, {"Event", LD_THING}, {"Recipe", LD_THING}, {"Movie", LD_THING},
    {"Service", LD_THING}, {"Question", LD_QUESTION}, {"Answer", LD_ANSWER}, {"Comment", LD_ANSWER},
    {"HowToStep", LD_STEP}, {"HowToSection", LD_STEP}, {"HowToDirection", LD_STEP}, {"Page", LD_PAGE},
};

enum ld_key { KEY_OTHER, KEY_TYPE, KEY_BODY, KEY_TEXT, KEY_DESCRIPTION, KEY_REVIEW_BODY, KEY_STEPS, KEY_INGREDIENTS };

static const struct {
    const char *name;
    enum ld_key key;
} keys[] = {
    {"\"@type\"", KEY_TYPE}, {"\"articleBody\"", KEY_BODY}, {"\"text\"", KEY_TEXT}, {"\"description\"", KEY_DESCRIPTION},
    {"\"reviewBody\"", KEY_REVIEW_BODY}, {"\"recipeInstructions\"", KEY_STEPS},
    {"\"recipeIngredient\"", KEY_INGREDIENTS},
};

/* An object or array that is being read. */
struct frame {
    bool array;
    enum ld_type type;
    enum ld_key key; /* of the value that comes; of an array the one that it stands under */
    int first;       /* text that came first in it */
};

struct ld_reader {
    struct html_ld *l;
    struct frame frame[LD_DEPTH];
    int depth;
    bool full;
    uint8_t owner[LD_TEXTS], key[LD_TEXTS]; /* of texts whose object has not ended: its depth, and the key */
};

static enum ld_type type_of(struct span s)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct span end = span_of(types[i].end);
        if (s.n >= end.n && memcmp(s.p + s.n - end.n, end.p, end.n) == 0)
            return types[i].type;
    }
    return LD_OTHER;
}

/* The role of a text; LD_ROLES: none. */
static enum ld_role role_of(enum ld_type type, enum ld_key key)
{
    switch (key) {
    case KEY_BODY:
        return LD_BODY;
    case KEY_STEPS:
    case KEY_INGREDIENTS:
        return type == LD_THING ? LD_BODY : LD_ROLES;
    case KEY_TEXT:
        return type == LD_WRITING || type == LD_QUESTION || type == LD_STEP ? LD_BODY : type == LD_ANSWER ? LD_REPLY : LD_ROLES;
    case KEY_REVIEW_BODY:
        return LD_REVIEW;
    case KEY_DESCRIPTION:
        return type == LD_THING ? LD_DESCRIPTION : type == LD_WRITING || type == LD_PAGE ? LD_TEASER
               : type == LD_CRITIQUE ? LD_REVIEW : LD_ROLES;
    default:
        return LD_ROLES;
    }
}

/* Undoes references that stand from byte `from` on. */
static int decode_from(struct html_ld *l, size_t from)
{
    struct buf plain = {0};
    int rc = 0;

    if (!memchr(l->bytes.p + from, '&', l->bytes.n - from))
        return 0;
    rc = html_decode((struct span){l->bytes.p + from, l->bytes.n - from}, false, &plain);
    l->bytes.n = from;
    if (rc == 0)
        rc = buf_put_span(&l->bytes, buf_span(&plain));
    buf_free(&plain);
    return rc;
}

/* Whether a text may follow those that are there. */
static bool has_room(struct ld_reader *r, size_t n)
{
    bool room = r->l->n_texts < LD_TEXTS && r->l->bytes.n + n <= LD_BYTES;

    r->l->faults += !room && !r->full;
    r->full = r->full || !room;
    return room;
}

static int end_text(struct html_ld *l, enum ld_role role, size_t from)
{
    TRY(decode_from(l, from));
    l->text[l->n_texts++] = (struct ld_text){role, (uint32_t)from, (uint32_t)(l->bytes.n - from)};
    return 0;
}

/* The string at p, which ends before `behind`, as a text of the object at depth `owner`. */
static int add_text(struct ld_reader *r, const char *p, const char *behind, int owner, enum ld_key key)
{
    struct html_ld *l = r->l;
    size_t from = l->bytes.n;
    int rc = 0;

    if (!has_room(r, (size_t)(behind - p)))
        return 0;
    html_json_string(p, behind, true, &l->bytes, &rc);
    r->owner[l->n_texts] = (uint8_t)owner;
    r->key[l->n_texts] = (uint8_t)key;
    return rc < 0 ? rc : end_text(l, LD_ROLES, from);
}

/* The object at the depth has ended: its texts have their roles. */
static void end_object(struct ld_reader *r)
{
    const struct frame *f = &r->frame[r->depth];

    for (int i = f->first; i < r->l->n_texts; i++)
        if (r->owner[i] == r->depth)
            r->l->text[i].role = role_of(f->type, r->key[i]);
}

/* Takes the string at p, which is no key. */
static int take_string(struct ld_reader *r, const char *p, const char *behind)
{
    struct frame *f = &r->frame[r->depth];
    int owner = f->array ? r->depth - 1 : r->depth;

    if (r->depth == 0 || owner == 0)
        return 0;
    if (f->key == KEY_TYPE) {
        enum ld_type type = type_of((struct span){p + 1, (size_t)(behind - p) - 2});
        r->frame[owner].type = r->frame[owner].type ? r->frame[owner].type : type;
    } else if (f->key != KEY_OTHER) {
        TRY(add_text(r, p, behind, owner, f->key));
    }
    return 0;
}

static enum ld_key key_of(struct span s)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (span_is(s, keys[i].name))
            return keys[i].key;
    return KEY_OTHER;
}

/* Reads a script.  1: it is whole, 0: not. */
static int read_script(struct ld_reader *r, struct span s)
{
    const char *p = s.p, *end = s.p + s.n;

    r->depth = 0;
    r->frame[0] = (struct frame){.array = true};
    while (p < end) {
        struct frame *f = &r->frame[r->depth];
        if (*p == '{' || *p == '[') {
            bool array = *p++ == '[';
            if (r->depth + 1 == LD_DEPTH)
                return 0;
            f[1] = (struct frame){.array = array, .key = array ? f->key : KEY_OTHER, .first = r->l->n_texts};
            r->depth++;
        } else if (*p == '}' || *p == ']') {
            if (r->depth == 0 || f->array != (*p++ == ']'))
                return 0;
            if (!f->array)
                end_object(r);
            r->depth--;
        } else if (*p == '"') {
            const char *behind = html_json_behind_string(p, end), *next = html_json_behind_blanks(behind, end);
            if (behind == end && (behind == p + 1 || behind[-1] != '"'))
                return 0;
            if (!f->array && memchr(behind, ':', (size_t)(next - behind)))
                f->key = key_of((struct span){p, (size_t)(behind - p)});
            else
                TRY(take_string(r, p, behind));
            p = next;
        } else {
            p++;
        }
    }
    return r->depth == 0;
}

static int read_json(struct ld_reader *r, struct span s)
{
    struct html_ld *l = r->l;
    int had = l->n_texts, n = had, rc = read_script(r, s);

    l->faults += rc == 0;
    for (int i = had; rc == 1 && i < l->n_texts; i++)
        if (l->text[i].role != LD_ROLES && l->text[i].n)
            l->text[n++] = l->text[i];
    l->n_texts = n;
    return rc < 0 ? rc : 0;
}

static int read_description(struct ld_reader *r, const struct html_tree *t, uint32_t i)
{
    struct html_ld *l = r->l;
    struct span raw = html_attr_raw(t, i, ATTR_content, NULL);
    struct span name = html_attr_raw(t, i, ATTR_name, NULL), property = html_attr_raw(t, i, ATTR_property, NULL);
    size_t from = l->bytes.n;

    if ((!span_is(name, "description") && !span_is(property, "og:description")) || !raw.n || !has_room(r, raw.n))
        return 0;
    TRY(buf_put_span(&l->bytes, raw));
    return end_text(l, LD_TEASER, from);
}

int html_ld_read(struct html_ld *l, const struct html_tree *t)
{
    struct ld_reader r = {.l = l};

    l->n_texts = 0;
    l->faults = 0;
    buf_clear(&l->bytes);
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct html_node *n = &t->node[i];
        if (n->tag == HTML_meta) {
            TRY(read_description(&r, t, i));
        } else if (n->tag == HTML_script && n->end > i + 1) {
            struct span type = html_attr_raw(t, i, ATTR_type, NULL);
            if (type.n && memmem(type.p, type.n, "ld+json", 7))
                TRY(read_json(&r, html_text(t, i + 1)));
        }
    }
    return 0;
}

void html_ld_free(struct html_ld *l)
{
    buf_free(&l->bytes);
    *l = (struct html_ld){.n_texts = 0};
}
