#include "client/library_path.h"

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <string>

namespace mendel {

void AddLibraryPathOption(CLI::App& app) {
  app.add_option_function<std::string>(
         "--cuda-path",
         [](const std::string& folder) { ::setenv("MENDEL_CUDA_PATH", folder.c_str(), 1); },
         "Folder of the CUDA installation to use (default: MENDEL_CUDA_PATH, then a search)")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
}

}  // namespace mendel
