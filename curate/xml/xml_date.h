/* curate/xml/xml_date.h -- dates as XML formats write them, as YYYY-MM-DD, with Thh:mm:ss and zone if they are said. */
#ifndef CURATE_XML_DATE_H
#define CURATE_XML_DATE_H

#include "base/err.h"
#include "base/mem.h"

/* Appends the date that s writes: as ISO 8601 (kept), YYYYMMDD (patents), or as RFC 822 has it (RSS); nothing if it is none.
 * ERR_NOMEM. */
int xml_date(struct span s, struct buf *out);
/* Appends a date of a year, and of a month (a number or an English name) and a day, which may be empty. */
int xml_date_of_parts(struct span year, struct span month, struct span day, struct buf *out);
#endif
