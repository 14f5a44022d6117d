#include "onnx/size_relations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>

#include "base/status.h"
#include "graph/loop.h"

namespace mendel {
namespace {

/// Floats of larger tensors are weights.
constexpr int64_t kMostFloats = 4096;
constexpr int64_t kMostIntegers = int64_t{1} << 22;
/// Smaller reaches and pads are covered by the sizes that are always compared, 16 in the dimension
/// with the smallest ones.
constexpr int64_t kLeastReach = 13;
/// Places of the largest of so many numbers have relations of their own.
constexpr int64_t kMostPlaces = 16;

template <class Number>
uint8_t Relation(Number a, Number b) {
  if (a < b) return 1;
  return a == b ? 2 : 4;
}

bool IsSmall(const TensorType& type) {
  return NumElements(type) <= (IsFloat(type.dtype) ? kMostFloats : kMostIntegers);
}

/// Position `i`, or the last one of a shorter tensor.
int64_t Place(const Tensor& tensor, int64_t i) { return std::min(i, tensor.size() - 1); }

/// 1: below the dtype's integers, 2: among them, 4: above.
uint8_t RelationToRange(double number, DType dtype) {
  if (number < static_cast<double>(LowestInteger(dtype))) return 1;
  return number > static_cast<double>(HighestInteger(dtype)) ? 4 : 2;
}

/// Compares the elements of operands of one size, or all elements with the only one of the other:
/// those of short operands one by one.
void AddOperands(const std::string& key, const Tensor& a, const Tensor& b, double sign_of_b,
                 SizeRelations& relations) {
  const int64_t size = std::max(a.size(), b.size());
  if (a.size() == 0 || b.size() == 0) return;
  const bool integers = IsIntegral(a.dtype()) && IsIntegral(b.dtype()) && sign_of_b > 0;
  const auto relation = [&](int64_t i) {
    const int64_t x = Place(a, i), y = Place(b, i);
    return integers ? Relation(a.IntAt(x), b.IntAt(y))
                    : Relation(a.DoubleAt(x), sign_of_b * b.DoubleAt(y));
  };
  uint8_t all = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (size <= kMostPlaces) relations[Cat(key, " of ", size, " at ", i)] |= relation(i);
    if (size > kMostPlaces) all |= relation(i);
  }
  if (all != 0) relations[key] |= all;
}

/// Sums, differences and products that leave their dtype wrap.
void AddWrapping(const std::string& key, std::string_view op, DType dtype, const Tensor& a,
                 const Tensor& b, SizeRelations& relations) {
  if (!IsIntegral(dtype) || a.size() == 0 || b.size() == 0) return;
  uint8_t& relation = relations[key];
  for (int64_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const double x = a.DoubleAt(Place(a, i)), y = b.DoubleAt(Place(b, i));
    const double exact = op == "Mul" ? x * y : op == "Sub" ? x - y : x + y;
    relation |= RelationToRange(exact, dtype);
  }
}

bool ComparesOperands(std::string_view op) {
  constexpr std::array<std::string_view, 12> kOperators = {
      "Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
      "Min", "Mod", "Pow",   "Sub"};
  return std::find(kOperators.begin(), kOperators.end(), op) != kOperators.end();
}

/// The first position of the largest element, or of the smallest.
int64_t PositionOfExtreme(const Tensor& tensor, bool largest) {
  int64_t best = 0;
  for (int64_t i = 1; i < tensor.size(); ++i) {
    const double distance = tensor.DoubleAt(i) - tensor.DoubleAt(best);
    if (largest ? distance > 0 : distance < 0) best = i;
  }
  return best;
}

/// Relations of whole numbers to the first ones: a quotient becomes 1 at some size, and then 2.
void AddTruncated(const std::string& key, const Tensor& tensor, SizeRelations& relations) {
  for (const int64_t first : {0, 1}) {
    uint8_t& relation = relations[Cat(key, " to ", first)];
    for (int64_t i = 0; i < tensor.size(); ++i)
      relation |= Relation(std::trunc(std::abs(tensor.DoubleAt(i))), static_cast<double>(first));
  }
}

/// The number from which on a dtype does not hold every whole number.
double LargestWhole(DType dtype) {
  if (dtype == DType::kBF16) return 0x1p8;
  if (dtype == DType::kF16) return 0x1p11;
  return dtype == DType::kF32 ? 0x1p24 : 0x1p53;
}

/// A float that a dtype holds as an infinity only: a relation beside smaller, equal and larger.
constexpr uint8_t kOverflows = 8;

/// A cast that not every number survives.
void AddCast(const std::string& key, const Tensor& tensor, DType to, SizeRelations& relations) {
  if (to == DType::kBool) return;
  uint8_t& relation = relations[key];
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double number = tensor.DoubleAt(i);
    relation |=
        IsIntegral(to) ? RelationToRange(number, to) : Relation(std::abs(number), LargestWhole(to));
    if (!IsIntegral(to) && !std::isfinite(RoundTo(to, number))) relation |= kOverflows;
  }
  if (IsIntegral(to) && IsFloat(tensor.dtype())) AddTruncated(key, tensor, relations);
}

