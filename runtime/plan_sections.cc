#include "runtime/plan_sections.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>

#include "base/hash.h"
#include "base/status.h"
#include "graph/text.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

constexpr char kGraph[] = "graph";
constexpr char kBaseline[] = "baseline";
constexpr char kTensors[] = "tensors";
constexpr char kInfo[] = "info";
constexpr char kEngines[] = "engines";
constexpr char kKernels[] = "kernels";
constexpr char kCertificate[] = "certificate";
constexpr int kMaxThreads = 4096;
/// Graph texts and protobufs; weights have no limit of their own.
constexpr uint64_t kMaxTextSection = uint64_t{1} << 30;

std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

/// Map fields in key order, so that equal messages have equal bytes.
template <class Message>
std::string Serialize(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

std::string PrintForPlan(const Graph& graph, std::vector<Tensor>& tensors) {
  PrintOptions options;
  options.tensors = &tensors;
  return PrintGraph(graph, options);
}

absl::Status CheckAlgorithms(const google::protobuf::Map<int32_t, std::string>& algorithms,
                             const Graph& graph, std::string_view which) {
  for (const auto& [node, name] : algorithms) {
    if (node < 0 || static_cast<size_t>(node) >= graph.nodes().size()) {
      return InvalidInput("an algorithm is given for node ", node, " of the ", which,
                          ", which has ", graph.nodes().size(), " nodes");
    }
  }
  return absl::OkStatus();
}

/// Both graphs must be exchangeable.
absl::Status CheckBaseline(const Graph& graph, const Graph& baseline) {
  bool same = graph.inputs().size() == baseline.inputs().size() &&
              graph.outputs().size() == baseline.outputs().size();
  for (size_t k = 0; same && k < graph.inputs().size(); ++k) {
    const int32_t a = graph.inputs()[k];
    const int32_t b = baseline.inputs()[k];
    same = InputName(graph.node(a)) == InputName(baseline.node(b)) &&
           graph.node(a).outputs == baseline.node(b).outputs;
  }
  for (size_t k = 0; same && k < graph.outputs().size(); ++k) {
    const GraphOutput& a = graph.outputs()[k];
    const GraphOutput& b = baseline.outputs()[k];
    same = a.name == b.name && graph.type(a.value) == baseline.type(b.value);
  }
  return same ? absl::OkStatus()
              : InvalidInput("the plan's baseline has other inputs or outputs than its graph");
}

absl::Status CheckPlan(const Plan& plan) {
  if (plan.graph.outputs().empty()) return InvalidInput("the plan's graph has no outputs");
  MENDEL_RETURN_IF_ERROR(Annotate(CheckGraph(plan.graph), "the plan's graph"));
  if (!plan.baseline.nodes().empty()) {
    MENDEL_RETURN_IF_ERROR(Annotate(CheckGraph(plan.baseline), "the plan's baseline"));
    MENDEL_RETURN_IF_ERROR(CheckBaseline(plan.graph, plan.baseline));
  }
  MENDEL_RETURN_IF_ERROR(CheckAlgorithms(plan.info.algorithms(), plan.graph, "graph"));
  MENDEL_RETURN_IF_ERROR(
      CheckAlgorithms(plan.info.baseline_algorithms(), plan.baseline, "baseline"));
  MENDEL_RETURN_IF_ERROR(CheckEngines(plan.engines, plan.info.algorithms()));
  MENDEL_RETURN_IF_ERROR(CheckKernels(plan.kernels, plan.graph));
  const plan::Target& target = plan.info.target();
  if (target.threads() < 1 || target.threads() > kMaxThreads)
    return InvalidInput("the plan requests ", target.threads(), " threads");
  return ParseNumerics(target.numerics()).status();
}

/// The checked sections of one plan.
class PlanReader {
 public:
  explicit PlanReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  absl::Status Open() {
    MENDEL_ASSIGN_OR_RETURN(entries_, DecodeHeader(bytes_, bytes_.size()));
    return absl::OkStatus();
  }
  const std::vector<SectionEntry>& entries() const { return entries_; }
  bool Has(std::string_view name) const { return Find(name) != nullptr; }

  absl::StatusOr<std::span<const std::byte>> Bytes(std::string_view name) const {
    const SectionEntry* entry = Find(name);
    if (entry == nullptr) return InvalidInput("damaged plan: there is no section '", name, "'");
    const auto section = bytes_.subspan(entry->offset, entry->size);
    MENDEL_RETURN_IF_ERROR(CheckSection(*entry, section));
    return section;
  }
  absl::StatusOr<std::string> Text(std::string_view name) const {
    const SectionEntry* entry = Find(name);
    if (entry != nullptr && entry->size > kMaxTextSection)
      return InvalidInput("damaged plan: section '", name, "' is too large");
    MENDEL_ASSIGN_OR_RETURN(const auto section, Bytes(name));
    return std::string(reinterpret_cast<const char*>(section.data()), section.size());
  }
  template <class Message>
  absl::StatusOr<Message> Proto(std::string_view name) const {
    MENDEL_ASSIGN_OR_RETURN(const std::string text, Text(name));
    const google::protobuf::LogSilencer quiet;  // the refusal below says it all
    Message message;
    if (!message.ParseFromString(text))
      return InvalidInput("damaged plan: section '", name, "' cannot be decoded");
    return message;
  }
  absl::StatusOr<plan::PlanInfo> Info() const {
    MENDEL_ASSIGN_OR_RETURN(plan::PlanInfo info, Proto<plan::PlanInfo>(kInfo));
    if (info.format_version() == kPlanInfoVersion) return info;
    return InvalidInput("plan information version ", info.format_version(),
                        " is not supported (this program reads version ", kPlanInfoVersion, ")");
  }
  /// None in plans whose algorithms are no library's, or that were written before there was the
  /// section.
  absl::StatusOr<StoredEngines> Engines() const {
    if (!Has(kEngines)) return StoredEngines();
    MENDEL_ASSIGN_OR_RETURN(const std::string bytes, Text(kEngines));
    return ParseEngines(bytes);
  }
  /// None in plans that correct nothing or were written before there was the section.
  absl::StatusOr<std::vector<PlanKernel>> Kernels() const {
    if (!Has(kKernels)) return std::vector<PlanKernel>();
    MENDEL_ASSIGN_OR_RETURN(const std::string bytes, Text(kKernels));
    return ParseKernels(bytes);
  }
  absl::StatusOr<Graph> ReadGraph(
      std::string_view name, const google::protobuf::RepeatedPtrField<plan::TensorEntry>& entries,
      const PlanWeights& weights) const {
    std::vector<Tensor> tensors;
    for (const plan::TensorEntry& entry : entries) {
      MENDEL_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(entry, weights));
      tensors.push_back(std::move(tensor));
    }
    MENDEL_ASSIGN_OR_RETURN(const std::string text, Text(name));
    absl::StatusOr<Graph> graph = ParseGraph(text, tensors);
    if (!graph.ok()) return Annotate(graph.status(), Cat("the plan's section '", name, "'"));
    return graph;
  }

 private:
  const SectionEntry* Find(std::string_view name) const {
    const auto it = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const SectionEntry& e) { return e.name == name; });
    return it == entries_.end() ? nullptr : &*it;
  }
  absl::StatusOr<Tensor> ReadTensor(const plan::TensorEntry& entry,
                                    const PlanWeights& weights) const {
    const std::optional<DType> dtype = ParseDType(entry.dtype());
    if (!dtype.has_value() || entry.shape_size() > kMaxRank)
      return InvalidInput("damaged plan: a stored tensor has no valid type");
    int64_t count = 1;
    for (int64_t extent : entry.shape()) {
      const bool fits =
          extent >= 0 && extent <= kMaxElements && (extent == 0 || count <= kMaxElements / extent);
      if (!fits) return InvalidInput("damaged plan: a stored tensor has no valid shape");
      count *= extent;
    }
    TensorType type{*dtype, Shape(entry.shape().begin(), entry.shape().end())};
    const bool placed = entry.offset() % kSectionAlignment == 0 &&
                        entry.offset() <= weights.bytes.size() &&
                        entry.size() <= weights.bytes.size() - entry.offset() &&
                        entry.size() == static_cast<uint64_t>(ByteSize(type));
    if (!placed)
      return InvalidInput("damaged plan: a stored tensor of type ", TypeString(type),
                          " lies outside the weights");
    return Tensor(std::move(type), weights.bytes.subspan(entry.offset(), entry.size()),
                  weights.owner);
  }

  std::span<const std::byte> bytes_;
  std::vector<SectionEntry> entries_;
};

