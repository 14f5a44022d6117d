#include "optimizer/refit/refit_sums.h"

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

namespace mendel {
namespace {

/// Elements of a kernel that stands for the value itself.
constexpr int64_t kLargestIdentity = int64_t{1} << 22;
/// Branches that are looked at.
constexpr size_t kMostBranches = 64;

bool IsContraction(const RefitTerms& terms, RefitTerm term) {
  const Node& node = terms.node(term);
  if (node.op->name != "Conv" && node.op->name != "MatMul") return false;
  if (node.inputs.size() != 2 || terms.IsWeight(node.inputs[0]) || !terms.IsWeight(node.inputs[1]))
    return false;
  return node.op->name == "Conv" || terms.shape(node.inputs[1]).size() == 2;
}

class Merger {
 public:
  explicit Merger(RefitTerms& terms) : t_(terms) {}

  std::optional<RefitTerm> Run(RefitTerm sum) {
    shape_ = t_.shape(sum);
    if (!FindValue(sum) || !Collect(sum) || contractions_.size() + multiples_.size() < 2)
      return std::nullopt;
    const bool merged = t_.node(contractions_[0]).op->name == "Conv" ? Kernels() : Matrices();
    if (!merged) return std::nullopt;
    const Node largest = t_.node(largest_);
    RefitTerm result = t_.Op(largest.op->name, {value_, weight_}, largest.attrs);
    if (bias_.has_value()) result = t_.Op("Add", {result, *bias_});
    return result;
  }

 private:
  /// The operand of the contraction that is the fewest additions away from the sum.
  bool FindValue(RefitTerm sum) {
    std::deque<RefitTerm> open = {sum};
    for (size_t seen = 0; !open.empty() && seen < kMostBranches; ++seen) {
      const RefitTerm term = open.front();
      open.pop_front();
      if (IsContraction(t_, term)) {
        value_ = t_.node(term).inputs[0];
        return true;
      }
      if (t_.node(term).op->name != "Add") continue;
      for (RefitTerm input : t_.node(term).inputs) open.push_back(input);
    }
    return false;
  }

  /// Sorts the addends; false where one is no branch of the value.
  bool Collect(RefitTerm term) {
    if (t_.IsWeight(term)) {
      bias_ = bias_.has_value() ? t_.Op("Add", {*bias_, term}) : term;
      return true;
    }
    if (t_.shape(term) != shape_) return false;
    const Node node = t_.node(term);
    const bool product = node.op->name == "Mul" && node.inputs[0] == value_;
    if (term == value_) {
      multiples_.push_back(t_.Constant(Tensor::Scalar(t_.type(term).dtype, 1), ""));
    } else if (product && t_.IsWeight(node.inputs[1])) {
      multiples_.push_back(node.inputs[1]);
    } else if (IsContraction(t_, term) && node.inputs[0] == value_) {
      contractions_.push_back(term);
    } else {
      return node.op->name == "Add" && contractions_.size() < kMostBranches &&
             Collect(node.inputs[0]) && Collect(node.inputs[1]);
    }
    return true;
  }

  void AddWeight(RefitTerm weight) { weight_ = t_.Op("Add", {weight_, weight}); }

  bool Kernels() {
    largest_ = contractions_[0];
    for (RefitTerm conv : contractions_) {
      if (NumElements(t_.shape(t_.node(conv).inputs[1])) >
          NumElements(t_.shape(t_.node(largest_).inputs[1])))
        largest_ = conv;
    }
    weight_ = t_.node(largest_).inputs[1];
    for (RefitTerm conv : contractions_) {
      if (conv == largest_) continue;
      const Node node = t_.node(conv);
      const std::optional<RefitTerm> padded = PaddedKernel(node.inputs[1], node.attrs);
      if (!padded.has_value()) return false;
      AddWeight(*padded);
    }
    for (RefitTerm multiple : multiples_) {
      const std::optional<RefitTerm> kernel = KernelOfMultiple(multiple);
      if (!kernel.has_value()) return false;
      AddWeight(*kernel);
    }
    return true;
  }

