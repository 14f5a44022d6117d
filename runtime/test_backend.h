// A backend for tests of the runtime: runs graphs by their operators' definitions, one step a node.
#ifndef MENDEL_RUNTIME_TEST_BACKEND_H_
#define MENDEL_RUNTIME_TEST_BACKEND_H_

namespace mendel {

/// Registered as this name in every executable that links test_backend.cc.
inline constexpr char kTestBackend[] = "test";
inline constexpr char kTestIdentity[] = "test-machine";
/// An algorithm, of whatever name, needs an engine of this library.
inline constexpr char kTestLibrary[] = "test library 1";

}  // namespace mendel

#endif  // MENDEL_RUNTIME_TEST_BACKEND_H_