/// A function of one operand is in another piece where its result becomes 0, 1, -1, the operand or
/// its opposite: behind a kink, or where a float holds no difference.
uint8_t PieceOf(double operand, double result) {
  if (result == 0) return 1;
  if (result == operand) return 2;
  if (result == -operand) return 4;
  return std::abs(result) == 1 ? 8 : 16;
}

void AddPieces(const std::string& key, const Tensor& operand, const Tensor& result,
               SizeRelations& relations) {
  if (!IsFloat(result.dtype())) return;
  uint8_t all = 0;
  for (int64_t i = 0; i < result.size(); ++i) {
    const uint8_t piece = PieceOf(operand.DoubleAt(i), result.DoubleAt(i));
    if (result.size() <= kMostPlaces)
      relations[Cat(key, " of ", result.size(), " at ", i)] |= piece;
    all |= piece;
  }
  if (result.size() > kMostPlaces) relations[key] |= all;
}

/// A sum of floats that equals one of its terms.
void AddAbsorbed(const std::string& key, DType dtype, const Tensor& a, const Tensor& b, double sign,
                 SizeRelations& relations) {
  if (!IsFloat(dtype) || a.size() == 0 || b.size() == 0) return;
  uint8_t& relation = relations[key];
  for (int64_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const double x = a.DoubleAt(Place(a, i)), y = sign * b.DoubleAt(Place(b, i));
    const double sum = RoundTo(dtype, x + y);
    relation |= sum == x ? 1 : sum == y ? 2 : 4;
  }
}

/// Indices against the ends of a table, against the places of a short one, and against those of
/// the largest and smallest numbers of a known one.
void AddIndices(const std::string& key, int64_t extent, const Tensor* table, const Tensor& indices,
                SizeRelations& relations) {
  std::set<int64_t> places;
  for (int64_t place = 0; place < extent && extent <= kMostPlaces; ++place) places.insert(place);
  if (table != nullptr && table->size() == extent) {
    places.insert(PositionOfExtreme(*table, true));
    places.insert(PositionOfExtreme(*table, false));
  }
  const auto relate = [&](const std::string& name, int64_t place) {
    if (indices.size() == 0) return;
    uint8_t& relation = relations[name];
    for (int64_t i = 0; i < indices.size(); ++i) relation |= Relation(indices.IntAt(i), place);
  };
  relate(Cat(key, " last"), extent - 1);
  relate(Cat(key, " first"), -extent);
  for (const int64_t place : places) relate(Cat(key, " of ", extent, " at ", place), place);
}

/// The number of steps against the numbers that the body knows.
void AddSteps(const std::string& key, const Node& node, SizeRelations& relations) {
  const std::shared_ptr<const Graph> body = LoopBodyOf(node.attrs);
  const auto steps = static_cast<double>(node.attrs.Int("steps"));
  int64_t literal = 0;
  for (const Node& inner : body->nodes()) {
    if (!IsConstant(inner) || ConstantValue(inner).size() != 1) continue;
    const double number = std::abs(ConstantValue(inner).DoubleAt(0));
    relations[Cat(key, " steps to literal ", literal)] |= Relation(steps - 1, number);
    // A counter times a literal below 1 reaches 1 there.
    if (number > 0 && number < 1)
      relations[Cat(key, " steps to inverse ", literal)] |= Relation(steps - 1, 1 / number);
    ++literal;
  }
}

void AddFirstCounts(const std::string& key, int64_t count, SizeRelations& relations) {
  for (const int64_t first : {1, 2})
    AddSizeRelation(Cat(key, " to ", first), count, first, relations);
}

/// The farthest that a window of `node` reaches, against the dimension it moves along.
void AddWindow(const std::string& key, const Node& node, const Shape& input, const Shape& kernel,
               SizeRelations& relations) {
  const size_t spatial = kernel.size();
  if (input.size() < spatial) return;
  const Ints dilations = node.attrs.IntList("dilations"), pads = node.attrs.IntList("pads");
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t dilation = d < dilations.size() ? dilations[d] : 1;
    const int64_t reach = dilation * (kernel[d] - 1);
    if (reach < kLeastReach) continue;
    const int64_t extent = input[input.size() - spatial + d];
    const auto pad = [&](size_t at) { return at < pads.size() ? pads[at] : 0; };
    AddSizeRelation(Cat(key, " reach ", d), reach + 1, extent, relations);
    AddSizeRelation(Cat(key, " begin ", d), reach + 1 - pad(d), extent, relations);
    AddSizeRelation(Cat(key, " end ", d), reach + 1 - pad(d + spatial), extent, relations);
  }
}

