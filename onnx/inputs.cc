#include <algorithm>

#include "base/status.h"
#include "onnx/importer.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

/// The size of a symbolic dimension, and the dimension that gave it.
struct Binding {
  int64_t size = 0;
  std::string input;
  size_t dimension = 0;
};
using Symbols = std::map<std::string, Binding>;

/// The name that dimensions of one extent share; empty: none. Paddle's exporter calls every unknown
/// extent "?".
std::string SymbolOf(const DeclaredDimension& dimension) {
  return dimension.name == "?" ? "" : dimension.name;
}

/// Takes `shape` for the declared input: fixed extents must agree, and symbolic names get their
/// values.
absl::Status Fix(const DeclaredValue& input, const Shape& shape, Symbols& symbols) {
  if (!input.has_shape) return absl::OkStatus();
  if (shape.size() != input.shape.size()) {
    return InvalidInput("input '", input.name, "' has rank ", input.shape.size(),
                        ", the given shape ", ShapeString(shape), " has ", shape.size());
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t size = input.shape[d].size;
    if (size >= 0 && size != shape[d]) {
      return InvalidInput("dimension ", d, " of input '", input.name, "' is ", size, ", not ",
                          shape[d]);
    }
    const std::string symbol = SymbolOf(input.shape[d]);
    if (size >= 0 || symbol.empty()) continue;
    const auto [it, fresh] = symbols.emplace(symbol, Binding{shape[d], input.name, d});
    const Binding& bound = it->second;
    if (!fresh && bound.size != shape[d]) {
      return InvalidInput("dimension ", d, " ('", symbol, "') of input '", input.name, "' is ",
                          shape[d], ", but dimension ", bound.dimension, " of input '", bound.input,
                          "' gives '", symbol, "' the size ", bound.size);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> Complete(const DeclaredValue& input, const Symbols& symbols,
                               const ImportOptions& options, ImportResult& result) {
  if (!input.has_shape) {
    return InvalidInput("input '", input.name,
                        "' has no shape in the model; give one, e.g. --shapes ", input.name,
                        ":1x3x224x224");
  }
  Shape shape;
  for (size_t d = 0; d < input.shape.size(); ++d) {
    int64_t& extent = shape.emplace_back(input.shape[d].size);
    if (extent >= 0) continue;
    const std::string symbol = SymbolOf(input.shape[d]);
    const auto known = symbols.find(symbol);
    if (!symbol.empty() && known != symbols.end()) {
      extent = known->second.size;
      continue;
    }
    const std::string dimension = symbol.empty() ? Cat(input.name, ":", d) : symbol;
    result.open_dimensions.insert(dimension);
    const auto sized = options.symbol_sizes.find(dimension);
    extent = sized == options.symbol_sizes.end() ? 1 : sized->second;
    if (sized != options.symbol_sizes.end()) continue;
    result.taken_as_one.push_back({input.name, d, dimension});
    const std::string named = symbol.empty() ? "" : Cat(" ('", symbol, "')");
    result.notices.push_back(Cat("dimension ", d, named, " of input '", input.name,
                                 "' is not fixed by the model and is taken as 1"));
  }
  return shape;
}

const Shape* GivenShape(const ImportOptions& options, const std::string& name) {
  for (const auto& [given, shape] : options.shapes) {
    if (given == name) return &shape;
  }
  return nullptr;
}

absl::Status RefuseUnknownNames(const ImportOptions& options,
                                const std::set<std::string>& declared) {
  std::string names;
  for (const std::string& name : declared) names += Cat(names.empty() ? "'" : ", '", name, "'");
  for (const auto& [name, shape] : options.shapes) {
    if (declared.count(name) == 0)
      return InvalidInput("the model has no input '", name, "' to give a shape to; its inputs are ",
                          names);
  }
  for (const auto& [name, tensor] : options.bindings) {
    if (declared.count(name) == 0)
      return InvalidInput("the model has no input '", name, "' to bind; its inputs are ", names);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ResolvedInput>> ResolveInputs(const onnx::GraphProto& graph,
                                                         const ImportOptions& options,
                                                         ImportResult& imported) {
  std::set<std::string> initializers;
  for (const onnx::TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::vector<DeclaredValue> inputs;
  std::set<std::string> declared;
  for (const onnx::ValueInfoProto& info : graph.input()) {
    if (info.name().empty()) return InvalidInput("the model has an input without a name");
    if (!declared.insert(info.name()).second)
      return InvalidInput("the model has two inputs '", info.name(), "'");
    const bool bound = options.bindings.count(info.name()) != 0;
    if (initializers.count(info.name()) != 0 && !bound) {
      if (GivenShape(options, info.name()) != nullptr) {
        return InvalidInput("input '", info.name(),
                            "' has a stored value, which cannot be given a shape");
      }
      continue;
    }
    MENDEL_ASSIGN_OR_RETURN(DeclaredValue input, ReadDeclaration(info, "input"));
    inputs.push_back(std::move(input));
  }
  MENDEL_RETURN_IF_ERROR(RefuseUnknownNames(options, declared));
  Symbols symbols;
  for (const DeclaredValue& input : inputs) {
    const auto bound = options.bindings.find(input.name);
    if (bound != options.bindings.end()) {
      if (bound->second.dtype() != input.dtype) {
        return InvalidInput("input '", input.name, "' is ", DTypeName(input.dtype),
                            ", the bound value ", DTypeName(bound->second.dtype()));
      }
      MENDEL_RETURN_IF_ERROR(CheckShape(bound->second.shape()));
      MENDEL_RETURN_IF_ERROR(Fix(input, bound->second.shape(), symbols));
    }
    const Shape* given = GivenShape(options, input.name);
    if (given != nullptr) MENDEL_RETURN_IF_ERROR(Fix(input, *given, symbols));
  }
  std::vector<ResolvedInput> resolved;
  for (const DeclaredValue& input : inputs) {
    if (options.bindings.count(input.name) != 0) continue;
    const Shape* given = GivenShape(options, input.name);
    ResolvedInput result{input.name, {input.dtype, {}}};
    if (given != nullptr) {
      result.type.shape = *given;
    } else {
      MENDEL_ASSIGN_OR_RETURN(result.type.shape, Complete(input, symbols, options, imported));
    }
    const absl::Status fits = CheckShape(result.type.shape);
    if (!fits.ok()) return Annotate(fits, Cat("input '", input.name, "'"));
    resolved.push_back(std::move(result));
  }
  return resolved;
}

}  // namespace mendel
