#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "client/onnxruntime/factory.h"

namespace mendel::ort {
namespace {

using ::testing::HasSubstr;

std::string message;

Status* CreateStatus(int, const char* text) {
  message = text;
  return reinterpret_cast<Status*>(&message);
}

/// A table whose first member is CreateStatus.
const Table* TableOf(uint32_t) {
  static const std::array<void*, 1> members = {reinterpret_cast<void*>(&CreateStatus)};
  return reinterpret_cast<const Table*>(members.data());
}

/// The answer of the library at `path` to a version of ONNX Runtime that is too old.
std::string Answer(const std::string& path) {
  message = "";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const auto create =
      reinterpret_cast<decltype(&CreateEpFactories)>(dlsym(library, "CreateEpFactories"));
  const ApiBase base = {&TableOf, [] { return "1.22.1"; }};
  EpFactory* factory = nullptr;
  size_t count = 1;
  create("mendel", &base, nullptr, &factory, 1, &count);
  EXPECT_EQ(count, 0u);
  return message;
}

TEST(Loader, OpensTheProviderBesideIt) {
  unsetenv("GOMP_SPINCOUNT");
  EXPECT_THAT(Answer(MENDEL_PROVIDER), HasSubstr("this is 1.22.1"));
  EXPECT_EQ(getenv("GOMP_SPINCOUNT"), nullptr);
}

TEST(Loader, NamesTheLibraryThatLacks) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "loader_alone";
  std::filesystem::create_directories(folder);
  const std::filesystem::path alone = folder / "libonnxruntime_providers_mendel.so";
  std::filesystem::copy_file(MENDEL_PROVIDER, alone,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Answer(alone), HasSubstr(folder / "libmendel_provider.so"));
}

}  // namespace
}  // namespace mendel::ort
