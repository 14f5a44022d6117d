#include "graph/loop.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/op_helpers.h"
#include "graph/text.h"

namespace mendel {
namespace {

constexpr size_t kMaxText = size_t{1} << 20;
constexpr size_t kMaxNodes = 4096;
/// Bodies that are kept.
constexpr size_t kMostKept = 256;

/// Nested texts of bodies would be parsed by nested calls.
thread_local bool parsing_body = false;

class ParsingScope {
 public:
  ParsingScope() { parsing_body = true; }
  ~ParsingScope() { parsing_body = false; }
  ParsingScope(const ParsingScope&) = delete;
  ParsingScope& operator=(const ParsingScope&) = delete;
};

/// Bodies by text. Forgets all when it is full, because readers share what they use.
class Bodies {
 public:
  std::shared_ptr<const Graph> Find(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = bodies_.find(text);
    return found == bodies_.end() ? nullptr : found->second;
  }
  void Keep(const std::string& text, std::shared_ptr<const Graph> body) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bodies_.size() >= kMostKept) bodies_.clear();
    bodies_[text] = std::move(body);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Graph>> bodies_;
};

Bodies& KnownBodies() {
  static auto& bodies = *new Bodies;
  return bodies;
}

absl::Status CheckType(const TensorType& type, DType dtype) {
  if (type.dtype != dtype || !IsFloat(dtype))
    return InvalidInput("a loop's body has values of one float type, not ", TypeString(type));
  if (NumElements(type) == 0) return InvalidInput("a loop's body has no empty values");
  return absl::OkStatus();
}

absl::Status CheckConstant(const Node& node) {
  if (!SymbolName(node).empty()) return InvalidInput("a loop's body has no weights of its own");
  if (!ConstantValue(node).AllFinite()) return InvalidInput("a loop's body has finite constants");
  return absl::OkStatus();
}

absl::Status CheckOperator(const Graph& body, int32_t id) {
  const OpDefinition& op = *body.node(id).op;
  const bool total = !op.domain.has_value() &&
                     (op.infinite == nullptr || !WithView(body, id, op.infinite)) && !op.opaque &&
                     op.index_inputs == 0;
  const bool bounded =
      op.bound != nullptr || (op.meaning.bound != nullptr && op.restrict == &RestrictElementwise);
  if (!total || !bounded || op.meaning.field == nullptr || op.name == "Loop")
    return InvalidInput("a loop's body cannot have operator ", op.name);
  return absl::OkStatus();
}

}  // namespace

std::string PrintLoopBody(const Graph& body) {
  PrintOptions options;
  options.node_names = false;
  return PrintGraph(body, options);
}

absl::Status CheckLoopBody(const Graph& body) {
  if (body.nodes().size() > kMaxNodes)
    return InvalidInput("a loop's body has at most ", kMaxNodes, " nodes");
  if (body.inputs().empty()) return InvalidInput("a loop's body has inputs");
  const DType dtype = body.node(body.inputs()[0]).outputs[0].dtype;
  for (size_t i = 0; i < body.nodes().size(); ++i) {
    const Node& node = body.nodes()[i];
    for (const TensorType& type : node.outputs) MENDEL_RETURN_IF_ERROR(CheckType(type, dtype));
    if (IsConstant(node)) {
      MENDEL_RETURN_IF_ERROR(CheckConstant(node));
    } else if (!IsInput(node)) {
      MENDEL_RETURN_IF_ERROR(CheckOperator(body, static_cast<int32_t>(i)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Graph> TidyLoopBody(const Graph& body, size_t first, std::vector<size_t>& kept) {
  GraphBuilder builder;
  std::vector<int32_t> copies(body.nodes().size(), -1);
  kept.clear();
  for (size_t k = 0; k < body.inputs().size(); ++k) {
    const int32_t id = body.inputs()[k];
    if (k >= first && body.users(id).empty() && !body.IsOutput(id)) continue;
    copies[static_cast<size_t>(id)] =
        builder.Input(Cat("x", kept.size()), body.node(id).outputs[0]).node;
    kept.push_back(k);
  }
  for (size_t i = 0; i < body.nodes().size(); ++i) {
    const Node& node = body.nodes()[i];
    if (IsInput(node)) continue;
    std::vector<ValueId> inputs;
    for (const ValueId value : node.inputs)
      inputs.push_back({copies[static_cast<size_t>(value.node)], value.output});
    MENDEL_ASSIGN_OR_RETURN(copies[i], builder.CopyNode(node, std::move(inputs)));
  }
  for (size_t k = 0; k < body.outputs().size(); ++k) {
    const ValueId value = body.outputs()[k].value;
    builder.Output(Cat("y", k), {copies[static_cast<size_t>(value.node)], value.output});
  }
  return builder.Build();
}

absl::StatusOr<std::shared_ptr<const Graph>> ParseLoopBody(const std::string& text) {
  if (parsing_body) return InvalidInput("a loop's body cannot have operator Loop");
  if (text.size() > kMaxText) return InvalidInput("the text of a loop's body is too long");
  if (std::shared_ptr<const Graph> known = KnownBodies().Find(text); known != nullptr) return known;
  const ParsingScope scope;
  absl::StatusOr<Graph> parsed = ParseGraph(text);
  if (!parsed.ok()) return Annotate(parsed.status(), "a loop's body");
  MENDEL_RETURN_IF_ERROR(CheckLoopBody(*parsed));
  auto body = std::make_shared<const Graph>(*std::move(parsed));
  KnownBodies().Keep(text, body);
  return std::shared_ptr<const Graph>(std::move(body));
}

LoopArity LoopArityOf(const NodeView& node) {
  LoopArity arity;
  arity.carried = static_cast<size_t>(node.attrs.Int("carried"));
  arity.scanned = static_cast<size_t>(node.attrs.Int("scanned"));
  arity.invariants = node.inputs.size() - arity.carried - arity.scanned;
  return arity;
}

std::shared_ptr<const Graph> LoopBodyOf(const Attributes& attrs) {
  absl::StatusOr<std::shared_ptr<const Graph>> body = ParseLoopBody(attrs.Str("body"));
  MENDEL_CHECK(body.ok());
  return *std::move(body);
}

}  // namespace mendel
