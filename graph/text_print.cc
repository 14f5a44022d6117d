#include <charconv>
#include <cmath>

#include "base/status.h"
#include "graph/text.h"

namespace mendel {
namespace {

std::string Quote(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += Cat("\\x", std::string(1, kHex[byte >> 4]), std::string(1, kHex[byte & 15]));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

/// Shortest decimal that reads back as the same double.
std::string Number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

template <class List, class Print>
std::string Join(const List& list, Print print) {
  std::string text;
  for (const auto& element : list) {
    if (!text.empty()) text += ", ";
    text += print(element);
  }
  return text;
}

std::string PrintTensor(const Tensor& tensor, const PrintOptions* options) {
  std::string text = TypeString(tensor.type());
  if (options != nullptr && options->tensors != nullptr && tensor.size() > options->inline_limit) {
    options->tensors->push_back(tensor);
    return text + Cat("@", options->tensors->size() - 1);
  }
  if (options == nullptr) return text + Cat("#", tensor.ContentHash());
  text += '{';
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (i > 0) text += ", ";
    text += IsFloat(tensor.dtype()) ? Number(tensor.DoubleAt(i)) : std::to_string(tensor.IntAt(i));
  }
  return text + '}';
}

std::string Print(const AttrValue& value, const PrintOptions* options) {
  struct Visitor {
    const PrintOptions* options;
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return Number(v); }
    std::string operator()(const std::string& v) const { return Quote(v); }
    std::string operator()(const Ints& v) const {
      return Cat("[", Join(v, [](int64_t i) { return std::to_string(i); }), "]");
    }
    std::string operator()(const std::vector<double>& v) const {
      return Cat("[", Join(v, Number), "]");
    }
    std::string operator()(const Tensor& v) const { return PrintTensor(v, options); }
    std::string operator()(const Boxes& v) const { return Cat("[", Join(v, BoxString), "]"); }
  };
  return std::visit(Visitor{options}, value);
}

std::string ValueName(ValueId value) {
  return value.output == 0 ? Cat("%", value.node) : Cat("%", value.node, ".", value.output);
}

std::string PrintNode(const Node& node, int32_t id, const PrintOptions& options) {
  std::string text = Cat("  %", id, " = ", node.op->name, "(", Join(node.inputs, ValueName), ")");
  std::string attrs;
  for (const AttributeSpec& spec : node.op->attributes) {
    const AttrValue& value = node.attrs.Get(spec.name);
    if (!spec.required && value == spec.default_value) continue;
    attrs += Cat(attrs.empty() ? "" : ", ", spec.name, " = ", Print(value, &options));
  }
  if (!attrs.empty()) text += " {" + attrs + "}";
  if (options.node_names && !node.name.empty() && !IsInput(node) && !IsConstant(node))
    text += " " + Quote(node.name);
  return text + " : " + Join(node.outputs, TypeString);
}

}  // namespace

std::string PrintGraph(const Graph& graph, const PrintOptions& options) {
  std::string text = Cat("graph ", Quote(options.node_names ? graph.name() : ""), " {\n");
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    text += PrintNode(graph.nodes()[i], static_cast<int32_t>(i), options) + "\n";
  text += "  return " + Join(graph.outputs(), [](const GraphOutput& o) {
            return Quote(o.name) + " = " + ValueName(o.value);
          });
  return text + "\n}\n";
}

std::string PrintAttributes(const Attributes& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs.values())
    text += Cat(text.empty() ? " {" : ", ", name, " = ", Print(value, nullptr));
  return text.empty() ? text : text + "}";
}

std::string PrintValue(const AttrValue& value) {
  const PrintOptions options;
  return Print(value, &options);
}

}  // namespace mendel
