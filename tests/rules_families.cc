#include "tests/rules_families.h"

#include "base/random.h"
#include "base/status.h"
#include "graph/text.h"

namespace mendel {

const std::vector<FamilyExample>& FamilyExamples() {
  static const auto* examples = [] {
    auto* all = new std::vector<FamilyExample>(WindowExamples());
    for (const FamilyExample& example : ProductExamples()) all->push_back(example);
    return all;
  }();
  return *examples;
}

absl::StatusOr<Graph> ExampleGraph(const FamilyExample& example) {
  std::string body(example.body);
  Rng rng(body.size());
  for (const char kind : {'W', 'P'}) {
    const std::string mark = {'{', kind};
    for (size_t at = body.find(mark); at != std::string::npos; at = body.find(mark, at)) {
      const size_t end = body.find('}', at);
      const int count = std::stoi(body.substr(at + 2, end - at - 2));
      std::string values;
      for (int i = 0; i < count; ++i) {
        const double value = kind == 'W' ? rng.Normal() / 4 : 1 + rng.Unit();
        values += Cat(i > 0 ? ", " : "", static_cast<float>(value));
      }
      body.replace(at + 1, end - at - 1, values);
    }
  }
  return ParseGraph(Cat("graph \"", example.name, "\" {\n", body, "\n}"));
}

}  // namespace mendel