/// The counts of windows against the first ones: a stride shows in the second.
void AddCounts(const std::string& key, const Node& node, size_t spatial, SizeRelations& relations) {
  const Shape& out = node.outputs[0].shape;
  const Ints strides = node.attrs.IntList("strides");
  for (size_t d = 0; d < spatial && d < strides.size() && spatial <= out.size(); ++d) {
    if (strides[d] < kLeastReach) continue;
    AddFirstCounts(Cat(key, " windows ", d), out[out.size() - spatial + d], relations);
  }
}

/// Compares what is put before and behind an axis with what stands there.
void AddJoined(const std::string& key, const GraphBuilder& builder, const Node& node,
               SizeRelations& relations) {
  const Shape& first = builder.type(node.inputs[0]).shape;
  if (node.op->name == "Pad") {
    const Ints pads = node.attrs.IntList("pads");
    for (size_t i = 0; i < pads.size() && !first.empty(); ++i) {
      if (std::abs(pads[i]) >= kLeastReach)
        AddSizeRelation(Cat(key, " pad ", i), std::abs(pads[i]), first[i % first.size()],
                        relations);
    }
    return;
  }
  const auto axis = static_cast<size_t>(node.attrs.Int("axis"));
  const size_t count = std::min<size_t>(node.inputs.size(), kMostPlaces);
  for (size_t i = 1; i < count; ++i) {
    AddSizeRelation(Cat(key, " part ", i), builder.type(node.inputs[i]).shape[axis], first[axis],
                    relations);
  }
}

/// The relations of attributes to these shapes.
void AddShapes(const GraphBuilder& builder, const std::string& key, const Node& node,
               SizeRelations& relations) {
  if (node.inputs.empty()) return;
  const Shape& shape = builder.type(node.inputs[0]).shape;
  const std::string_view op = node.op->name;
  if (op == "Trilu") {
    const int64_t diagonal = std::abs(node.attrs.Int("k"));
    for (size_t d = shape.size() - 2; d < shape.size(); ++d) {
      AddSizeRelation(Cat(key, " diagonal ", d), diagonal, shape[d], relations);
      AddSizeRelation(Cat(key, " behind diagonal ", d), diagonal + 1, shape[d], relations);
    }
  } else if (op == "LRN") {
    if (node.attrs.Int("size") / 2 >= kLeastReach)
      AddSizeRelation(Cat(key, " size"), node.attrs.Int("size") / 2, shape[1], relations);
  } else if (op == "Conv" || op == "ConvTranspose") {
    const Shape& weights = builder.type(node.inputs[1]).shape;
    AddWindow(key, node, shape, Shape(weights.begin() + 2, weights.end()), relations);
    AddCounts(key, node, weights.size() - 2, relations);
  } else if (op == "AveragePool" || op == "MaxPool" || op == "LpPool") {
    AddWindow(key, node, shape, node.attrs.IntList("kernel_shape"), relations);
    AddCounts(key, node, node.attrs.IntList("kernel_shape").size(), relations);
  } else if (op == "Pad" || op == "Concat") {
    AddJoined(key, builder, node, relations);
  }
}

using Constants = std::function<const Tensor*(ValueId)>;

/// Operators whose results are compared in other ways, or follow their operands.
bool FollowsOperands(std::string_view op) {
  constexpr std::array<std::string_view, 19> kOperators = {
      "Add",     "Cast",  "Concat", "Conv",      "Div",     "Expand",     "Gather",
      "MatMul",  "Mod",   "Mul",    "Neg",       "Pow",     "ReduceProd", "ReduceSum",
      "Reshape", "Slice", "Sub",    "Transpose", "Constant"};
  return std::find(kOperators.begin(), kOperators.end(), op) != kOperators.end();
}

/// Places of a short result that become 0, 1 or negative: positions, counts, chosen numbers.
void AddSigns(const GraphBuilder& builder, int32_t id, const std::string& key,
              const Constants& constant, SizeRelations& relations) {
  const Node& node = builder.node(id);
  if (FollowsOperands(node.op->name)) return;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const int64_t size = NumElements(node.outputs[k]);
    if (size > kMostPlaces) continue;
    const Tensor* result = constant({id, static_cast<int32_t>(k)});
    for (int64_t i = 0; result != nullptr && i < size; ++i) {
      const double number = result->DoubleAt(i);
      relations[Cat(key, " result ", k, " of ", size, " at ", i)] |= number == 0   ? 1
                                                                     : number == 1 ? 2
                                                                     : number > 0  ? 4
                                                                                   : 8;
    }
  }
}

