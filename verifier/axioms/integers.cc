// Sums and products of integers: polynomials over the integers modulo 2^k, which wrap as the
// integers of the dtype do. One normal form decides what is equal as a polynomial.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "verifier/axioms/rules.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 1> kIntegersAxioms = {{
    {"ring of integers",
     "sums, differences, negatives and products of integers are polynomials modulo 2^k",
     "Integer arithmetic wraps: it is that of the ring of integers modulo 2^k, in which these "
     "identities hold."},
}};

/// Larger polynomials stay as they are.
constexpr size_t kMostTerms = 24;
constexpr size_t kLargestDegree = 6;

/// Factors in the order of their hashes, which is the same in every program.
using Monomial = std::vector<std::pair<std::pair<uint64_t, uint64_t>, ValueId>>;
using Polynomial = std::map<Monomial, uint64_t>;  // coefficients modulo 2^64

std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (const auto& [x, c] : a) {
    for (const auto& [y, d] : b) {
      Monomial both = x;
      both.insert(both.end(), y.begin(), y.end());
      std::sort(both.begin(), both.end());
      if (both.size() > kLargestDegree) return std::nullopt;
      product[both] += c * d;
    }
  }
  if (product.size() > kMostTerms) return std::nullopt;
  return product;
}

class Normalizer {
 public:
  Normalizer(Terms& terms, ValueId value)
      : t_(terms), shape_(terms.shape(value)), dtype_(terms.dtype(value)) {}

  std::optional<ValueId> Run(ValueId value) {
    std::optional<Polynomial> polynomial = Of(value, /*top=*/true);
    if (!polynomial.has_value()) return std::nullopt;
    std::erase_if(*polynomial, [&](const auto& term) { return Wrapped(term.second) == 0; });
    return Build(*polynomial);
  }

 private:
  int64_t Wrapped(uint64_t coefficient) const {
    const auto value = static_cast<int64_t>(coefficient);
    return Tensor::FromInts({dtype_, {}}, std::span(&value, 1)).IntAt(0);
  }

  /// Operands of the result's shape, and single integers.
  std::optional<Polynomial> Of(ValueId value, bool top) {
    if (const std::optional<int64_t> number = t_.Integer(value); number.has_value())
      return Polynomial{{{}, static_cast<uint64_t>(*number)}};
    if (t_.shape(value) != shape_) return std::nullopt;
    const bool sum = t_.Is(value, "Add"), difference = t_.Is(value, "Sub");
    if (sum || difference || t_.Is(value, "Mul")) {
      std::optional<Polynomial> a = Of(t_.in(value, 0), false);
      const std::optional<Polynomial> b = Of(t_.in(value, 1), false);
      if (a.has_value() && b.has_value()) {
        if (!sum && !difference) return Product(*a, *b);
        for (const auto& [monomial, c] : *b) (*a)[monomial] += difference ? 0 - c : c;
        if (a->size() > kMostTerms) return std::nullopt;
        return a;
      }
      if (top) return std::nullopt;
    }
    if (t_.Is(value, "Neg")) {
      std::optional<Polynomial> x = Of(t_.in(value, 0), false);
      if (!x.has_value()) return std::nullopt;
      for (auto& [monomial, c] : *x) c = 0 - c;
      return x;
    }
    const Hash128& hash = t_.hash(value);
    return Polynomial{{{{{hash.high ^ static_cast<uint64_t>(value.output), hash.low}, value}}, 1}};
  }

  ValueId Literal(int64_t value) {
    return t_.Constant(Tensor::FromInts({dtype_, {}}, std::span(&value, 1)), "");
  }

  std::optional<ValueId> Build(const Polynomial& polynomial) {
    std::optional<ValueId> sum;
    for (const auto& [monomial, coefficient] : polynomial) {
      if (monomial.empty()) continue;
      ValueId term = monomial[0].second;
      for (size_t k = 1; k < monomial.size(); ++k)
        term = t_.CanonicalOp("Mul", {term, monomial[k].second});
      const int64_t factor = Wrapped(coefficient);
      if (factor != 1) term = t_.CanonicalOp("Mul", {term, Literal(factor)});
      sum = sum.has_value() ? t_.CanonicalOp("Add", {*sum, term}) : term;
    }
    const auto constant = polynomial.find({});
    const int64_t rest = constant == polynomial.end() ? 0 : Wrapped(constant->second);
    if (!sum.has_value()) return t_.Fit(Literal(rest), shape_);
    return rest == 0 ? *sum : t_.CanonicalOp("Add", {*sum, Literal(rest)});
  }

  Terms& t_;
  const Shape shape_;
  const DType dtype_;
};

std::optional<ValueId> NormalForm(Terms& t, ValueId v) {
  if (!IsIntegral(t.dtype(v)) || t.dtype(v) == DType::kBool) return std::nullopt;
  return Normalizer(t, v).Run(v);
}

constexpr std::array<AxiomRule, 4> kIntegersRules = {{
    {"ring of integers", "Add", &NormalForm, Elements::kAny},
    {"ring of integers", "Sub", &NormalForm, Elements::kAny},
    {"ring of integers", "Mul", &NormalForm, Elements::kAny},
    {"ring of integers", "Neg", &NormalForm, Elements::kAny},
}};

}  // namespace

AxiomGroup IntegerAxioms() { return {kIntegersAxioms, kIntegersRules}; }

}  // namespace mendel
