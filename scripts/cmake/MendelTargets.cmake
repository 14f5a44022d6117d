# mendel_library(NAME SOURCES... DEPS... [PRECOMPILED kind] [APART]), mendel_test(NAME SOURCES... DEPS... [LABELS ...] [PRECOMPILED kind]
# [APART]). The presets release, asan and tsan compile several files of a target as one (most of a file's time goes to templates that all of
# them instantiate), so that private names are chosen once a target; APART: file by file, where several hold the same private names. Plug-ins
# have a namespace each. The presets debug and clang compile file by file.

add_library(mendel_options INTERFACE)
target_include_directories(mendel_options INTERFACE ${CMAKE_SOURCE_DIR})
# Debian's headers are not checked with our warnings.
target_compile_options(mendel_options INTERFACE -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports overlapping and unbounded copies inside std::string's own operator+ and replace (its bugs 105651 and 105329).
  target_compile_options(mendel_options INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(MENDEL_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(mendel_options INTERFACE -Wno-stringop-overread)  # the same
    # g++ 12 cannot follow std::optional through code that a sanitizer instruments; the release build keeps the warning.
    target_compile_options(mendel_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_compile_options(mendel_options INTERFACE -fsanitize=${MENDEL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(mendel_options INTERFACE -fsanitize=${MENDEL_SANITIZE})
  if(MENDEL_SANITIZE MATCHES "undefined")
    # These checks cost a third of the compile time. The address sanitizer (null, object-size, pointer-overflow) or the CPU (alignment)
    # finds the same.
    target_compile_options(mendel_options INTERFACE
      -fno-sanitize=null,object-size,vptr,alignment,pointer-overflow,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()
if(MENDEL_SANITIZE MATCHES "thread")
  # Rules and search are not built for the address sanitizer, to save time; here their vectors check their indices.
  target_compile_definitions(mendel_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(MENDEL_FUZZ)
  target_compile_options(mendel_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
# Tests do not need an optimizer, and it takes a fifth of their compile time.
set(MENDEL_TEST_OPTIONS $<$<CONFIG:Release>:-O1> $<$<CONFIG:RelWithDebInfo>:-O0>)
# Under sanitizers a server's code needs none either: its tests wait for processes and disks.
set(MENDEL_SERVICE_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O0>)
# Precompiled standard, Abseil, GoogleTest, gRPC and CLI11 headers (precompiled/KIND.h): a third of the compile time. None of our own, so
# that a change of a header rebuilds what includes it and nothing else; clang-tidy and the clang preset compile without them and find a
# missing include. A target names its KIND by PRECOMPILED; what links gRPC needs one with gRPC, since that brings -pthread, a macro more.
# mendel_precompiled(KIND DEPS...)
function(mendel_precompiled kind)
  add_library(mendel_precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/scripts/cmake/precompiled/${kind}.cc)
  target_link_libraries(mendel_precompiled_${kind} PRIVATE mendel_options absl::status absl::statusor absl::strings ${ARGN})
  if(MENDEL_PRECOMPILE)
    target_precompile_headers(mendel_precompiled_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/scripts/cmake/precompiled/${kind}.h)
  endif()
  if(kind MATCHES "tests$")
    target_compile_options(mendel_precompiled_${kind} PRIVATE ${MENDEL_TEST_OPTIONS})
  elseif(kind STREQUAL service)
    target_compile_options(mendel_precompiled_${kind} PRIVATE ${MENDEL_SERVICE_OPTIONS})
  endif()
endfunction()
mendel_precompiled(library)
mendel_precompiled(service gRPC::grpc++ nlohmann_json::nlohmann_json)
if(MENDEL_BUILD_TESTS)
  mendel_precompiled(tests GTest::gmock)
  mendel_precompiled(service_tests gRPC::grpc++ GTest::gmock)
endif()
function(mendel_precompile target kind)
  if(MENDEL_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM mendel_precompiled_${kind})
    if(kind STREQUAL service)
      target_compile_options(${target} PRIVATE ${MENDEL_SERVICE_OPTIONS})
    endif()
    # The precompiled header has this option; executables would get -fPIE.
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
# Every plug-in folder adds its objects here; the linker would drop registrars in static libraries (docs/decisions/2026-11-21-build.md).
add_library(mendel_plugins INTERFACE)

function(mendel_library name)
  cmake_parse_arguments(ARG "APART" "PRECOMPILED" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED library)
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC mendel_options ${ARG_DEPS})
  mendel_precompile(${name} ${ARG_PRECOMPILED})
  if(ARG_APART)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()

# Self-registering files of one folder: globbed, linked into every executable through mendel_plugins.
function(mendel_plugin_folder name)
  cmake_parse_arguments(ARG "" "" "GLOB;DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_GLOB})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PUBLIC mendel_options ${ARG_DEPS})
  mendel_precompile(${name} library)
  target_sources(mendel_plugins INTERFACE $<TARGET_OBJECTS:${name}>)
  target_link_libraries(mendel_plugins INTERFACE ${ARG_DEPS})
endfunction()

# Target tests_LABEL builds every test of that label: quick (scripts/test), asan and tsan (its sanitizer subsets), soak.
function(mendel_test_group label target)
  if(NOT TARGET tests_${label})
    add_custom_target(tests_${label})
  endif()
  add_dependencies(tests_${label} ${target})
endfunction()

# A GoogleTest executable and its ctest entry. LABELS default to quick. PLUGINS: the plug-in folders it needs, "none", or all by
# default (tests of the tsan subset name theirs, so that a build of the subset is short). SANITIZED_FILTER is the --gtest_filter
# in sanitizer builds, for tests that are too slow or too large there.
function(mendel_test name)
  if(NOT MENDEL_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "APART" "TIMEOUT;SANITIZED_FILTER;PRECOMPILED" "SOURCES;DEPS;LABELS;PLUGINS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS quick)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(NOT ARG_PLUGINS)
    set(ARG_PLUGINS mendel_plugins)
  endif()
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED tests)
  endif()
  list(REMOVE_ITEM ARG_PLUGINS none)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE mendel_options ${ARG_DEPS} ${ARG_PLUGINS} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${MENDEL_TEST_OPTIONS})
  mendel_precompile(${name} ${ARG_PRECOMPILED})
  if(ARG_APART)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  foreach(label ${ARG_LABELS})
    mendel_test_group(${label} ${name})
  endforeach()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77)
  if(MENDEL_SANITIZE AND ARG_SANITIZED_FILTER)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "GTEST_FILTER=${ARG_SANITIZED_FILTER}")
  endif()
endfunction()
