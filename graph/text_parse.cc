#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/text.h"

namespace mendel {
namespace {

constexpr size_t kMaxListLength = size_t{1} << 24;

/// Characters of the text with a position; every Read either consumes what it names or fails with
/// the line.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  absl::Status Error(const std::string& expected) const {
    int64_t line = 1;
    for (char c : text_.substr(0, position_)) line += c == '\n';
    return InvalidInput("line ", line, ": expected ", expected, " at '",
                        std::string(text_.substr(position_, 20)), "'");
  }
  bool Peek(std::string_view token) {
    SkipSpace();
    return text_.substr(position_).starts_with(token);
  }
  bool Accept(std::string_view token) {
    if (!Peek(token)) return false;
    position_ += token.size();
    return true;
  }
  absl::Status Expect(std::string_view token) {
    return Accept(token) ? absl::OkStatus() : Error(Cat("'", token, "'"));
  }
  bool AtEnd() {
    SkipSpace();
    return position_ == text_.size();
  }
  absl::StatusOr<std::string> Word() {
    SkipSpace();
    const size_t start = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_'))
      ++position_;
    if (start == position_) return Error("a name");
    return std::string(text_.substr(start, position_ - start));
  }
  absl::StatusOr<std::string> Quoted() {
    MENDEL_RETURN_IF_ERROR(Expect("\""));
    std::string value;
    while (position_ < text_.size() && text_[position_] != '"') {
      char c = text_[position_++];
      if (c == '\\' && position_ < text_.size()) {
        c = text_[position_++];
        if (c == 'x') {
          unsigned byte = 0;
          const char* first = text_.data() + position_;
          if (position_ + 2 > text_.size() ||
              std::from_chars(first, first + 2, byte, 16).ptr != first + 2)
            return Error("two hexadecimal digits");
          position_ += 2;
          c = static_cast<char>(byte);
        }
      }
      value += c;
    }
    MENDEL_RETURN_IF_ERROR(Expect("\""));
    return value;
  }
  absl::StatusOr<int64_t> Int() {
    SkipSpace();
    int64_t value = 0;
    const char* first = text_.data() + position_;
    const auto result = std::from_chars(first, text_.data() + text_.size(), value);
    if (result.ec != std::errc()) return Error("an integer");
    position_ += static_cast<size_t>(result.ptr - first);
    return value;
  }
  absl::StatusOr<double> Double() {
    SkipSpace();
    double value = 0;
    const char* first = text_.data() + position_;
    const auto result = std::from_chars(first, text_.data() + text_.size(), value);
    if (result.ec != std::errc()) return Error("a number");
    position_ += static_cast<size_t>(result.ptr - first);
    return value;
  }

 private:
  void SkipSpace() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }
  std::string_view text_;
  size_t position_ = 0;
};

/// "open a, b, c close" with `read` for one element.
template <class Read>
absl::Status ReadList(Scanner& in, std::string_view open, std::string_view close, Read read) {
  MENDEL_RETURN_IF_ERROR(in.Expect(open));
  if (in.Accept(close)) return absl::OkStatus();
  size_t count = 0;
  do {
    if (++count > kMaxListLength) return in.Error("a shorter list");
    MENDEL_RETURN_IF_ERROR(read());
  } while (in.Accept(","));
  return in.Expect(close);
}

absl::StatusOr<TensorType> ReadType(Scanner& in) {
  MENDEL_ASSIGN_OR_RETURN(const std::string name, in.Word());
  const std::optional<DType> dtype = ParseDType(name);
  if (!dtype.has_value()) return in.Error("an element type");
  TensorType type{*dtype, {}};
  MENDEL_RETURN_IF_ERROR(ReadList(in, "[", "]", [&]() -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(const int64_t extent, in.Int());
    if (extent < 0 || extent > kMaxElements || type.shape.size() >= static_cast<size_t>(kMaxRank))
      return in.Error("a valid shape");
    type.shape.push_back(extent);
    return absl::OkStatus();
  }));
  int64_t count = 1;
  for (int64_t extent : type.shape) {
    if (extent > 0 && count > kMaxElements / extent) return in.Error("a smaller shape");
    count *= extent;
  }
  return type;
}

