#include "tests/mutation_place.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/status.h"

namespace mendel {
namespace {

std::string_view KindOfAttribute(std::string_view name) {
  if (name == "axis" || name == "axes" || name == "perm") return "axis";
  if (name == "pads" || name == "output_padding") return "pad";
  if (name == "starts" || name == "ends" || name == "steps" || name == "split") return "slice";
  if (name == "boxes") return "box";
  return "attribute";
}

void ChangeInts(Rng& rng, Ints& values) {
  if (values.empty()) return;
  const size_t a = PickIndex(rng, values.size()), b = PickIndex(rng, values.size());
  const int64_t by = rng.Flip() ? 1 : -1;
  switch (rng.Below(4)) {
    case 0:
      values[a] += by;
      break;
    case 1:  // the extent that results stays
      values[a] += by;
      values[b] -= by;
      break;
    case 2:
      std::swap(values[a], values[b]);
      break;
    default:
      std::reverse(values.begin(), values.end());
  }
}

std::string OtherString(Rng& rng) {
  static const std::vector<std::string> kKnown = {
      "constant", "edge",  "reflect", "wrap",       "nearest",   "linear", "cubic",
      "DCR",      "CRD",   "none",    "tanh",       "add",       "mul",    "max",
      "min",      "floor", "ceil",    "asymmetric", "half_pixel"};
  return kKnown[PickIndex(rng, kKnown.size())];
}

AttrValue Changed(Rng& rng, const AttrValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value))
    return rng.Flip(0.3) ? 1 - *number : *number + (rng.Flip() ? 1 : -1);
  if (const auto* number = std::get_if<double>(&value))
    return rng.Flip() ? *number + 0.5 : -*number;
  if (std::holds_alternative<std::string>(value)) return OtherString(rng);
  if (const auto* numbers = std::get_if<Ints>(&value)) {
    Ints changed = *numbers;
    ChangeInts(rng, changed);
    return changed;
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    std::vector<double> changed = *numbers;
    if (!changed.empty()) changed[PickIndex(rng, changed.size())] += rng.Flip() ? 0.5 : -0.5;
    return changed;
  }
  if (const auto* boxes = std::get_if<Boxes>(&value)) {
    Boxes changed = *boxes;
    if (changed.empty() || changed[0].begin.empty()) return changed;
    Box& box = changed[PickIndex(rng, changed.size())];
    const size_t d = PickIndex(rng, box.begin.size());
    const int64_t by = rng.Flip() ? 1 : -1;
    box.begin[d] += by;
    box.end[d] += by;
    return changed;
  }
  return value;
}

}  // namespace

MutatedValues ChangeAttribute(const MutationPlace& at, std::string_view kind) {
  if (IsInput(at.site.node) || IsConstant(at.site.node)) return {};
  std::vector<std::string> names;
  for (const auto& [name, value] : at.site.node.attrs.values()) {
    if (KindOfAttribute(name) == kind) names.push_back(name);
  }
  if (names.empty()) return {};
  Attributes attrs = at.site.node.attrs;
  const std::string& name = names[PickIndex(at.rng, names.size())];
  if (attrs.Has("starts") && attrs.Has("ends") && at.rng.Flip() &&
      !attrs.IntList("starts").empty()) {
    Ints starts = attrs.IntList("starts"), ends = attrs.IntList("ends");
    const size_t d = PickIndex(at.rng, starts.size());
    const int64_t by = at.rng.Flip() ? 1 : -1;
    starts[d] += by;
    ends[d] += by;
    attrs.Set("starts", starts);
    attrs.Set("ends", ends);
  } else {
    attrs.Set(name, Changed(at.rng, attrs.Get(name)));
  }
  return attrs == at.site.node.attrs ? MutatedValues() : at.Again(at.site.inputs, attrs);
}

MutatedValues Coefficient(const MutationPlace& at) {
  if (!IsConstant(at.site.node)) return {};
  const Tensor& tensor = ConstantValue(at.site.node);
  if (!IsFloat(tensor.dtype()) || tensor.size() == 0) return {};
  std::vector<double> values = tensor.ToDoubles();
  double& value = values[PickIndex(at.rng, values.size())];
  const double old = value;
  switch (at.rng.Below(3)) {
    case 0:
      value += 1;
      break;
    case 1:
      value = value == 0 ? 0.5 : -value;
      break;
    default:
      value = value * 1.015625;
  }
  if (RoundTo(tensor.dtype(), value) == old) return {};
  const std::string symbol =
      SymbolName(at.site.node).empty()
          ? ""
          : Cat(SymbolName(at.site.node), " changed ", at.rng.Below(1000000));
  return {at.builder.Constant(Tensor::FromDoubles(tensor.type(), values), symbol)};
}

MutatedValues StoredIndex(const MutationPlace& at) {
  if (!IsConstant(at.site.node)) return {};
  const Tensor& tensor = ConstantValue(at.site.node);
  if (IsFloat(tensor.dtype()) || tensor.size() == 0) return {};
  std::vector<int64_t> values = tensor.ToInts();
  int64_t& value = values[PickIndex(at.rng, values.size())];
  if (tensor.dtype() == DType::kBool) {
    value = 1 - value;
  } else {
    const int64_t other = values[PickIndex(at.rng, values.size())];
    if (at.rng.Flip() && other != value) {
      value = other;
    } else if (value > 0) {
      --value;
    } else {
      return {};
    }
  }
  return {at.builder.Constant(Tensor::FromInts(tensor.type(), values))};
}

MutatedValues OtherWeight(const MutationPlace& at) {
  if (!IsConstant(at.site.node) || SymbolName(at.site.node).empty()) return {};
  const Tensor& tensor = ConstantValue(at.site.node);
  std::vector<double> values = tensor.ToDoubles();
  std::reverse(values.begin(), values.end());
  if (values == tensor.ToDoubles()) return {};
  return {at.builder.Constant(Tensor::FromDoubles(tensor.type(), values),
                              Cat(SymbolName(at.site.node), " reversed"))};
}

}  // namespace mendel
