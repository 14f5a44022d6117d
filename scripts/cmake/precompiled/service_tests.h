// What the tests of the service include besides.
#include <grpcpp/grpcpp.h>

#include "scripts/cmake/precompiled/tests.h"