absl::StatusOr<Tensor> ReadTensor(Scanner& in, const std::vector<Tensor>& tensors) {
  MENDEL_ASSIGN_OR_RETURN(const TensorType type, ReadType(in));
  if (in.Accept("@")) {
    MENDEL_ASSIGN_OR_RETURN(const int64_t index, in.Int());
    if (index < 0 || static_cast<size_t>(index) >= tensors.size() ||
        tensors[static_cast<size_t>(index)].type() != type) {
      return in.Error("a reference to a stored tensor of this type");
    }
    return tensors[static_cast<size_t>(index)];
  }
  std::vector<double> doubles;
  std::vector<int64_t> ints;
  MENDEL_RETURN_IF_ERROR(ReadList(in, "{", "}", [&]() -> absl::Status {
    if (IsFloat(type.dtype)) {
      MENDEL_ASSIGN_OR_RETURN(const double value, in.Double());
      doubles.push_back(value);
    } else {
      MENDEL_ASSIGN_OR_RETURN(const int64_t value, in.Int());
      ints.push_back(value);
    }
    return absl::OkStatus();
  }));
  if (static_cast<int64_t>(std::max(doubles.size(), ints.size())) != NumElements(type))
    return in.Error("as many elements as the shape has");
  return IsFloat(type.dtype) ? Tensor::FromDoubles(type, doubles) : Tensor::FromInts(type, ints);
}

absl::StatusOr<Box> ReadBox(Scanner& in) {
  Box box;
  MENDEL_RETURN_IF_ERROR(ReadList(in, "[", "]", [&]() -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(const int64_t begin, in.Int());
    MENDEL_RETURN_IF_ERROR(in.Expect(":"));
    MENDEL_ASSIGN_OR_RETURN(const int64_t end, in.Int());
    box.begin.push_back(begin);
    box.end.push_back(end);
    return absl::OkStatus();
  }));
  return box;
}

/// Reads a value of the same kind as `kind`.
class ValueReader {
 public:
  ValueReader(Scanner& in, const std::vector<Tensor>& tensors) : in_(in), tensors_(tensors) {}

  absl::StatusOr<AttrValue> operator()(int64_t) { return Wrap(in_.Int()); }
  absl::StatusOr<AttrValue> operator()(double) { return Wrap(in_.Double()); }
  absl::StatusOr<AttrValue> operator()(const std::string&) { return Wrap(in_.Quoted()); }
  absl::StatusOr<AttrValue> operator()(const Tensor&) { return Wrap(ReadTensor(in_, tensors_)); }
  absl::StatusOr<AttrValue> operator()(const Ints&) {
    return List<int64_t>([&] { return in_.Int(); });
  }
  absl::StatusOr<AttrValue> operator()(const std::vector<double>&) {
    return List<double>([&] { return in_.Double(); });
  }
  absl::StatusOr<AttrValue> operator()(const Boxes&) {
    return List<Box>([&] { return ReadBox(in_); });
  }

 private:
  template <class T>
  absl::StatusOr<AttrValue> Wrap(absl::StatusOr<T> value) {
    if (!value.ok()) return value.status();
    return AttrValue(*std::move(value));
  }
  template <class T, class Read>
  absl::StatusOr<AttrValue> List(Read read) {
    std::vector<T> list;
    MENDEL_RETURN_IF_ERROR(ReadList(in_, "[", "]", [&]() -> absl::Status {
      MENDEL_ASSIGN_OR_RETURN(T value, read());
      list.push_back(std::move(value));
      return absl::OkStatus();
    }));
    return AttrValue(std::move(list));
  }
  Scanner& in_;
  const std::vector<Tensor>& tensors_;
};

class GraphParser {
 public:
  GraphParser(std::string_view text, const std::vector<Tensor>& tensors)
      : in_(text), tensors_(tensors) {}

  absl::StatusOr<Graph> Parse() {
    MENDEL_RETURN_IF_ERROR(in_.Expect("graph"));
    MENDEL_ASSIGN_OR_RETURN(const std::string name, in_.Quoted());
    GraphBuilder builder(name);
    MENDEL_RETURN_IF_ERROR(in_.Expect("{"));
    while (in_.Peek("%")) MENDEL_RETURN_IF_ERROR(ReadNode(builder));
    MENDEL_RETURN_IF_ERROR(ReadReturn(builder));
    MENDEL_RETURN_IF_ERROR(in_.Expect("}"));
    if (!in_.AtEnd()) return in_.Error("the end of the text");
    return builder.Build();
  }

