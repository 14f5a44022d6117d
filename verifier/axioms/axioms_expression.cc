#include "verifier/axioms/axioms_expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/text.h"

namespace mendel::axioms_test {
namespace {

/// Translates an expression into the text form, node by node.
class Translator {
 public:
  explicit Translator(std::string_view text) : text_(text) {
    for (const char* name : {"x", "y"})
      Define(name, Cat("Input() {name = \"", name, "\", shape = [2, 3, 4]}"));
    Define("h", "Input() {name = \"h\", shape = [2, 1, 4]}");
    Define("m", "Input() {name = \"m\", shape = [3, 3]}");
    Define("z", "Input() {name = \"z\", shape = [1, 2, 6, 6]}");
    Define("b", "Input() {name = \"b\", dtype = \"bool\", shape = [2, 3, 4]}");
    for (const char* name : {"q", "q2"})
      Define(name, Cat("Input() {name = \"", name, "\", dtype = \"i8\", shape = [3]}"));
    Define("s", "Constant() {symbol = \"s\", value = f32[4]{0.5, -2, 3, -1}}");
    Define("positive", "Constant() {symbol = \"positive\", value = f32[4]{0.5, 2, 3, 1}}");
    for (const char* name : {"c1", "c2", "c3"})
      Define(name, Cat("Constant() {symbol = \"", name, "\", value = f32[2]{0.5, 2}}"));
    Define("True", "Constant() {value = bool[]{1}}");
    Define("Masked", "Constant() {value = f32[4]{0, -inf, 0, -inf}}");
    Define("Kept", "Constant() {value = f32[4]{1, 0, 1, 0}}");
    Define("Three8", "Constant() {value = i8[]{3}}");
    std::string threes = "3";
    for (int k = 1; k < 24; ++k) threes += ", 3";
    std::string ones = "1";
    for (int k = 1; k < 24; ++k) ones += ", 1";
    Define("Full1", Cat("Constant() {value = f32[2,3,4]{", ones, "}}"));
    Define("Three32", "Constant() {value = i32[]{3}}");
    Define("Full3", Cat("Constant() {value = f32[2,3,4]{", threes, "}}"));
  }

  Graph Parse() {
    const int result = Value();
    auto graph = ParseGraph(Cat("graph \"g\" {\n", nodes_, "return \"out\" = %", result, "\n}"));
    if (!graph.ok()) std::abort();
    return *graph;
  }

