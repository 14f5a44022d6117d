// The library that ONNX Runtime opens. It opens libmendel_provider.so beside it, with libgomp's
// spin set: libgomp reads its environment before any code of a library that needs it runs.
//
// Idle threads of ONNX Runtime's pool spin for tens of milliseconds after a run. Threads of libgomp
// that spin for as long would compete with them, and with other programs, for the CPUs.

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "client/onnxruntime/factory.h"
#include "client/onnxruntime/refusal.h"

namespace mendel::ort {
namespace {

/// Rounds of a pause, some hundred microseconds: longer than most steps of a plan.
constexpr char kSpinCount[] = "3000";

using CreateFunction = decltype(&CreateEpFactories);
using ReleaseFunction = decltype(&ReleaseEpFactory);

struct Provider {
  CreateFunction create = nullptr;
  ReleaseFunction release = nullptr;
  std::string error;
};

/// Sets libgomp's spin while in scope, unless the user has chosen one.
class SpinScope {
 public:
  SpinScope() : set_(getenv("GOMP_SPINCOUNT") == nullptr && getenv("OMP_WAIT_POLICY") == nullptr) {
    if (set_) setenv("GOMP_SPINCOUNT", kSpinCount, 0);
  }
  ~SpinScope() {
    if (set_) unsetenv("GOMP_SPINCOUNT");
  }
  SpinScope(const SpinScope&) = delete;
  SpinScope& operator=(const SpinScope&) = delete;

 private:
  const bool set_;
};

bool Loaded(const char* library) {
  void* const handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

Provider OpenProvider() {
  Provider provider;
  // The messages of both would have the same names in one registry, and protobuf would end the
  // process. The packages for Python have a protobuf each.
  if (Loaded("libmendel.so.0") && Loaded("libprotobuf.so.32")) {
    provider.error =
        "libmendel.so is loaded, and would share libprotobuf.so.32 with Mendel's provider: use a "
        "process for each, or the packages mendel and onnxruntime-ep-mendel";
    return provider;
  }
  Dl_info own = {};
  dladdr(reinterpret_cast<const void*>(&CreateEpFactories), &own);
  const std::string file = own.dli_fname == nullptr ? "" : own.dli_fname;
  const std::string path = file.substr(0, file.rfind('/') + 1) + "libmendel_provider.so";
  const SpinScope spin;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    provider.error = std::string("Mendel's provider cannot be opened: ") + dlerror();
    return provider;
  }
  provider.create = reinterpret_cast<CreateFunction>(dlsym(library, "CreateEpFactories"));
  provider.release = reinterpret_cast<ReleaseFunction>(dlsym(library, "ReleaseEpFactory"));
  if (provider.create == nullptr || provider.release == nullptr)
    provider.error = path + " has no factory of execution providers";
  return provider;
}

const Provider& TheProvider() {
  static const Provider provider = OpenProvider();
  return provider;
}

}  // namespace
}  // namespace mendel::ort

extern "C" {

mendel::ort::Status* CreateEpFactories(const char* registered_name,
                                       const mendel::ort::ApiBase* base,
                                       const mendel::ort::Logger* logger,
                                       mendel::ort::EpFactory** factories, size_t max,
                                       size_t* count) {
  *count = 0;
  const mendel::ort::Provider& provider = mendel::ort::TheProvider();
  if (provider.error.empty())
    return provider.create(registered_name, base, logger, factories, max, count);
  return mendel::ort::Refuse(base, provider.error);
}

mendel::ort::Status* ReleaseEpFactory(mendel::ort::EpFactory* factory) {
  return mendel::ort::TheProvider().release(factory);
}
}
