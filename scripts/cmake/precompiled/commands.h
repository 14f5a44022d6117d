// Headers that the files of the command line include in addition.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "scripts/cmake/precompiled/library.h"
