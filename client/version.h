// The version of this program.
#ifndef MENDEL_CLIENT_VERSION_H_
#define MENDEL_CLIENT_VERSION_H_

#include <string>

namespace mendel {

struct Version {
  std::string version;  ///< e.g. "0.1.0"
  std::string commit;  ///< abbreviated, with "-dirty" where the tree had changes; "unknown" outside
                       ///< a checkout
  std::string compiler;
  std::string onednn;
  std::string ntl;
};

Version ProgramVersion();

/// "0.1.0 (commit)", as in plans.
std::string VersionLine();

/// The output of `mendel --version`: the above and a line for every backend with its identity on
/// this machine.
std::string VersionText();

}  // namespace mendel

#endif  // MENDEL_CLIENT_VERSION_H_
