/* curate/dedup/dedup_laps.h -- the phases of looking for near-duplicates, as statistics have their seconds (docs/dedup.md). */
#ifndef CURATE_DEDUP_LAPS_H
#define CURATE_DEDUP_LAPS_H

#include "base/laps.h"

/* Of threads each is their sum: shingles to what is put aside, candidates and verification, and what a device takes. */
enum dedup_lap {
    LAP_SHINGLES, LAP_SIGN, LAP_ASIDE, LAP_COMMIT, LAP_LINKS, LAP_LOAD, LAP_BUCKETS, LAP_CLUSTERS, LAP_CANDIDATES, LAP_VERIFY,
    LAP_DECIDE, LAP_WRITE, LAP_OPEN, LAP_PINNED, LAP_QUEUE, LAP_WAIT, DEDUP_LAPS
};
#define DEDUP_LAP_NAMES                                                                                  \
    {"shingles", "signing", "put_aside", "commit", "links", "load", "buckets", "clusters", "candidates", \
     "verification", "decisions", "writing", "device_opening", "device_pinned", "device_queueing", "device_waiting"}
#endif
