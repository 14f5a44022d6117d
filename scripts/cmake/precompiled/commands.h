// What the files of the command line include besides.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "scripts/cmake/precompiled/library.h"
