#include "runtime/plan_kernels.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "base/status.h"
#include "mendel/kernels.pb.h"
#include "runtime/kernel_text.h"

namespace mendel {
namespace {

constexpr size_t kMaxFileName = 200;

/// Files are written under this name into a folder that the caller chose: nothing in it may lead
/// elsewhere.
bool IsFileName(const std::string& name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxFileName && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

absl::StatusOr<std::vector<PlanKernel>> WriteKernels(const Graph& graph) {
  std::vector<PlanKernel> kernels;
  for (const KernelWriter* writer : AllKernelWriters()) {
    for (const bool channels_last : {false, true}) {
      MENDEL_ASSIGN_OR_RETURN(KernelTexts texts,
                              writer->Write(graph, {.channels_last = channels_last}));
      for (KernelText& kernel : texts.kernels) {
        kernels.push_back({std::string(writer->name()), channels_last, std::move(kernel.file_name),
                           kernel.node, std::move(kernel.mutant), std::move(kernel.text)});
      }
    }
  }
  return kernels;
}

absl::Status CheckKernels(const std::vector<PlanKernel>& kernels, const Graph& graph) {
  std::set<std::tuple<std::string, bool, std::string>> files;
  for (const PlanKernel& kernel : kernels) {
    const bool exists = kernel.node >= 0 && static_cast<size_t>(kernel.node) < graph.nodes().size();
    if (!exists || graph.node(kernel.node).op->name != "Patch") {
      return InvalidInput("kernel ", kernel.file_name, " is for node ", kernel.node,
                          ", which corrects nothing");
    }
    if (!IsFileName(kernel.file_name))
      return InvalidInput("a kernel's file name is '", kernel.file_name, "'");
    if (!files.insert({kernel.language, kernel.channels_last, kernel.file_name}).second) {
      return InvalidInput("two kernels are named ", kernel.file_name);
    }
  }
  return absl::OkStatus();
}

std::string SerializeKernels(const std::vector<PlanKernel>& kernels) {
  plan::KernelTable table;  // no map in it: equal messages have equal bytes
  table.set_format_version(kPlanKernelsVersion);
  for (const PlanKernel& kernel : kernels) {
    plan::KernelTextProto& entry = *table.add_kernels();
    entry.set_language(kernel.language);
    entry.set_channels_last(kernel.channels_last);
    entry.set_file_name(kernel.file_name);
    entry.set_node(kernel.node);
    entry.set_mutant(kernel.mutant);
    entry.set_sha256(Sha256Hex(kernel.text));
    entry.set_text(kernel.text);
  }
  return table.SerializeAsString();
}

absl::StatusOr<std::vector<PlanKernel>> ParseKernels(const std::string& bytes) {
  const google::protobuf::LogSilencer quiet;
  plan::KernelTable table;
  if (!table.ParseFromString(bytes))
    return InvalidInput("damaged plan: section 'kernels' cannot be decoded");
  if (table.format_version() != kPlanKernelsVersion) {
    return InvalidInput("kernels of version ", table.format_version(),
                        " are not supported (this program reads version ", kPlanKernelsVersion,
                        ")");
  }
  std::vector<PlanKernel> kernels;
  for (const plan::KernelTextProto& entry : table.kernels()) {
    if (!IsFileName(entry.file_name()))
      return InvalidInput("damaged plan: a kernel's file name is '", entry.file_name(), "'");
    if (Sha256Hex(entry.text()) != entry.sha256()) {
      return InvalidInput("damaged plan: the text of kernel ", entry.file_name(),
                          " does not have its hash");
    }
    kernels.push_back({entry.language(), entry.channels_last(), entry.file_name(), entry.node(),
                       entry.mutant(), entry.text()});
  }
  return kernels;
}

}  // namespace mendel
