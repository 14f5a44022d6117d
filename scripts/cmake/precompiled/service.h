// Headers that the files with gRPC include in addition.
#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>

#include "scripts/cmake/precompiled/library.h"
