#include "mutator/index/expression.h"

#include <algorithm>

#include "base/status.h"

namespace mendel {
namespace {

std::string FactorString(const Factor& factor) {
  std::string text = Cat("T", factor.tensor, "[");
  for (size_t d = 0; d < factor.index.size(); ++d) {
    const IndexForm& form = factor.index[d];
    text += d > 0 ? "," : "";
    text += form.divisor == 1 ? AffineString(form.affine)
                              : Cat("(", AffineString(form.affine), ")/", form.divisor);
  }
  return text + "]";
}

std::string TermString(const IndexTerm& term, const Extents& extents) {
  std::string text;
  for (Iterator sum : term.sums) {
    text += Cat(text.empty() ? "sum " : ",", "i", sum, "<", extents[static_cast<size_t>(sum)]);
  }
  if (!text.empty()) text += ": ";
  if (term.numerator != 1 || term.denominator != 1)
    text += Cat(term.numerator, "/", term.denominator, "*");
  for (size_t f = 0; f < term.factors.size(); ++f)
    text += Cat(f > 0 ? "*" : "", FactorString(term.factors[f]));
  return text;
}

std::string StageString(const IndexExpression& stage) {
  std::string text = "y[";
  for (size_t d = 0; d < stage.outputs.size(); ++d) {
    const OutputDim& dim = stage.outputs[d];
    text += d > 0 ? "," : "";
    for (Iterator i : dim.iterators) text += Cat("i", i, "<", stage.extent(i), " ");
    text += Cat("@", dim.begin, ":", dim.extent);
  }
  text += "] =";
  for (size_t t = 0; t < stage.terms.size(); ++t)
    text += Cat(t > 0 ? " + " : " ", TermString(stage.terms[t], stage.extents));
  return text;
}

void Rename(IndexTerm& term, const std::map<Iterator, Iterator>& names) {
  for (Iterator& sum : term.sums) sum = names.at(sum);
  std::sort(term.sums.begin(), term.sums.end());
  for (Factor& factor : term.factors) {
    for (IndexForm& form : factor.index) {
      std::map<Iterator, int64_t> renamed;
      for (const auto& [iterator, coefficient] : form.affine.terms)
        renamed[names.at(iterator)] = coefficient;
      form.affine.terms = std::move(renamed);
    }
  }
}

/// A term with its factors by tensor and its sums named by first occurrence, after the outputs'
/// names.
std::string CanonicalTerm(IndexTerm term, const Extents& extents,
                          std::map<Iterator, Iterator> names) {
  std::sort(term.factors.begin(), term.factors.end(),
            [](const Factor& a, const Factor& b) { return a.tensor < b.tensor; });
  Extents renamed(names.size(), 0);
  const auto name = [&](Iterator iterator) {
    const bool is_new = names.emplace(iterator, static_cast<Iterator>(renamed.size())).second;
    if (is_new) renamed.push_back(extents[static_cast<size_t>(iterator)]);
  };
  for (const Factor& factor : term.factors) {
    for (const IndexForm& form : factor.index) {
      for (const auto& [iterator, coefficient] : form.affine.terms) name(iterator);
    }
  }
  for (Iterator sum : term.sums) name(sum);
  Rename(term, names);
  return TermString(term, renamed);
}

std::string CanonicalStage(const IndexExpression& stage) {
  std::map<Iterator, Iterator> names;
  std::string text;
  for (const OutputDim& dim : stage.outputs) {
    for (Iterator i : dim.iterators) {
      names.emplace(i, static_cast<Iterator>(names.size()));
      text += Cat(stage.extent(i), " ");
    }
    text += Cat("@", dim.begin, ":", dim.extent, ",");
  }
  std::vector<std::string> terms;
  for (const IndexTerm& term : stage.terms)
    terms.push_back(CanonicalTerm(term, stage.extents, names));
  std::sort(terms.begin(), terms.end());
  for (const std::string& term : terms) text += Cat(" + ", term);
  return text;
}

}  // namespace

Iterator IndexExpression::NewIterator(int64_t extent) {
  extents.push_back(extent);
  return static_cast<Iterator>(extents.size() - 1);
}

std::vector<Iterator> IndexExpression::OutputIterators() const {
  std::vector<Iterator> all;
  for (const OutputDim& dim : outputs)
    all.insert(all.end(), dim.iterators.begin(), dim.iterators.end());
  return all;
}

Shape IndexExpression::OutputShape() const {
  Shape shape;
  for (const OutputDim& dim : outputs) shape.push_back(dim.extent);
  return shape;
}

Shape Program::TensorShape(int tensor) const {
  const size_t k = static_cast<size_t>(tensor);
  return k < leaves.size() ? leaves[k] : stages[k - leaves.size()].OutputShape();
}

void Substitute(IndexTerm& term, Iterator iterator, const Affine& value) {
  for (Factor& factor : term.factors) {
    for (IndexForm& form : factor.index) form.affine = form.affine.Substituted(iterator, value);
  }
}

std::vector<Occurrence> OccurrencesOf(const IndexTerm& term, Iterator iterator) {
  std::vector<Occurrence> found;
  for (size_t f = 0; f < term.factors.size(); ++f) {
    for (size_t d = 0; d < term.factors[f].index.size(); ++d) {
      const IndexForm& form = term.factors[f].index[d];
      const int64_t coefficient = form.affine.Coefficient(iterator);
      if (coefficient != 0)
        found.push_back({f, d, coefficient, form.divisor == 1 && form.affine.IsIterator()});
    }
  }
  return found;
}

bool Uses(const Factor& factor, Iterator iterator) {
  return std::any_of(factor.index.begin(), factor.index.end(),
                     [&](const IndexForm& form) { return form.affine.Uses(iterator); });
}

bool IsGuarded(const Program& program, const IndexExpression& expression, const IndexTerm& term,
               Iterator iterator) {
  for (const Occurrence& at : OccurrencesOf(term, iterator)) {
    const Factor& factor = term.factors[at.factor];
    if (at.alone && program.TensorShape(factor.tensor)[at.dim] <= expression.extent(iterator))
      return true;
  }
  return false;
}

std::string ProgramString(const Program& program) {
  std::string text;
  for (size_t k = 0; k < program.leaves.size(); ++k)
    text += Cat("T", k, " ", ShapeString(program.leaves[k]), "\n");
  for (size_t s = 0; s < program.stages.size(); ++s) {
    text += Cat("T", program.StageTensor(s), ": ", StageString(program.stages[s]), "\n");
  }
  return text;
}

std::string CanonicalKey(const Program& program) {
  std::string text;
  for (const Shape& leaf : program.leaves) text += Cat(ShapeString(leaf), " ");
  for (const IndexExpression& stage : program.stages) text += Cat("\n", CanonicalStage(stage));
  return text;
}

}  // namespace mendel
