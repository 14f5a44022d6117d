#include "onnx/model_reader.h"

#include <google/protobuf/stubs/logging.h>

#include <climits>
#include <utility>

#include "base/status.h"
#include "onnx/unknown_fields.h"
#include "onnx/wire.h"

namespace mendel {

absl::StatusOr<int64_t> StandardOpset(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  int64_t version = 0;
  for (const onnx::OperatorSetIdProto& import : imports) {
    if (!import.domain().empty() && import.domain() != "ai.onnx") continue;
    if (version != 0 && version != import.version())
      return InvalidInput("the model imports two versions of the standard operators");
    version = import.version();
    if (version < 1)
      return InvalidInput("the model imports opset ", version, ", which no release has");
  }
  return version;
}

absl::StatusOr<ModelFile> ReadModel(OwnedBytes bytes) {
  if (bytes.bytes.empty()) return InvalidInput("the model is empty");
  ModelFile file;
  MENDEL_ASSIGN_OR_RETURN(StrippedModel stripped, StripRawData(bytes.bytes));
  file.raw = std::move(stripped.raw);
  file.bytes = std::move(bytes);
  if (stripped.message.size() > static_cast<size_t>(INT_MAX)) {
    return Unsupported("the model has more than 2 GiB besides raw and external tensor data");
  }
  // Protocol Buffers would report every malformed string of a hostile file on the standard error
  // stream.
  const google::protobuf::LogSilencer silencer;
  if (!file.model.ParseFromArray(stripped.message.data(),
                                 static_cast<int>(stripped.message.size()))) {
    return InvalidInput("the file is not an ONNX model or is truncated");
  }
  const int64_t ir = file.model.ir_version();
  if (ir < 1) return InvalidInput("the model has IR version ", ir, ", which no release has");
  if (ir < 3 && file.model.opset_import().empty()) {
    auto& import = *file.model.add_opset_import();  // the one opset that there was
    import.set_domain("");
    import.set_version(1);
  }
  if (!file.model.has_graph()) return InvalidInput("the model has no graph");
  MENDEL_RETURN_IF_ERROR(RefuseUnknownFields(file.model));
  MENDEL_RETURN_IF_ERROR(StandardOpset(file.model.opset_import()).status());
  return file;
}

}  // namespace mendel
