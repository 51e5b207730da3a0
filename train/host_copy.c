#include "train/host_copy.h"

int host_copy_open(struct host_copy *h, struct device *dev, float *slab, size_t bytes, bool read, struct err *e)
{
    *h = (struct host_copy){.dev = dev, .on = slab, .bytes = bytes};
    if (dev->kind == DEVICE_CPU) {
        h->host = slab;
        return 0;
    }
    if (device_alloc_host(dev, (void **)&h->host, bytes, e) < 0)
        return err_wrap(e, "%zu MiB of the host's memory", bytes >> 20);
    return read ? device_get(dev, h->host, slab, bytes, e) : 0;
}

int host_copy_close(struct host_copy *h, bool write, struct err *e)
{
    int rc = 0;

    if (h->host && h->host != h->on) {
        if (write)
            rc = device_put(h->dev, h->on, h->host, h->bytes, e);
        device_free_host(h->dev, h->host);
    }
    h->host = NULL;
    return rc;
}
