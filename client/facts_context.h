// A context that keeps facts and prints nothing, for callers in the same process.
#ifndef MENDEL_CLIENT_FACTS_CONTEXT_H_
#define MENDEL_CLIENT_FACTS_CONTEXT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "client/command.h"

namespace mendel {

class FactsContext final : public Context {
 public:
  bool json() const override { return true; }
  nlohmann::ordered_json& facts() override { return facts_; }
  void Line(const std::string&) override {}
  void Note(const std::string&) override {}
  void Answer(ExitCode) override {}
  void Input(const std::string&) override {}

 private:
  nlohmann::ordered_json facts_ = nlohmann::ordered_json::object();
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_FACTS_CONTEXT_H_
