/* base/version.h -- which quern this is. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* The one place of the number; make dist and make deb read it here. */
#define QUERN_VERSION "0.2.0"

/* The commit that was built, as git abbreviates it, "-dirty" appended where files differed from it;
 * "" when it is not known.  Defined in version.c, which alone is compiled again when it changes. */
extern const char quern_commit[];

#ifdef __cplusplus
}
#endif
#endif
