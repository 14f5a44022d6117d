// Names of this program's backends, for errors about others.
#ifndef MENDEL_RUNTIME_BACKEND_NAMES_H_
#define MENDEL_RUNTIME_BACKEND_NAMES_H_

#include <string>

#include "base/status.h"
#include "runtime/backend.h"

namespace mendel {

/// "cpu, reference".
inline std::string BackendNames() {
  std::string names;
  for (const Backend* known : AllBackends()) names += Cat(names.empty() ? "" : ", ", known->name());
  return names;
}

}  // namespace mendel

#endif  // MENDEL_RUNTIME_BACKEND_NAMES_H_