  /// The kernel with zeros around it, for the pads and dilations of the largest convolution.
  std::optional<RefitTerm> PaddedKernel(RefitTerm kernel, const Attributes& attrs) {
    const Node largest = t_.node(largest_);
    if (attrs.Int("group") != largest.attrs.Int("group") ||
        attrs.IntList("strides") != largest.attrs.IntList("strides"))
      return std::nullopt;
    const Shape from = t_.shape(kernel), to = t_.shape(largest.inputs[1]);
    if (from.size() != to.size() || from[0] != to[0] || from[1] != to[1]) return std::nullopt;
    Ints pads(2 * to.size(), 0);
    for (size_t d = 2; d < to.size(); ++d) {
      const int64_t step = largest.attrs.IntList("dilations")[d - 2];
      const int64_t shift = largest.attrs.IntList("pads")[d - 2] - attrs.IntList("pads")[d - 2];
      const bool in_step = from[d] == 1 || attrs.IntList("dilations")[d - 2] == step;
      pads[d] = shift / step;
      pads[to.size() + d] = to[d] - from[d] - pads[d];
      if (!in_step || shift % step != 0 || pads[d] < 0 || pads[to.size() + d] < 0)
        return std::nullopt;
    }
    if (from == to) return kernel;
    return t_.Op("Pad", {kernel}, {{"pads", std::move(pads)}});
  }

  /// The kernel that multiplies each channel of the value by its element of `multiple`.
  std::optional<RefitTerm> KernelOfMultiple(RefitTerm multiple) {
    const Node largest = t_.node(largest_);
    const Shape to = t_.shape(largest.inputs[1]);
    const int64_t channels = to[0], rows = to[1], group = largest.attrs.Int("group");
    const size_t spatial = to.size() - 2;
    if (t_.shape(value_) != shape_ || rows * group != channels ||
        channels * rows > kLargestIdentity)
      return std::nullopt;
    Shape shape(to.size(), 1);
    if (NumElements(t_.shape(multiple)) != 1) {
      const Shape& of = t_.shape(multiple);
      if (of.size() < spatial + 1 || of[of.size() - spatial - 1] != channels ||
          NumElements(of) != channels)
        return std::nullopt;
      shape[0] = channels;
    }
    Shape kernel(to.size(), 1);
    kernel[0] = channels, kernel[1] = rows;
    std::vector<double> ones(static_cast<size_t>(channels * rows), 0);
    for (int64_t c = 0; c < channels; ++c) ones[static_cast<size_t>(c * rows + c % rows)] = 1;
    const RefitTerm identity =
        t_.Constant(Tensor::FromDoubles({t_.type(value_).dtype, kernel}, ones), "");
    const Attributes attrs{{"group", group},
                           {"strides", Ints(spatial, 1)},
                           {"dilations", Ints(spatial, 1)},
                           {"pads", Ints(2 * spatial, 0)}};
    return PaddedKernel(t_.Op("Mul", {identity, t_.Reshape(multiple, shape)}), attrs);
  }

  bool Matrices() {
    largest_ = contractions_[0];
    weight_ = t_.node(largest_).inputs[1];
    for (size_t k = 1; k < contractions_.size(); ++k)
      AddWeight(t_.node(contractions_[k]).inputs[1]);
    return multiples_.empty();
  }

  RefitTerms& t_;
  Shape shape_;
  RefitTerm value_;
  std::vector<RefitTerm> contractions_;
  std::vector<RefitTerm> multiples_;
  std::optional<RefitTerm> bias_;
  RefitTerm largest_;
  RefitTerm weight_;
};

}  // namespace

bool IsOneContraction(const RefitTerms& terms, RefitTerm term) {
  if (IsContraction(terms, term)) return true;
  const Node& node = terms.node(term);
  return node.op->name == "Add" && terms.IsWeight(node.inputs[1]) &&
         IsContraction(terms, node.inputs[0]);
}

std::optional<RefitTerm> MergedBranches(RefitTerms& terms, RefitTerm sum) {
  if (terms.node(sum).op->name != "Add" || terms.IsWeight(sum)) return std::nullopt;
  return Merger(terms).Run(sum);
}

}  // namespace mendel
