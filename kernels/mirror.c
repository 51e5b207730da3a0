#include "kernels/mirror.h"

static bool one(const struct device *dev)
{
    return dev->kind == DEVICE_CPU;
}

void mirror_free(struct device *dev, struct mirror *m)
{
    if (m->on != m->host)
        device_free(dev, m->on);
    device_free_host(dev, m->host);
    *m = (struct mirror){0};
}

int mirror_room(struct device *dev, struct mirror *m, size_t bytes, struct err *e)
{
    int rc;

    if (m->host && bytes <= m->bytes)
        return 0;
    bytes = m->host ? bytes + bytes / 4 : bytes;
    mirror_free(dev, m);
    TRY(device_alloc_host(dev, &m->host, bytes, e));
    rc = one(dev) ? 0 : device_alloc(dev, &m->on, bytes, e);
    if (rc < 0) {
        mirror_free(dev, m);
        return rc;
    }
    m->on = one(dev) ? m->host : m->on;
    m->bytes = bytes;
    return 0;
}

int mirror_put(struct device *dev, const struct mirror *m, size_t bytes, struct err *e)
{
    return one(dev) ? 0 : device_put_later(dev, m->on, m->host, bytes, e);
}

int mirror_get(struct device *dev, const struct mirror *m, size_t bytes, struct err *e)
{
    return one(dev) ? 0 : device_get_later(dev, m->host, m->on, bytes, e);
}