 private:
  int Emit(const std::string& node) {
    nodes_ += Cat("%", count_, " = ", node, "\n");
    return count_++;
  }
  void Define(const std::string& name, const std::string& node) { names_[name] = Emit(node); }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipSpace() {
    while (Peek() == ' ') ++at_;
  }
  std::string Word() {
    const size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(Peek())) != 0 || Peek() == '.' ||
           Peek() == '-' || Peek() == '_')
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  int Value() {
    SkipSpace();
    const std::string word = Word();
    if (Peek() != '(') {
      const auto name = names_.find(word);
      return name != names_.end() ? name->second
                                  : Emit(Cat("Constant() {value = f32[]{", word, "}}"));
    }
    std::string operands;
    do {
      ++at_;
      operands += Cat(operands.empty() ? "%" : ", %", Value());
      SkipSpace();
    } while (Peek() == ',');
    MENDEL_CHECK(Peek() == ')');
    ++at_;
    std::string attributes;
    if (Peek() == '{') {
      const size_t end = text_.find('}', at_);
      attributes = Cat(" ", text_.substr(at_, end + 1 - at_));
      at_ = end + 1;
    }
    return Emit(Cat(word, "(", operands, ")", attributes));
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string nodes_;
  int count_ = 0;
  std::map<std::string, int> names_;
};

double Number(Rng& rng) {
  constexpr std::array<double, 13> kNumbers = {
      0, 1, -1, 2, -2, 3, 0.5, 6, -0.25, 1.0 / 9, 1.0 / 6, 0.70710678118654752, 1.4142135623730951};
  return kNumbers[rng.Below(kNumbers.size())];
}

using Names = std::vector<std::string_view>;

/// Operators of like operands; a repeated one is drawn more often.
const std::vector<Names>& Families() {
  static const auto* const families = new std::vector<Names>{
      {"Relu", "Relu", "Neg",       "Neg",         "Abs",
       "Exp",  "Erf",  "Sigmoid",   "Tanh",        "Softplus",
       "Mish", "Gelu", "HardSwish", "HardSigmoid", "LeakyRelu",
       "Elu",  "Celu", "Selu",      "Softsign",    "ThresholdedRelu",
       "Cos",  "Clip", "Sqrt",      "Log",         "Reciprocal",
       "Sign"},
      {"Add", "Add", "Sub", "Mul", "Mul", "Max", "Max", "Min", "Div", "PRelu"},
      {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean"},
      {"Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"},
      {"Softmax", "LogSoftmax"}};
  return *families;
}

/// One change of `node` and its operands, which may make it invalid.
void Change(Rng& rng, Node& node, std::vector<ValueId>& inputs) {
  if (IsConstant(node) && SymbolName(node).empty()) {
    node.attrs.Set("value", Tensor::Filled(ConstantValue(node).type(), Number(rng)));
    return;
  }
  if (inputs.size() > 1 && rng.Flip()) return std::swap(inputs[inputs.size() - 2], inputs.back());
  if (node.attrs.Has("axis")) return node.attrs.Set("axis", rng.Between(0, 3));
  if (node.attrs.Has("axes") && rng.Flip()) return node.attrs.Set("axes", Ints{rng.Between(0, 3)});
  for (const Names& names : Families()) {
    if (std::find(names.begin(), names.end(), node.op->name) == names.end()) continue;
    node.op = &GetOp(names[rng.Below(names.size())]);
    if (names == Families()[0]) node.attrs = {};
    return;
  }
}

class Sampler {
 public:
  explicit Sampler(Rng& rng) : rng_(rng), builder_("random") {
    constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF64, DType::kF16};
    dtype_ = kTypes[rng.Below(4)];
    const Shape shape = {rng.Between(1, 2), rng.Between(1, 3), rng.Between(2, 5),
                         rng.Between(2, 5)};
    values_.push_back(builder_.Input("x", {dtype_, shape}));
    values_.push_back(builder_.Input("y", {dtype_, shape}));
    std::vector<double> weights(static_cast<size_t>(shape[3]));
    for (double& weight : weights)
      weight = rng.Flip(0.3) ? rng.Uniform(0.5, 2) : rng.Uniform(-1, 2);
    values_.push_back(builder_.Constant(Tensor::FromDoubles({dtype_, {shape[3]}}, weights), "w"));
  }

  Graph Draw() {
    for (int64_t steps = rng_.Between(2, 8); steps > 0; --steps) Step();
    builder_.Output("out", values_.back());
    auto graph = builder_.Build();
    MENDEL_CHECK(graph.ok());
    return *std::move(graph);
  }

 private:
  ValueId Pick() { return rng_.Flip(0.6) ? values_.back() : values_[rng_.Below(values_.size())]; }
  ValueId Literal() {
    if (rng_.Flip(0.2))
      return builder_.Constant(Tensor::Filled(builder_.type(values_.back()), Number(rng_)));
    return builder_.Constant(Tensor::Scalar(dtype_, Number(rng_)));
  }
  void Push(const absl::StatusOr<ValueId>& value) {
    if (value.ok()) values_.push_back(*value);
  }
  std::string_view OneOf(size_t family) {
    const Names& names = Families()[family];
    return names[rng_.Below(names.size())];
  }

  void Step() {
    const ValueId x = Pick();
    const int64_t rank = static_cast<int64_t>(builder_.type(x).shape.size());
    switch (rng_.Below(10)) {
      case 0:
      case 1:
        return Push(builder_.Add(OneOf(0), {x}));
      case 2:
      case 3: {
        const ValueId literal = Literal();
        return Push(builder_.Add(OneOf(1), {x, literal}));
      }
      case 4: {
        const ValueId literal = Literal();
        return Push(builder_.Add(OneOf(1), {literal, x}));
      }
      case 5:
      case 6: {
        const ValueId other = Pick();
        return Push(builder_.Add(OneOf(1), {x, other}));
      }
      case 7:
        return Reduce(x, rank);
      case 8:
        return Choose(x);
      default:
        return Root(x);
    }
  }

  void Reduce(ValueId x, int64_t rank) {
    if (rank == 4 && rng_.Flip(0.4)) {
      const Ints kernel = {rng_.Between(1, 3), rng_.Between(1, 3)},
                 strides = {rng_.Between(1, 2), rng_.Between(1, 2)};
      const Ints pads = {rng_.Between(0, 1), rng_.Between(0, 1), rng_.Between(0, 1),
                         rng_.Between(0, 1)};
      return Push(builder_.Add("MaxPool", {x},
                               {{"kernel_shape", kernel},
                                {"strides", strides},
                                {"pads", pads},
                                {"dilations", Ints{1, 1}},
                                {"ceil_mode", rng_.Between(0, 1)}}));
    }
    if (rank == 0) return;
    const int64_t axis = rng_.Between(0, rank - 1);
    if (rng_.Flip(0.3))
      return Push(builder_.Add(rng_.Flip() ? "Softmax" : "LogSoftmax", {x}, {{"axis", axis}}));
    Push(builder_.Add(OneOf(2), {x}, {{"axes", Ints{axis}}, {"keepdims", int64_t{1}}}));
  }

  void Choose(ValueId x) {
    const ValueId y = rng_.Flip() ? Pick() : Literal();
    const auto condition = builder_.Add(OneOf(3), {x, y});
    if (!condition.ok()) return;
    Push(builder_.Add("Where", rng_.Flip() ? std::vector<ValueId>{*condition, x, y}
                                           : std::vector<ValueId>{*condition, Pick(), x}));
  }

  void Root(ValueId x) {
    static constexpr double kExponents[] = {0, 1, 2, 3, 0.5, -0.5, -1, 1.5};
    const auto positive = rng_.Flip(0.5) ? builder_.Add("Exp", {x}) : builder_.Add("Mul", {x, x});
    if (!positive.ok()) return;
    if (rng_.Flip()) return Push(builder_.Add(rng_.Flip() ? "Sqrt" : "Log", {*positive}));
    Push(builder_.Add(
        "Pow", {*positive, builder_.Constant(Tensor::Scalar(dtype_, kExponents[rng_.Below(8)]))}));
  }

  Rng& rng_;
  GraphBuilder builder_;
  DType dtype_;
  std::vector<ValueId> values_;
};

/// The program without its outputs; `add` adds others behind each node, whose copy it is given.
Graph WithOutputs(const Graph& graph,
                  const std::function<void(GraphBuilder& builder, int32_t copy)>& add) {
  GraphBuilder builder;
  std::vector<int32_t> where;
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> operands;
    for (ValueId input : node.inputs)
      operands.push_back({where[static_cast<size_t>(input.node)], input.output});
    where.push_back(*builder.CopyNode(node, operands));
    add(builder, where.back());
  }
  return *builder.Build();
}

/// The program with every float value as an output.
Graph WithAllValues(const Graph& graph) {
  return WithOutputs(graph, [](GraphBuilder& builder, int32_t copy) {
    const size_t count = builder.node(copy).outputs.size();
    for (size_t k = 0; k < count; ++k) {
      const ValueId value{copy, static_cast<int32_t>(k)};
      if (IsFloat(builder.type(value).dtype)) builder.Output(Cat(copy, ".", k), value);
    }
  });
}

/// The program with the distances of operands to where a comparison, a root, a logarithm, a
/// quotient or a power changes as outputs.
Graph WithDistances(const Graph& graph) {
  return WithOutputs(graph, [](GraphBuilder& builder, int32_t copy) {
    const std::string_view op = builder.node(copy).op->name;
    const std::vector<ValueId> operands = builder.node(copy).inputs;
    const bool compares = op == "Equal" || op == "Greater" || op == "GreaterOrEqual" ||
                          op == "Less" || op == "LessOrEqual";
    if (operands.empty() || !IsFloat(builder.type(operands[0]).dtype)) return;
    if (compares) builder.Output(Cat("distance ", copy), *builder.Add("Sub", operands));
    if (op == "Sqrt" || op == "Log" || op == "Div" || op == "Pow")
      builder.Output(Cat("distance ", copy), operands.back());
  });
}

/// Some element of an output fits `is`.
absl::StatusOr<bool> HasOutput(const Graph& graph, const std::vector<HostValue>& inputs,
                               const std::function<bool(double)>& is) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> values, Evaluate(graph, inputs));
  return std::any_of(values.begin(), values.end(), [&](const HostValue& value) {
    return std::any_of(value.scalars.begin(), value.scalars.end(), is);
  });
}

}  // namespace