std::string ContentHash(const std::vector<SectionEntry>& entries) {
  Sha256 hash;
  for (const SectionEntry& entry : entries) {
    if (entry.name != kCertificate) hash.Update(Cat(entry.name, "=", DigestHex(entry.hash), "\n"));
  }
  return hash.HexDigest();
}

/// A member of a bundle has no weights of its own, a plan in its own file has.
absl::StatusOr<PlanWeights> FindWeights(const PlanReader& reader, std::shared_ptr<const void> owner,
                                        const std::optional<PlanWeights>& shared) {
  if (shared.has_value()) {
    if (reader.Has(kWeightsSection))
      return InvalidInput("damaged plan: a member of a bundle contains weights of its own");
    return *shared;
  }
  MENDEL_ASSIGN_OR_RETURN(const auto bytes, reader.Bytes(kWeightsSection));
  return PlanWeights{bytes, std::move(owner)};
}

}  // namespace

void WeightWriter::Add(const Tensor& tensor, plan::TensorEntry& entry) {
  entry.set_dtype(Cat(DTypeName(tensor.dtype())));
  for (int64_t extent : tensor.shape()) entry.add_shape(extent);
  entry.set_size(tensor.bytes().size());
  entry.set_offset(Place(tensor));
}

uint64_t WeightWriter::Place(const Tensor& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  const auto [same, fresh] = by_address_.try_emplace({bytes.data(), bytes.size()}, 0);
  if (!fresh) return same->second;
  const auto [equal, first] = by_content_.try_emplace(Sha256Hex(bytes), AlignSection(end_));
  same->second = equal->second;
  if (!first) return equal->second;
  static constexpr std::array<std::byte, kSectionAlignment> kZeros{};
  pieces_.push_back(std::span(kZeros).first(equal->second - end_));
  pieces_.push_back(bytes);
  end_ = equal->second + bytes.size();
  return equal->second;
}

