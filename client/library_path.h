// --cuda-path, of every command that opens a backend.
#ifndef MENDEL_CLIENT_LIBRARY_PATH_H_
#define MENDEL_CLIENT_LIBRARY_PATH_H_

namespace CLI {
class App;
}

namespace mendel {

/// Declares --cuda-path: the folder of a CUDA installation, or of its libraries, that is searched
/// before all others. It becomes the variable MENDEL_CUDA_PATH of this process, and so of those
/// that it starts, when the command line is parsed: before any command runs, and so before any
/// library is opened.
void AddLibraryPathOption(CLI::App& app);

}  // namespace mendel

#endif  // MENDEL_CLIENT_LIBRARY_PATH_H_
