// What the files that speak gRPC include besides.
#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>

#include "scripts/cmake/precompiled/library.h"
