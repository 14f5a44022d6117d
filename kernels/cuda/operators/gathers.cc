// Operators that move elements by indices in tensors. An index that does not exist reads NaN or 0,
// and is dropped when written.

#include <limits>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda::texts::gathers {
namespace {

using Names = std::vector<std::string>;

/// `index` (long long) counted from the beginning of `extent`; an index outside stays outside.
std::string Resolved(const ElementAt& at, const std::string& index, int64_t extent) {
  return at.code.Let("long long", Cat(index, " < 0 ? ", index, " + ", extent, " : ", index));
}
std::string Exists(const std::string& resolved, int64_t extent) {
  return Cat(resolved, " >= 0 && ", resolved, " < ", extent);
}
std::string AsIndex(const ElementAt& at, const std::string& resolved) {
  return at.code.LetIndex(Cat("static_cast<", at.code.index_type(), ">(", resolved, ")"));
}

/// The element of input 0 at `from`, where the conditions hold.
std::string Guarded(const ElementAt& at, const std::string& condition,
                    const std::function<Names()>& from) {
  const std::string value = at.code.Variable(
      at.real(), IsFloat(at.dtype()) ? at.Literal(std::numeric_limits<double>::quiet_NaN()) : "0");
  at.code.Open(Cat("if (", condition, ")"));
  const std::string element = at.In(0, from());
  at.code.Line(Cat(value, " = ", element, ";"));
  at.code.Close();
  return value;
}

std::string GatherElement(const ElementAt& at) {
  const std::ptrdiff_t axis = at.view.attrs.Int("axis");
  const std::ptrdiff_t rank = static_cast<std::ptrdiff_t>(at.shape(1).size());
  const int64_t extent = at.shape(0)[static_cast<size_t>(axis)];
  const Names& o = at.position.at;
  const std::string index =
      Resolved(at, at.In(1, Names(o.begin() + axis, o.begin() + axis + rank)), extent);
  return Guarded(at, Exists(index, extent), [&] {
    Names from(o.begin(), o.begin() + axis);
    from.push_back(AsIndex(at, index));
    from.insert(from.end(), o.begin() + axis + rank, o.end());
    return from;
  });
}

std::string GatherElementsElement(const ElementAt& at) {
  const size_t axis = static_cast<size_t>(at.view.attrs.Int("axis"));
  const std::string index = Resolved(at, at.In(1, at.position), at.shape(0)[axis]);
  return Guarded(at, Exists(index, at.shape(0)[axis]), [&] {
    Names from = at.position.at;
    from[axis] = AsIndex(at, index);
    return from;
  });
}

std::string GatherNdElement(const ElementAt& at) {
  const std::ptrdiff_t batch = at.view.attrs.Int("batch_dims");
  const std::ptrdiff_t lead = static_cast<std::ptrdiff_t>(at.shape(1).size()) - 1;
  const Names& o = at.position.at;
  std::string condition;
  Names indices;
  for (int64_t k = 0; k < at.shape(1).back(); ++k) {
    Names tuple(o.begin(), o.begin() + lead);
    tuple.push_back(Cat(k));
    const int64_t extent = at.shape(0)[static_cast<size_t>(batch + k)];
    indices.push_back(Resolved(at, at.In(1, tuple), extent));
    condition += Cat(condition.empty() ? "" : " && ", Exists(indices.back(), extent));
  }
  return Guarded(at, condition, [&] {
    Names from(o.begin(), o.begin() + batch);
    for (const std::string& index : indices) from.push_back(AsIndex(at, index));
    from.insert(from.end(), o.begin() + lead, o.end());
    return from;
  });
}

std::string OneHotElement(const ElementAt& at) {
  const std::ptrdiff_t axis = at.view.attrs.Int("axis");
  Names from = at.position.at;
  from.erase(from.begin() + axis);
  const std::string hot = Resolved(at, at.In(0, from), at.view.attrs.Int("depth"));
  const std::string is_hot =
      at.code.LetIndex(Cat(hot, " == ", at.position.at[static_cast<size_t>(axis)], " ? 1 : 0"));
  return at.In(1, Names{is_hot});
}

std::string ReverseSequenceElement(const ElementAt& at) {
  const size_t time = static_cast<size_t>(at.view.attrs.Int("time_axis"));
  const Names& o = at.position.at;
  const std::string length =
      at.In(1, Names{o[static_cast<size_t>(at.view.attrs.Int("batch_axis"))]});
  const std::string from = at.code.Let(
      "long long", Cat(o[time], " >= ", length, " ? ", o[time], " : ", length, " - 1 - ", o[time]));
  return Guarded(at, Exists(from, at.shape(0)[time]), [&] {
    Names source = o;
    source[time] = AsIndex(at, from);
    return source;
  });
}

/// `update` combined with the element `value`, as the attribute "reduction" says.
std::string Scattered(const ElementAt& at, const std::string& value, const std::string& update) {
  const std::string& reduction = at.view.attrs.Str("reduction");
  const std::string name =
      reduction == "add" ? "Plus"
                         : (reduction == "mul" ? "Times" : (reduction == "max" ? "Max" : "Min"));
  return reduction == "none" ? update : Cat(name, "(", value, ", ", update, ")");
}

/// Each element tries all updates that could apply to it, in order. That is slow, but the result
/// does not depend on the order of the threads.
std::string ScatterElementsElement(const ElementAt& at) {
  const size_t axis = static_cast<size_t>(at.view.attrs.Int("axis"));
  const Shape& updates = at.shape(1);
  const Names& o = at.position.at;
  const std::string value = at.code.Variable(at.real(), at.In(0, at.position));
  std::string inside = "true";
  for (size_t d = 0; d < updates.size(); ++d) {
    if (d != axis && updates[d] < at.shape()[d]) inside += Cat(" && ", o[d], " < ", updates[d]);
  }
  if (NumElements(updates) == 0) return value;
  at.code.Open(Cat("if (", inside, ")"));
  Names from = o;
  from[axis] = at.code.Loop(updates[axis]);
  const std::string index = Resolved(at, at.In(1, from), at.shape()[axis]);
  at.code.Open(Cat("if (", index, " == ", o[axis], ")"));
  const std::string update = at.In(2, from);
  at.code.Line(Cat(value, " = ", Scattered(at, value, update), ";"));
  at.code.Close();
  at.code.Close();
  at.code.Close();
  return value;
}

std::string ScatterNdElement(const ElementAt& at) {
  const Shape& indices = at.shape(1);
  const size_t tuple = static_cast<size_t>(indices.back());
  const Names& o = at.position.at;
  const Shape lead(indices.begin(), indices.end() - 1);
  const std::string value = at.code.Variable(at.real(), at.In(0, at.position));
  if (NumElements(lead) == 0) return value;
  const std::string number = at.code.Loop(NumElements(lead));
  const Names which = at.code.Decode(number, lead).at;
  std::string meets = "true";
  for (size_t k = 0; k < tuple; ++k) {
    Names place = which;
    place.push_back(Cat(k));
    meets += Cat(" && ", Resolved(at, at.In(1, place), at.shape()[k]), " == ", o[k]);
  }
  at.code.Open(Cat("if (", meets, ")"));
  Names from = which;
  from.insert(from.end(), o.begin() + static_cast<std::ptrdiff_t>(tuple), o.end());
  const std::string update = at.In(2, from);
  at.code.Line(Cat(value, " = ", Scattered(at, value, update), ";"));
  at.code.Close();
  at.code.Close();
  return value;
}

MENDEL_REGISTER_OPERATOR_TEXTS({
    {.op = "Gather", .reads = Reads::kMoved, .element = &GatherElement},
    {.op = "GatherElements", .reads = Reads::kMoved, .element = &GatherElementsElement},
    {.op = "GatherND", .reads = Reads::kMoved, .element = &GatherNdElement},
    {.op = "OneHot", .reads = Reads::kMoved, .element = &OneHotElement},
    {.op = "ReverseSequence", .reads = Reads::kMoved, .element = &ReverseSequenceElement},
    {.op = "ScatterElements", .reads = Reads::kMany, .element = &ScatterElementsElement},
    {.op = "ScatterND", .reads = Reads::kMany, .element = &ScatterNdElement},
});

}  // namespace
}  // namespace mendel::cuda::texts::gathers