std::vector<SectionData> PlanTexts::Sections(
    std::optional<std::vector<std::span<const std::byte>>> weights) const {
  std::vector<SectionData> sections = {{kGraph, {AsBytes(graph)}}};
  if (!baseline.empty()) sections.push_back({kBaseline, {AsBytes(baseline)}});
  sections.push_back({kTensors, {AsBytes(tensors)}});
  if (weights.has_value()) sections.push_back({kWeightsSection, *std::move(weights)});
  sections.push_back({kInfo, {AsBytes(info)}});
  if (!engines.empty()) sections.push_back({kEngines, {AsBytes(engines)}});
  if (!kernels.empty()) sections.push_back({kKernels, {AsBytes(kernels)}});
  if (!certificate.empty()) sections.push_back({kCertificate, {AsBytes(certificate)}});
  return sections;
}

absl::StatusOr<PlanTexts> EncodePlan(const Plan& plan, WeightWriter& weights) {
  MENDEL_RETURN_IF_ERROR(CheckPlan(plan));
  PlanTexts texts;
  std::vector<Tensor> graph_tensors;
  std::vector<Tensor> baseline_tensors;
  texts.graph = PrintForPlan(plan.graph, graph_tensors);
  if (!plan.baseline.nodes().empty())
    texts.baseline = PrintForPlan(plan.baseline, baseline_tensors);
  plan::TensorTable table;
  for (const Tensor& tensor : graph_tensors) weights.Add(tensor, *table.add_graph());
  for (const Tensor& tensor : baseline_tensors) weights.Add(tensor, *table.add_baseline());
  texts.tensors = Serialize(table);
  plan::PlanInfo info = plan.info;
  info.set_format_version(kPlanInfoVersion);
  texts.info = Serialize(info);
  if (!plan.engines.empty()) texts.engines = SerializeEngines(plan.engines);
  if (!plan.kernels.empty()) texts.kernels = SerializeKernels(plan.kernels);
  texts.certificate = plan.certificate_bytes;
  return texts;
}