void AddOnlyOperand(const GraphBuilder& builder, int32_t id, const std::string& key,
                    const Constants& constant, SizeRelations& relations) {
  const ValueId input = builder.node(id).inputs[0];
  if (!IsSmall(builder.type(input)) || builder.type(input) != builder.type({id, 0})) return;
  const Tensor* operand = constant(input);
  if (operand == nullptr) return;
  const Tensor* result = constant({id, 0});
  if (result != nullptr) AddPieces(Cat(key, " piece"), *operand, *result, relations);
}

}  // namespace

void AddSizeRelation(const std::string& key, int64_t a, int64_t b, SizeRelations& relations) {
  relations[key] |= Relation(a, b);
}

void AddEmitted(const std::string& name, std::string_view op, SizeRelations& relations) {
  unsigned sum = 0;
  for (const char letter : op) sum = 31 * sum + static_cast<unsigned char>(letter);
  relations[Cat(name, " becomes")] |= static_cast<uint8_t>(1u << sum % 8);
}

void AddSizeRelations(const GraphBuilder& builder, int32_t id, const std::string& name,
                      const std::function<const Tensor*(ValueId)>& constant,
                      SizeRelations& relations) {
  const Node& node = builder.node(id);
  const std::string_view op = node.op->name;
  const std::string key = Cat(name, " ", op);
  AddShapes(builder, key, node, relations);
  std::vector<const Tensor*> operands;
  const bool compares = ComparesOperands(op) && node.inputs.size() == 2;
  const bool wraps = op == "Add" || op == "Mul" || op == "Sub";
  AddSigns(builder, id, key, constant, relations);
  const bool extreme = op == "ReduceMax" || op == "ReduceMin" || op == "ArgMax" || op == "ArgMin";
  const bool truncates = op == "Floor" || op == "Ceil" || op == "Round";
  if (op == "Loop") AddSteps(key, node, relations);
  if (node.inputs.size() == 1 && op != "Cast")
    AddOnlyOperand(builder, id, key, constant, relations);
  if (!compares && !wraps && !extreme && !truncates && op != "Cast" && op != "Gather" &&
      op != "Clip")
    return;
  for (const ValueId input : node.inputs) {
    const Tensor* tensor = IsSmall(builder.type(input)) ? constant(input) : nullptr;
    if (tensor == nullptr && (op != "Gather" || !operands.empty())) return;
    operands.push_back(tensor);
  }
  if (wraps) {
    AddWrapping(Cat(key, " range"), op, node.outputs[0].dtype, *operands[0], *operands[1],
                relations);
  }
  if (op == "Add" || op == "Sub") {
    AddAbsorbed(Cat(key, " absorbed"), node.outputs[0].dtype, *operands[0], *operands[1],
                op == "Sub" ? -1 : 1, relations);
  }
  if (compares) {
    AddOperands(key, *operands[0], *operands[1], op == "Add" ? -1 : 1, relations);
  } else if (op == "Gather") {
    const Shape& table = builder.type(node.inputs[0]).shape;
    const int64_t extent = table[static_cast<size_t>(node.attrs.Int("axis"))];
    AddIndices(key, extent, operands[0], *operands[1], relations);
  } else if (truncates) {
    AddTruncated(key, *operands[0], relations);
  } else if (op == "Clip") {
    for (const char* bound : {"min", "max"}) {
      const Tensor limit = Tensor::Scalar(DType::kF64, node.attrs.Float(bound));
      AddOperands(Cat(key, " ", bound), *operands[0], limit, 1, relations);
    }
  } else if (op == "Cast") {
    AddCast(key, *operands[0], node.outputs[0].dtype, relations);
  } else if (extreme) {
    const bool largest = op == "ReduceMax" || op == "ArgMax";
    const int64_t position = PositionOfExtreme(*operands[0], largest);
    for (int64_t i = 0; i < std::min(operands[0]->size(), kMostPlaces); ++i)
      AddSizeRelation(Cat(key, " of ", operands[0]->size(), " at ", i), i, position, relations);
  }
}

bool SameSizeRelations(const SizeRelations& a, const SizeRelations& b) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (x->first < y->first) {
      ++x;
    } else if (y->first < x->first) {
      ++y;
    } else {
      if (x->second != y->second) return false;
      ++x, ++y;
    }
  }
  return true;
}

}  // namespace mendel
