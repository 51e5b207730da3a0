#include "train/model_graph.h"

#include "base/log.h"
#include "train/model_pass.h"

const char *model_graph_refuses(const struct model *m)
{
    if (m->dev->kind == DEVICE_CPU)
        return "the CPU has none";
    if (m->config.experts)
        return "the host tells experts their rows";
    if (!m->part.embeds || !m->part.heads)
        return "stages exchange in each micro-batch";
    if (pass_shared(m) || pass_ring(m))
        return "tensor or context ranks exchange in each layer";
    if (param_buffer_shares(&m->dense.conf, SHARD_OPTIM_GRADS))
        return "ranks that share gradients exchange in each micro-batch";
    return NULL;
}

void model_graph_open(struct model_graph *g, struct model *m, double *loss)
{
    *g = (struct model_graph){.model = m, .loss = loss};
}

void model_graph_close(struct model_graph *g)
{
    for (int i = 0; g->model && i < MODEL_GRAPH_KINDS; i++)
        device_graph_free(g->model->dev, g->kind[i].graph);
    *g = (struct model_graph){0};
}

static int launch(struct model_graph *g, const struct model_batch *batch, struct err *e)
{
    TRY(model_forward(g->model, batch, g->loss, e));
    return model_backward(g->model, batch, e);
}

static int record(struct model_graph *g, struct device_graph **graph, const struct model_batch *batch, struct err *e)
{
    struct device *dev = g->model->dev;
    struct err none;
    int rc;

    TRY(device_capture_begin(dev, e));
    rc = launch(g, batch, e);
    if (rc == 0)
        return device_capture_end(dev, graph, e);
    (void)device_capture_end(dev, NULL, &none);
    return rc;
}

/* Without scales of past steps each tensor makes its own, by other launches. */
static bool is_cold(const struct model *m)
{
    return m->fp8 && m->run.fp8.recipe == FP8_DELAYED && !m->fp8->warm;
}

static int run(struct model_graph *g, const struct model_batch *batch, bool again, struct err *e)
{
    int i = 2 * again + g->model->buffers[g->model->n_buffers - 1]->overwrite;
    struct device_graph **graph = &g->kind[i].graph;
    bool ready = g->kind[i].run && !is_cold(g->model);
    struct err why;

    if (ready && !*graph && !g->off && record(g, graph, batch, &why) < 0) {
        log_msg(LOG_WARN, "no CUDA graph, kernels are launched one by one: %s", why.msg);
        g->off = true;
        model_fp8_begin(g->model, again);
    }
    if (ready && *graph)
        return device_graph_launch(g->model->dev, *graph, e);
    g->kind[i].run = !is_cold(g->model);
    return launch(g, batch, e);
}

int model_graph_run(struct model_graph *g, const struct model_batch *batch, bool again, struct err *e)
{
    model_fp8_begin(g->model, again);
    TRY(model_take(g->model, batch, e));
    g->model->slot[batch->slot].documents = 0;
    return run(g, batch, again, e);
}