absl::StatusOr<Plan> DecodePlan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                const std::optional<PlanWeights>& shared) {
  PlanReader reader(bytes);
  MENDEL_RETURN_IF_ERROR(reader.Open());
  Plan plan;
  MENDEL_ASSIGN_OR_RETURN(plan.info, reader.Info());
  MENDEL_ASSIGN_OR_RETURN(const plan::TensorTable table, reader.Proto<plan::TensorTable>(kTensors));
  MENDEL_ASSIGN_OR_RETURN(const PlanWeights weights, FindWeights(reader, std::move(owner), shared));
  MENDEL_ASSIGN_OR_RETURN(plan.graph, reader.ReadGraph(kGraph, table.graph(), weights));
  if (reader.Has(kBaseline)) {
    MENDEL_ASSIGN_OR_RETURN(plan.baseline, reader.ReadGraph(kBaseline, table.baseline(), weights));
  }
  MENDEL_ASSIGN_OR_RETURN(plan.engines, reader.Engines());
  MENDEL_ASSIGN_OR_RETURN(plan.kernels, reader.Kernels());
  if (reader.Has(kCertificate)) {
    MENDEL_ASSIGN_OR_RETURN(plan.certificate_bytes, reader.Text(kCertificate));
  }
  MENDEL_RETURN_IF_ERROR(CheckPlan(plan));
  return plan;
}

absl::StatusOr<PlanHeader> DecodePlanHeader(std::span<const std::byte> bytes,
                                            const std::optional<PlanWeights>& shared) {
  PlanReader reader(bytes);
  MENDEL_RETURN_IF_ERROR(reader.Open());
  PlanHeader header;
  header.sections = reader.entries();
  header.content_hash = ContentHash(reader.entries());
  MENDEL_ASSIGN_OR_RETURN(header.info, reader.Info());
  MENDEL_ASSIGN_OR_RETURN(header.graph_text, reader.Text(kGraph));
  MENDEL_ASSIGN_OR_RETURN(header.kernels, reader.Kernels());
  if (reader.Has(kCertificate)) {
    MENDEL_ASSIGN_OR_RETURN(header.certificate_bytes, reader.Text(kCertificate));
  }
  if (!shared.has_value()) return header;
  MENDEL_ASSIGN_OR_RETURN(const plan::TensorTable table, reader.Proto<plan::TensorTable>(kTensors));
  MENDEL_ASSIGN_OR_RETURN(const Graph graph, reader.ReadGraph(kGraph, table.graph(), *shared));
  header.inputs = InputShapes(graph);
  return header;
}

PlanWeights AlignedPlan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  constexpr std::align_val_t kAlignment{kSectionAlignment};
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kSectionAlignment == 0)
    return {bytes, std::move(owner)};
  void* copy = ::operator new(std::max<size_t>(1, bytes.size()), kAlignment);
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  std::shared_ptr<const void> kept(
      copy, [](const void* base) { ::operator delete(const_cast<void*>(base), kAlignment); });
  return {{static_cast<const std::byte*>(copy), bytes.size()}, std::move(kept)};
}

}  // namespace mendel
