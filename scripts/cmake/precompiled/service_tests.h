// Headers that the tests of the service include in addition.
#include <grpcpp/grpcpp.h>

#include "scripts/cmake/precompiled/tests.h"
