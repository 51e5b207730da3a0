/* Plots of the report: plain SVG, coloured by the page's classes. */
#include <math.h>
#include <stdlib.h>

#include "curate/report/report_page.h"

enum { WIDTH = 340, HEIGHT = 130, LEFT = 46, RIGHT = 10, TOP = 16, BOTTOM = 20, BINS = 64 };

struct axis {
    bool log;
    double low, high, step; /* of bins; log: in decades */
    int bins;
    uint64_t count[BINS];
};

double plot_step(double x)
{
    double p = pow(10, floor(log10(x)));

    return x <= p ? p : x <= 2 * p ? 2 * p : x <= 5 * p ? 5 * p : 10 * p;
}

/* Numbers beyond 2^64 lie at the end of an axis. */
static double within(double x)
{
    return fmax(-0x1p64, fmin(0x1p64, x));
}

static double place(const struct axis *a, double x)
{
    double t = a->log ? log10(x) : x;

    t = (t - a->low) / (a->high - a->low);
    return LEFT + (WIDTH - LEFT - RIGHT) * (t < 0 ? 0 : t > 1 ? 1 : t);
}

/* From the hundredth to the last but the hundredth of the values, and the thresholds: what lies
 * beyond is counted in the outer bins. */
static void choose_axis(struct axis *a, const struct sketch_point *p, size_t n, const struct sketch *value,
                        const struct sketch *threshold)
{
    double low = sketch_quantile(p, n, .01), high = sketch_quantile(p, n, .99);

    if (threshold->n) {
        low = threshold->min < low ? threshold->min : low;
        high = threshold->max > high ? threshold->max : high;
    }
    if (high <= low) {
        low = value->min;
        high = value->max;
    }
    low = within(low);
    high = within(high);
    if (high <= low) /* both beyond */
        high = low + 1 + fabs(low) / 1024;
    a->log = low > 0 && high / low > 200;
    if (a->log) {
        low = log10(low);
        high = log10(high);
        a->step = fmax(.1, plot_step((high - low) / 40));
    } else {
        a->step = plot_step((high - low) / 40);
        if (!value->broken && a->step < 1)
            a->step = 1;
    }
    a->low = floor(low / a->step + 1e-9) * a->step;
    if (threshold->n && threshold->min == threshold->max && fabs(threshold->min) < 0x1p64 &&
        !(a->log && threshold->min <= 0)) {
        double t = a->log ? log10(threshold->min) : threshold->min; /* between two bins */
        a->low = t - ceil((t - low) / a->step - 1e-9) * a->step;
    }
    a->bins = (int)fmin(floor((high - a->low) / a->step - 1e-9) + 1, BINS);
    if (a->bins < 1)
        a->bins = 1;
    if (!a->log && value->max >= a->low + a->bins * a->step && a->bins < BINS)
        a->bins++; /* the greatest value lies on the edge */
    a->high = a->low + a->bins * a->step;
}

static void fill_axis(struct axis *a, const struct sketch_point *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = a->log ? (p[i].x > 0 ? log10(p[i].x) : a->low) : within(p[i].x);
        double at = floor((x - a->low) / a->step + 1e-9);

        a->count[at < 0 ? 0 : at >= a->bins ? a->bins - 1 : (int)at] += p[i].n;
    }
}

int plot_label(struct buf *b, double x, double y, const char *anchor, double v)
{
    TRY(buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor));
    TRY(html_put_num(b, v));
    return buf_puts(b, "</text>");
}

static int put_frame(struct buf *b, const char *what, uint64_t most)
{
    TRY(buf_printf(b, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\"><title>%s</title>", WIDTH, HEIGHT,
                   WIDTH, HEIGHT, what));
    TRY(buf_printf(b, "<path class=\"g\" d=\"M%d %dH%dM%d %dH%d\"/>", LEFT, TOP, WIDTH - RIGHT, LEFT, HEIGHT - BOTTOM,
                   WIDTH - RIGHT));
    TRY(buf_printf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 5, TOP + 4));
    TRY(html_put_count(b, most));
    return buf_printf(b, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>", LEFT - 5, HEIGHT - BOTTOM + 3);
}

static int put_bar(struct buf *b, const char *class, double x, double width, uint64_t n, uint64_t most)
{
    double high = (HEIGHT - TOP - BOTTOM) * (double)n / (double)most;

    if (!n)
        return 0;
    high = high < 1 ? 1 : high; /* one document is seen too */
    return buf_printf(b, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", class, x,
                      HEIGHT - BOTTOM - high, width < 1 ? 1 : width, high);
}

static int put_ticks(struct buf *b, const struct axis *a)
{
    double step = a->log ? ceil((a->high - a->low) / 6) : plot_step((a->high - a->low) / 6);
    double first = ceil(a->low / step - 1e-9) * step;

    for (int i = 0; i < 20 && first + i * step <= a->high + 1e-9; i++) {
        double v = first + i * step, x;

        v = a->log ? pow(10, v) : fabs(v) < step * 1e-6 ? 0 : v;
        x = place(a, v);
        TRY(buf_printf(b, "<path class=\"g\" d=\"M%.1f %dv4\"/>", x, HEIGHT - BOTTOM));
        TRY(plot_label(b, x, HEIGHT - 5, "middle", v));
    }
    return 0;
}

