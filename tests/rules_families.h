// One small program for every family of mutants: what the family is for, in its simplest form.
#ifndef MENDEL_TESTS_RULES_FAMILIES_H_
#define MENDEL_TESTS_RULES_FAMILIES_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace mendel {

struct FamilyExample {
  std::string_view name;  ///< CamelCase
  std::string_view rule;  ///< that applies to it
  /// Lines of the text form. {Wn}: n normal values of a weight; {Pn}: n values in [1, 2). {Lrxc}: a
  /// product of small integers of rank 2.
  std::string_view body;
};

const std::vector<FamilyExample>& FamilyExamples();
std::vector<FamilyExample> WindowExamples();
std::vector<FamilyExample> ProductExamples();
std::vector<FamilyExample> ConstantExamples();

/// The program of an example; its weights follow from its text.
absl::StatusOr<Graph> ExampleGraph(const FamilyExample& example);

}  // namespace mendel

#endif  // MENDEL_TESTS_RULES_FAMILIES_H_
