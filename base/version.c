#include "base/version.h"

const char quern_commit[] = QUERN_COMMIT;