static int put_threshold(struct buf *b, const struct axis *a, const struct sketch *t)
{
    double low, high, x;

    if (!t->n || (a->log && t->min <= 0))
        return 0;
    low = place(a, t->min);
    high = place(a, t->max);
    x = (low + high) / 2;
    if (high - low > .5)
        TRY(buf_printf(b, "<rect class=\"band\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", low, TOP, high - low,
                       HEIGHT - TOP - BOTTOM));
    TRY(buf_printf(b, "<path class=\"t\" d=\"M%.1f %dV%dM%.1f %dV%d\"/>", low, TOP - 3, HEIGHT - BOTTOM, high, TOP - 3,
                   HEIGHT - BOTTOM));
    TRY(buf_printf(b, "<text class=\"tt\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">threshold ", x, TOP - 6,
                   x < LEFT + 60 ? "start" : x > WIDTH - RIGHT - 60 ? "end" : "middle"));
    TRY(html_put_num(b, t->min));
    if (t->max > t->min) {
        TRY(buf_puts(b, " to "));
        TRY(html_put_num(b, t->max));
    }
    return buf_puts(b, "</text>");
}

/* Bars of the values, one kind before the other, on one axis. */
struct layer {
    const char *class;
    const struct sketch *value;
    struct sketch_point *p;
    size_t n;
    uint64_t count[BINS];
};

static int put_layers(struct buf *b, const char *what, struct layer *l, int n, const struct sketch *threshold)
{
    struct axis a = {0};
    uint64_t most = 0;
    double wide;

    choose_axis(&a, l[0].p, l[0].n, l[0].value, threshold);
    for (int k = 0; k < n; k++) {
        memset(a.count, 0, sizeof a.count);
        fill_axis(&a, l[k].p, l[k].n);
        memcpy(l[k].count, a.count, sizeof a.count);
        for (int i = 0; i < a.bins; i++)
            most = a.count[i] > most ? a.count[i] : most;
    }
    TRY(put_frame(b, what, most));
    wide = (double)(WIDTH - LEFT - RIGHT) / a.bins;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < a.bins; i++)
            TRY(put_bar(b, l[k].class, LEFT + i * wide, wide - (wide > 3 ? 1 : 0), l[k].count[i], most));
    TRY(put_ticks(b, &a));
    TRY(put_threshold(b, &a, threshold));
    return buf_puts(b, "</svg>");
}

static int plot_layers(struct buf *b, const char *what, struct layer *l, int n, const struct sketch *threshold)
{
    int rc = 0;

    if (!n || l[0].value->n == 0 || l[0].value->min == l[0].value->max)
        return 0;
    for (int k = 0; k < n && rc == 0; k++)
        rc = sketch_points(l[k].value, &l[k].p, &l[k].n);
    if (rc == 0)
        rc = put_layers(b, what, l, n, threshold);
    for (int k = 0; k < n; k++)
        free(l[k].p);
    return rc < 0 ? rc : 1;
}

int plot_values(struct buf *b, const struct report_rule *r)
{
    struct layer l = {.class = "v", .value = &r->value};

    return plot_layers(b, "documents dropped, by value", &l, 1, &r->threshold);
}

int plot_signal(struct buf *b, const struct sketch *before, const struct sketch *after, const struct sketch *threshold)
{
    struct layer l[2] = {{.class = "v0", .value = before}, {.class = "v", .value = after}};

    if (!before)
        l[0] = l[1];
    return plot_layers(b, "documents, by value", l, before && after ? 2 : before || after ? 1 : 0, threshold);
}

/* ---- lengths ---- */

enum { POWERS = 66 };

/* [0]: nothing; [k]: from 2^(k-1) on. */
static int count_powers(const struct sketch *s, uint64_t under[POWERS])
{
    struct sketch_point *p;
    size_t n;

    memset(under, 0, POWERS * sizeof *under);
    if (!s)
        return 0;
    TRY(sketch_points(s, &p, &n));
    for (size_t i = 0; i < n; i++)
        under[p[i].x < 1 ? 0 : ilogb(p[i].x) + 1] += p[i].n;
    free(p);
    return 0;
}

static int put_power(struct buf *b, int k)
{
    static const char *const unit[] = {"", " Ki", " Mi", " Gi", " Ti"};

    if (k == 0)
        return buf_puts(b, "0");
    k--;
    return k < 50 ? buf_printf(b, "%d%s", 1 << k % 10, unit[k / 10]) : buf_printf(b, "2^%d", k);
}

int plot_lengths(struct buf *b, const struct sketch *before, const struct sketch *after)
{
    uint64_t n[2][POWERS], most = 0;
    int first = POWERS, last = 0, shift = before && after ? 2 : 1;
    double wide;

    TRY(count_powers(before, n[0]));
    TRY(count_powers(after, n[1]));
    for (int k = 0; k < 2 * POWERS; k++) {
        uint64_t v = n[k / POWERS][k % POWERS];
        most = v > most ? v : most;
        if (v) {
            first = k % POWERS < first ? k % POWERS : first;
            last = k % POWERS > last ? k % POWERS : last;
        }
    }
    if (!most)
        return 0;
    wide = (double)(WIDTH - LEFT - RIGHT) / (last - first + 1);
    TRY(put_frame(b, "documents, by characters", most));
    for (int k = first; k <= last; k++) {
        double x = LEFT + (k - first) * wide, bar = (wide - 2) / shift;

        TRY(put_bar(b, "v0", x, bar, n[0][k], most));
        TRY(put_bar(b, "v", x + (shift - 1) * bar, bar, n[1][k], most));
        if ((last - first < 9 || (k - first) % 3 == 0) && x < WIDTH - 30) {
            TRY(buf_printf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"start\">", x, HEIGHT - 5));
            TRY(put_power(b, k));
            TRY(buf_puts(b, "</text>"));
        }
    }
    return buf_puts(b, "</svg>");
}
