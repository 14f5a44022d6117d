#include "client/peers/python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/deadline.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

const char kPython[] = "/usr/bin/python3";

/// Skips a test on machines without Python.
#define NEEDS_PYTHON() \
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "no " << kPython

absl::StatusOr<Json> Ask(const std::string& script, const Json& request, double seconds = 30) {
  const auto program = PythonProgram::Start(kPython, script, {"word"}, {{"MENDEL_TEST", "set"}});
  if (!program.ok()) return program.status();
  return (*program)->Ask(request, seconds);
}

TEST(PythonProgram, AnswersInTheFirstLineOfJson) {
  NEEDS_PYTHON();
  const auto answer = Ask(R"py(
import json, os, sys
print("chatter of a library")
request = json.loads(sys.stdin.readline())
print(json.dumps({"sum": sum(request["numbers"]), "word": sys.argv[1], "set": os.environ["MENDEL_TEST"]}), flush=True)
)py",
                          {{"numbers", {1, 2, 4}}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["sum"], 7);
  EXPECT_EQ((*answer)["word"], "word");
  EXPECT_EQ((*answer)["set"], "set");
}

TEST(PythonProgram, TheLastLineOfItsErrorsIsTheError) {
  NEEDS_PYTHON();
  const auto answer = Ask("raise ValueError('no such operator')", Json::object());
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("ValueError: no such operator"));
}

TEST(PythonProgram, ASilentProgramIsEnded) {
  NEEDS_PYTHON();
  const auto answer = Ask("import time\ntime.sleep(1000)", Json::object(), 0.2);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << answer.status();
}

TEST(FindPython, FindsOneWithSomeOfTheModules) {
  NEEDS_PYTHON();
  const auto missing = FindPython(kPython, "--python", {"mendel_no_such_module"});
  ASSERT_FALSE(missing.ok());
  const std::string message(missing.status().message());
  EXPECT_THAT(message, HasSubstr("no Python with mendel_no_such_module"));
  EXPECT_THAT(message, HasSubstr("No module named 'mendel_no_such_module'"));
  EXPECT_THAT(message, HasSubstr("--python PATH"));
}

TEST(FindPython, APathWithoutAProgramIsNamed) {
  const auto missing = FindPython("/nowhere/python", "--python", {"numpy"});
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("cannot run /nowhere/python"));
}

}  // namespace
}  // namespace mendel
