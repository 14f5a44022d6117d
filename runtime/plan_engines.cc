#include "runtime/plan_engines.h"

#include <google/protobuf/stubs/logging.h>

#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "mendel/engines.pb.h"

namespace mendel {

absl::Status CheckEngines(const StoredEngines& engines,
                          const google::protobuf::Map<int32_t, std::string>& algorithms) {
  for (const auto& [node, engine] : engines) {
    if (algorithms.count(node) == 0)
      return InvalidInput("an engine is given for node ", node, ", which has no algorithm");
    const bool fits = engine.text.size() <= kMaxEngineText &&
                      engine.library.size() <= kMaxEngineName &&
                      engine.device.size() <= kMaxEngineName;
    if (!fits) {
      return InvalidInput("the engine of node ", node, " is larger than a plan may hold (",
                          engine.text.size(), " bytes of text, at most ", kMaxEngineText, ")");
    }
  }
  return absl::OkStatus();
}

std::string SerializeEngines(const StoredEngines& engines) {
  plan::EngineTable table;  // no map in it: equal messages have equal bytes
  table.set_format_version(kPlanEnginesVersion);
  for (const auto& [node, engine] : engines) {
    plan::EngineProto& entry = *table.add_engines();
    entry.set_node(node);
    entry.set_library(engine.library);
    entry.set_device(engine.device);
    entry.set_sha256(Sha256Hex(engine.text));
    entry.set_text(engine.text);
  }
  return table.SerializeAsString();
}

absl::StatusOr<StoredEngines> ParseEngines(const std::string& bytes) {
  if (bytes.size() > kMaxEnginesSection)
    return InvalidInput("damaged plan: section 'engines' is too large");
  const google::protobuf::LogSilencer quiet;
  plan::EngineTable table;
  if (!table.ParseFromString(bytes))
    return InvalidInput("damaged plan: section 'engines' cannot be decoded");
  if (table.format_version() != kPlanEnginesVersion) {
    return InvalidInput("engines of version ", table.format_version(),
                        " are not supported (this program reads version ", kPlanEnginesVersion,
                        ")");
  }
  StoredEngines engines;
  for (const plan::EngineProto& entry : table.engines()) {
    if (Sha256Hex(entry.text()) != entry.sha256()) {
      return InvalidInput("damaged plan: the engine of node ", entry.node(),
                          " does not have its hash");
    }
    const bool is_new =
        engines
            .try_emplace(entry.node(), StoredEngine{entry.library(), entry.device(), entry.text()})
            .second;
    if (!is_new) return InvalidInput("damaged plan: two engines of node ", entry.node());
  }
  return engines;
}

}  // namespace mendel