 private:
  absl::StatusOr<ValueId> ReadValue() {
    MENDEL_RETURN_IF_ERROR(in_.Expect("%"));
    MENDEL_ASSIGN_OR_RETURN(const std::string name, in_.Word());
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) return in_.Error(Cat("a value defined above instead of %", name));
    ValueId value{it->second, 0};
    if (in_.Accept(".")) {
      MENDEL_ASSIGN_OR_RETURN(const int64_t output, in_.Int());
      if (output < 0 || output > std::numeric_limits<int32_t>::max())
        return in_.Error("an output number");
      value.output = static_cast<int32_t>(output);
    }
    return value;
  }

  absl::Status ReadAttributes(const OpDefinition& op, Attributes& attrs) {
    if (!in_.Peek("{")) return absl::OkStatus();
    return ReadList(in_, "{", "}", [&]() -> absl::Status {
      MENDEL_ASSIGN_OR_RETURN(const std::string name, in_.Word());
      MENDEL_RETURN_IF_ERROR(in_.Expect("="));
      for (const AttributeSpec& spec : op.attributes) {
        if (spec.name != name) continue;
        MENDEL_ASSIGN_OR_RETURN(AttrValue value,
                                std::visit(ValueReader(in_, tensors_), spec.default_value));
        attrs.Set(name, std::move(value));
        return absl::OkStatus();
      }
      return in_.Error(Cat("an attribute of ", op.name, " instead of ", name));
    });
  }

  absl::Status ReadNode(GraphBuilder& builder) {
    MENDEL_RETURN_IF_ERROR(in_.Expect("%"));
    MENDEL_ASSIGN_OR_RETURN(const std::string name, in_.Word());
    MENDEL_RETURN_IF_ERROR(in_.Expect("="));
    MENDEL_ASSIGN_OR_RETURN(const std::string op_name, in_.Word());
    const OpDefinition* op = FindOp(op_name);
    if (op == nullptr) return in_.Error(Cat("a known operator instead of ", op_name));
    std::vector<ValueId> inputs;
    MENDEL_RETURN_IF_ERROR(ReadList(in_, "(", ")", [&]() -> absl::Status {
      MENDEL_ASSIGN_OR_RETURN(const ValueId value, ReadValue());
      inputs.push_back(value);
      return absl::OkStatus();
    }));
    Attributes attrs;
    MENDEL_RETURN_IF_ERROR(ReadAttributes(*op, attrs));
    std::string node_name;
    if (in_.Peek("\"")) {
      MENDEL_ASSIGN_OR_RETURN(node_name, in_.Quoted());
    }
    MENDEL_ASSIGN_OR_RETURN(const int32_t id, Emit(builder, op_name, std::move(inputs),
                                                   std::move(attrs), std::move(node_name)));
    if (!nodes_.emplace(name, id).second) return in_.Error(Cat("a new name instead of %", name));
    if (!in_.Accept(":")) return absl::OkStatus();
    for (size_t k = 0; k < builder.node(id).outputs.size(); ++k) {
      if (k > 0) MENDEL_RETURN_IF_ERROR(in_.Expect(","));
      MENDEL_ASSIGN_OR_RETURN(const TensorType type, ReadType(in_));
      if (type != builder.node(id).outputs[k])
        return in_.Error(Cat("type ", TypeString(builder.node(id).outputs[k]), " before"));
    }
    return absl::OkStatus();
  }

  /// Inputs and constants go through the builder's own functions, which keep them unique.
  absl::StatusOr<int32_t> Emit(GraphBuilder& builder, const std::string& op,
                               std::vector<ValueId> inputs, Attributes attrs, std::string name) {
    if (op == "Constant" && inputs.empty() && attrs.Has("value")) {
      const std::string symbol = attrs.Has("symbol") ? attrs.Str("symbol") : "";
      const TensorType& type = attrs.TensorValue("value").type();
      const auto [it, fresh] = symbols_.emplace(symbol, type);
      if (!symbol.empty() && !fresh && it->second != type)
        return in_.Error(Cat("one type for symbol '", symbol, "'"));
      return builder.Constant(attrs.TensorValue("value"), symbol).node;
    }
    if (op == "Input" && attrs.Has("name")) name = attrs.Str("name");
    return builder.AddNode(op, std::move(inputs), std::move(attrs), std::move(name));
  }

  absl::Status ReadReturn(GraphBuilder& builder) {
    MENDEL_RETURN_IF_ERROR(in_.Expect("return"));
    do {
      MENDEL_ASSIGN_OR_RETURN(const std::string name, in_.Quoted());
      MENDEL_RETURN_IF_ERROR(in_.Expect("="));
      MENDEL_ASSIGN_OR_RETURN(const ValueId value, ReadValue());
      if (static_cast<size_t>(value.output) >= builder.node(value.node).outputs.size())
        return in_.Error("an existing output");
      builder.Output(name, value);
    } while (in_.Accept(","));
    return absl::OkStatus();
  }

  Scanner in_;
  const std::vector<Tensor>& tensors_;
  std::map<std::string, int32_t, std::less<>> nodes_;
  std::map<std::string, TensorType> symbols_;
};

}  // namespace

absl::StatusOr<Graph> ParseGraph(std::string_view text, const std::vector<Tensor>& tensors) {
  return GraphParser(text, tensors).Parse();
}

}  // namespace mendel
