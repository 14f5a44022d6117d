#include "client/onnxruntime/context_node.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "client/c_api/mendel_optimizer.h"

namespace mendel::ort {
namespace {

constexpr char kOperator[] = "EPContext", kDomain[] = "com.microsoft";
// Names of attributes, as ONNX Runtime's page on the design of EPContext models has them.
constexpr char kSource[] = "source", kEmbedded[] = "embed_mode", kBytes[] = "ep_cache_context";

const onnx::AttributeProto* Find(const onnx::NodeProto& node, const std::string& name) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file)
    return InvalidInput("cannot read ", path.string(), ", a compiled part of the EPContext model");
  return bytes.str();
}

/// Attributes of a node to be; freed at the end, since the node has copies.
class Attributes {
 public:
  explicit Attributes(const RuntimeApi& api) : api_(api) {}
  ~Attributes() {
    for (Attribute* attribute : list_) kReleaseAttribute(api_.main(), attribute);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  absl::Status Add(const char* name, int64_t value) { return Add(name, &value, 1, kInt); }
  absl::Status Add(const char* name, const std::string& value) {
    return Add(name, value.data(), static_cast<int>(value.size()), kString);
  }
  std::vector<Attribute*>& list() { return list_; }

 private:
  absl::Status Add(const char* name, const void* data, int size, int kind) {
    MENDEL_ASSIGN_OR_RETURN(Attribute* const made,
                            api_.Get<Attribute*>(kCreateAttribute, name, data, size, kind));
    list_.push_back(made);
    return absl::OkStatus();
  }

  const RuntimeApi& api_;
  std::vector<Attribute*> list_;
};

std::vector<const char*> Pointers(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

/// The path of the EPContext model: the option, or "model_ctx.onnx" beside "model.onnx".
std::filesystem::path ContextPath(const Settings& settings, const std::string& model_path) {
  if (!settings.context_path.empty()) return settings.context_path;
  const std::filesystem::path path = model_path;
  return path.parent_path() / (path.stem().string() + "_ctx.onnx");
}

/// Writes the bytes beside the model and returns the file's name.
absl::StatusOr<std::string> WriteFileNextTo(const std::string& bytes, const std::string& part,
                                            const std::filesystem::path& model) {
  std::string name = Cat(model.stem().string(), "_", part, ".mendel");
  for (char& c : name)
    if (c == '/') c = '_';
  const std::filesystem::path path = model.parent_path() / name;
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return InvalidInput("cannot write ", path.string());
  return name;
}

}  // namespace

bool IsContextNode(const ViewNode& node) {
  if (node.proto.op_type() != kOperator || node.proto.domain() != kDomain) return false;
  const onnx::AttributeProto* const source = Find(node.proto, kSource);
  return source != nullptr && source->s() == kProviderName;
}

absl::StatusOr<ContextBlob> ReadContext(const ViewNode& node, const std::string& model_path) {
  const onnx::AttributeProto* const bytes = Find(node.proto, kBytes);
  if (bytes == nullptr)
    return InvalidInput("node '", node.proto.name(), "' (EPContext) lacks '", kBytes, "'");
  const onnx::AttributeProto* const embedded = Find(node.proto, kEmbedded);
  if (embedded == nullptr || embedded->i() != 0) return DecodeContext(bytes->s());
  const std::filesystem::path name = bytes->s();
  if (name != name.filename()) {
    return InvalidInput("node '", node.proto.name(), "' (EPContext) names '", name.string(),
                        "', which is no file in the model's folder");
  }
  const auto path = std::filesystem::path(model_path).parent_path() / name;
  MENDEL_ASSIGN_OR_RETURN(const std::string read, ReadFile(path));
  return DecodeContext(read);
}

absl::StatusOr<Node*> WriteContext(const RuntimeApi& api, const ContextBlob& blob,
                                   const std::string& name, const NodeInterface& interface,
                                   const Settings& settings, const std::string& model_path) {
  std::string bytes = EncodeContext(blob);
  if (!settings.embed_context) {
    MENDEL_ASSIGN_OR_RETURN(bytes, WriteFileNextTo(bytes, name, ContextPath(settings, model_path)));
  }
  Attributes attributes(api);
  MENDEL_RETURN_IF_ERROR(attributes.Add("main_context", 1));
  MENDEL_RETURN_IF_ERROR(attributes.Add(kEmbedded, settings.embed_context ? 1 : 0));
  MENDEL_RETURN_IF_ERROR(attributes.Add(kBytes, bytes));
  MENDEL_RETURN_IF_ERROR(attributes.Add(kSource, std::string(kProviderName)));
  MENDEL_RETURN_IF_ERROR(attributes.Add("ep_sdk_version", std::string(mendel_version())));
  MENDEL_RETURN_IF_ERROR(attributes.Add("partition_name", name));
  const auto inputs = Pointers(interface.inputs), outputs = Pointers(interface.outputs);
  Node* node = nullptr;
  MENDEL_RETURN_IF_ERROR(api.Take(kCreateNode(
      api.editor(), kOperator, kDomain, name.c_str(), inputs.data(), inputs.size(), outputs.data(),
      outputs.size(), attributes.list().data(), attributes.list().size(), &node)));
  return node;
}

}  // namespace mendel::ort
