#include "verifier/facts_expression.h"

#include <cctype>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/text.h"

namespace mendel::facts_test {
namespace {

/// Translates an expression into the text form, node by node.
class Translator {
 public:
  explicit Translator(std::string_view text) : text_(text) {
    for (const char* name : {"x", "y"}) Define(name, Cat("Input() {name = \"", name, "\", shape = [2, 3, 4]}"));
    Define("h", "Input() {name = \"h\", shape = [2, 1, 4]}");
    Define("m", "Input() {name = \"m\", shape = [3, 3]}");
    Define("z", "Input() {name = \"z\", shape = [1, 2, 6, 6]}");
    Define("b", "Input() {name = \"b\", dtype = \"bool\", shape = [2, 3, 4]}");
    for (const char* name : {"q", "q2"}) Define(name, Cat("Input() {name = \"", name, "\", dtype = \"i8\", shape = [3]}"));
    Define("s", "Constant() {symbol = \"s\", value = f32[4]{0.5, -2, 3, -1}}");
    Define("positive", "Constant() {symbol = \"positive\", value = f32[4]{0.5, 2, 3, 1}}");
    for (const char* name : {"c1", "c2", "c3"}) Define(name, Cat("Constant() {symbol = \"", name, "\", value = f32[2]{0.5, 2}}"));
    Define("True", "Constant() {value = bool[]{1}}");
    Define("Three8", "Constant() {value = i8[]{3}}");
    std::string threes = "3";
    for (int k = 1; k < 24; ++k) threes += ", 3";
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
    while (std::isalnum(static_cast<unsigned char>(Peek())) != 0 || Peek() == '.' || Peek() == '-' || Peek() == '_') ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  int Value() {
    SkipSpace();
    const std::string word = Word();
    if (Peek() != '(') {
      const auto name = names_.find(word);
      return name != names_.end() ? name->second : Emit(Cat("Constant() {value = f32[]{", word, "}}"));
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

class Sampler {
 public:
  explicit Sampler(Rng& rng) : rng_(rng), builder_("random") {
    constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF64, DType::kF16};
    dtype_ = kTypes[rng.Below(4)];
    const Shape shape = {rng.Between(1, 2), rng.Between(1, 3), rng.Between(2, 5), rng.Between(2, 5)};
    values_.push_back(builder_.Input("x", {dtype_, shape}));
    values_.push_back(builder_.Input("y", {dtype_, shape}));
    std::vector<double> weights(static_cast<size_t>(shape[3]));
    for (double& weight : weights) weight = rng.Flip(0.3) ? rng.Uniform(0.5, 2) : rng.Uniform(-1, 2);
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
    constexpr double kNumbers[] = {0, 1, -1, 2, -2, 3, 0.5, 6, -0.25, 1.0 / 9, 1.0 / 6, 0.70710678118654752, 1.4142135623730951};
    return builder_.Constant(Tensor::Scalar(dtype_, kNumbers[rng_.Below(13)]));
  }
  void Push(const absl::StatusOr<ValueId>& value) {
    if (value.ok()) values_.push_back(*value);
  }
  template <size_t N>
  std::string_view OneOf(const char* const (&names)[N]) {
    return names[rng_.Below(N)];
  }

  void Step() {
    static constexpr const char* kUnary[] = {
        "Relu", "Relu", "Neg",       "Neg",         "Abs",       "Exp", "Erf",  "Sigmoid", "Tanh",     "Softplus",
        "Mish", "Gelu", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Celu", "Selu",    "Softsign", "ThresholdedRelu",
        "Cos",  "Clip"};
    static constexpr const char* kBinary[] = {"Add", "Add", "Sub", "Mul", "Mul", "Max", "Max", "Min", "Div", "PRelu"};
    const ValueId x = Pick();
    const int64_t rank = static_cast<int64_t>(builder_.type(x).shape.size());
    switch (rng_.Below(10)) {
      case 0:
      case 1:
        return Push(builder_.Add(OneOf(kUnary), {x}));
      case 2:
      case 3:
        return Push(builder_.Add(OneOf(kBinary), {x, Literal()}));
      case 4:
        return Push(builder_.Add(OneOf(kBinary), {Literal(), x}));
      case 5:
      case 6:
        return Push(builder_.Add(OneOf(kBinary), {x, Pick()}));
      case 7:
        return Reduce(x, rank);
      case 8:
        return Choose(x);
      default:
        return Root(x);
    }
  }

  void Reduce(ValueId x, int64_t rank) {
    static constexpr const char* kReductions[] = {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean"};
    if (rank == 4 && rng_.Flip(0.4)) {
      const Ints kernel = {rng_.Between(1, 3), rng_.Between(1, 3)}, strides = {rng_.Between(1, 2), rng_.Between(1, 2)};
      const Ints pads = {rng_.Between(0, 1), rng_.Between(0, 1), rng_.Between(0, 1), rng_.Between(0, 1)};
      return Push(builder_.Add("MaxPool", {x},
                               {{"kernel_shape", kernel},
                                {"strides", strides},
                                {"pads", pads},
                                {"dilations", Ints{1, 1}},
                                {"ceil_mode", rng_.Between(0, 1)}}));
    }
    if (rank == 0) return;
    const int64_t axis = rng_.Between(0, rank - 1);
    if (rng_.Flip(0.3)) return Push(builder_.Add(rng_.Flip() ? "Softmax" : "LogSoftmax", {x}, {{"axis", axis}}));
    Push(builder_.Add(OneOf(kReductions), {x}, {{"axes", Ints{axis}}, {"keepdims", int64_t{1}}}));
  }

  void Choose(ValueId x) {
    static constexpr const char* kOrders[] = {"Less", "Greater", "LessOrEqual", "GreaterOrEqual"};
    const ValueId y = rng_.Flip() ? Pick() : Literal();
    const auto condition = builder_.Add(OneOf(kOrders), {x, y});
    if (!condition.ok()) return;
    Push(builder_.Add("Where", rng_.Flip() ? std::vector<ValueId>{*condition, x, y} : std::vector<ValueId>{*condition, Pick(), x}));
  }

  void Root(ValueId x) {
    static constexpr double kExponents[] = {0, 1, 2, 3, 0.5, -0.5, -1, 1.5};
    const auto positive = rng_.Flip(0.5) ? builder_.Add("Exp", {x}) : builder_.Add("Mul", {x, x});
    if (!positive.ok()) return;
    if (rng_.Flip()) return Push(builder_.Add(rng_.Flip() ? "Sqrt" : "Log", {*positive}));
    Push(builder_.Add("Pow", {*positive, builder_.Constant(Tensor::Scalar(dtype_, kExponents[rng_.Below(8)]))}));
  }

  Rng& rng_;
  GraphBuilder builder_;
  DType dtype_;
  std::vector<ValueId> values_;
};

}  // namespace

Graph ParseExpression(std::string_view text) { return Translator(text).Parse(); }

Graph RandomExpression(Rng& rng) { return Sampler(rng).Draw(); }

}  // namespace mendel::facts_test