Graph ParseExpression(std::string_view text) { return Translator(text).Parse(); }

Graph RandomExpression(Rng& rng) { return Sampler(rng).Draw(); }

Graph RandomVariant(Rng& rng, const Graph& graph) {
  GraphBuilder builder(graph.name());
  std::vector<int32_t> where;
  // Inputs and weights do not change.
  const auto changes = [&](const Node& node) {
    return !IsInput(node) && !(IsConstant(node) && !SymbolName(node).empty());
  };
  size_t chosen = 0;
  for (int tries = 0; tries < 50 && !changes(graph.nodes()[chosen]); ++tries)
    chosen = rng.Below(graph.nodes().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    Node node = graph.nodes()[i];
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs)
      inputs.push_back({where[static_cast<size_t>(input.node)], input.output});
    const std::vector<ValueId> as_before = inputs;
    if (i == chosen) Change(rng, node, inputs);
    auto copy = builder.CopyNode(node, inputs);
    const bool fits =
        copy.ok() && builder.type({*copy, 0}) == graph.type({static_cast<int32_t>(i), 0});
    where.push_back(fits ? *copy : *builder.CopyNode(graph.nodes()[i], as_before));
  }
  builder.Output("out", {where[static_cast<size_t>(graph.outputs()[0].value.node)], 0});
  auto variant = builder.Build();
  MENDEL_CHECK(variant.ok());
  return *std::move(variant);
}

absl::StatusOr<bool> HasValue(const Graph& graph, const std::vector<HostValue>& inputs,
                              const std::function<bool(double)>& is) {
  return HasOutput(WithAllValues(graph), inputs, is);
}

absl::StatusOr<bool> RoundingDecides(const Graph& graph, const std::vector<HostValue>& inputs) {
  return HasOutput(WithDistances(graph), inputs,
                   [](double distance) { return distance != 0 && std::abs(distance) < 1e-9; });
}

uint64_t ProgramsToDraw(uint64_t usual) {
  const char* const programs = std::getenv("MENDEL_AXIOM_PROGRAMS");
  return programs != nullptr ? std::strtoull(programs, nullptr, 10) : usual;
}

}  // namespace mendel::axioms_test
