// Errors about names on the command line that nothing has.
#ifndef MENDEL_CLIENT_UNKNOWN_NAME_H_
#define MENDEL_CLIENT_UNKNOWN_NAME_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mendel {

/// A sentence about the first command or option in `words` (the program first) that `app` does not
/// have, with those that it has; empty: there is none. For command lines that did not parse.
std::string UnknownName(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace mendel

#endif  // MENDEL_CLIENT_UNKNOWN_NAME_H_
