#include "tests/rules_families.h"

#include "base/random.h"
#include "base/status.h"
#include "graph/text.h"

namespace mendel {

const std::vector<FamilyExample>& FamilyExamples() {
  static const auto* examples = [] {
    auto* all = new std::vector<FamilyExample>(WindowExamples());
    for (const FamilyExample& example : ProductExamples()) all->push_back(example);
    for (const FamilyExample& example : ConstantExamples()) all->push_back(example);
    return all;
  }();
  return *examples;
}

namespace {

std::string ProductOfIntegers(const std::string& size, Rng& rng) {
  const size_t cross = size.find('x');
  const int rows = std::stoi(size.substr(0, cross)), columns = std::stoi(size.substr(cross + 1));
  std::vector<int64_t> left, right;
  for (int i = 0; i < 2 * rows; ++i) left.push_back(rng.Between(-2, 2));
  for (int j = 0; j < 2 * columns; ++j) right.push_back(rng.Between(-3, 3));
  std::string values;
  for (size_t i = 0; i < left.size(); i += 2) {
    for (size_t j = 0; j < right.size(); j += 2) {
      const int64_t value = left[i] * right[j] + left[i + 1] * right[j + 1];
      values += Cat(values.empty() ? "" : ", ", static_cast<double>(value) / 8);
    }
  }
  return values;
}

}  // namespace

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
  for (size_t at = body.find("{L"); at != std::string::npos; at = body.find("{L", at)) {
    const size_t end = body.find('}', at);
    body.replace(at + 1, end - at - 1, ProductOfIntegers(body.substr(at + 2, end - at - 2), rng));
  }
  return ParseGraph(Cat("graph \"", example.name, "\" {\n", body, "\n}"));
}

}  // namespace mendel
