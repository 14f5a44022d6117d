// The part of ONNX Runtime's C interface that the execution provider uses, declared by position.
//
// ONNX Runtime hands out tables of function pointers that only grow at their end. A member is its
// position in such a table and its signature. Positions and signatures are those of version 1.23,
// the first whose providers can take parts of a graph; every later version keeps them.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_ABI_H_
#define MENDEL_CLIENT_ONNXRUNTIME_ABI_H_

#include <cstddef>
#include <cstdint>

namespace mendel::ort {

// ONNX Runtime's objects; only pointers to them exist here.
struct Status;
struct Value;
struct Logger;
struct SessionOptions;
struct KernelContext;
struct TypeInfo;
struct TensorInfo;
struct Graph;
struct Node;
struct ValueInfo;
struct Attribute;
struct HardwareDevice;
struct EpDevice;
struct KeyValuePairs;
struct GraphSupport;
struct ComputeContext;
struct Env;
struct Session;
struct RunOptions;
struct MemoryInfo;

/// The version of the interface that this file describes: the second number of 1.23.
inline constexpr uint32_t kVersion = 23;

/// Any of the tables of function pointers.
struct Table;

/// The root of the interface.
struct ApiBase {
  const Table* (*get_api)(uint32_t version);
  const char* (*version_text)();
};

/// A member of a table.
template <size_t kIndex, class Signature>
struct Member;
template <size_t kIndex, class Result, class... Arguments>
struct Member<kIndex, Result(Arguments...)> {
  using Function = Result (*)(Arguments...);
  static constexpr size_t kPosition = kIndex;

  static Function Of(const Table* table) {
    return reinterpret_cast<Function>(reinterpret_cast<void* const*>(table)[kIndex]);
  }
  Result operator()(const Table* table, Arguments... arguments) const {
    return Of(table)(arguments...);
  }
};

// The main table.
inline constexpr Member<0, Status*(int, const char*)> kCreateStatus;
inline constexpr Member<1, int(const Status*)> kGetErrorCode;
inline constexpr Member<2, const char*(const Status*)> kGetErrorMessage;
inline constexpr Member<3, Status*(int, const char*, Env**)> kCreateEnv;
inline constexpr Member<8,
                        Status*(const Env*, const void*, size_t, const SessionOptions*, Session**)>
    kCreateSessionFromArray;
inline constexpr Member<9,
                        Status*(Session*, const RunOptions*, const char* const*,
                                const Value* const*, size_t, const char* const*, size_t, Value**)>
    kRun;
inline constexpr Member<10, Status*(SessionOptions**)> kCreateSessionOptions;
inline constexpr Member<24, Status*(SessionOptions*, int)> kSetIntraOpNumThreads;
inline constexpr Member<49, Status*(const MemoryInfo*, void*, size_t, const int64_t*, size_t, int,
                                    Value**)>
    kCreateTensorWithData;
inline constexpr Member<51, Status*(Value*, void**)> kGetTensorMutableData;
inline constexpr Member<55, Status*(const TypeInfo*, const TensorInfo**)> kCastTypeInfoToTensorInfo;
inline constexpr Member<60, Status*(const TensorInfo*, int*)> kGetTensorElementType;
inline constexpr Member<61, Status*(const TensorInfo*, size_t*)> kGetDimensionsCount;
inline constexpr Member<62, Status*(const TensorInfo*, int64_t*, size_t)> kGetDimensions;
inline constexpr Member<63, Status*(const TensorInfo*, const char**, size_t)>
    kGetSymbolicDimensions;
inline constexpr Member<65, Status*(const Value*, TensorInfo**)> kGetTensorTypeAndShape;
inline constexpr Member<69, Status*(int, int, MemoryInfo**)> kCreateCpuMemoryInfo;
inline constexpr Member<88, Status*(const KernelContext*, size_t*)> kKernelContextGetInputCount;
inline constexpr Member<90, Status*(const KernelContext*, size_t, const Value**)>
    kKernelContextGetInput;
inline constexpr Member<91, Status*(KernelContext*, size_t, const int64_t*, size_t, Value**)>
    kKernelContextGetOutput;
inline constexpr Member<92, void(Env*)> kReleaseEnv;
inline constexpr Member<93, void(Status*)> kReleaseStatus;
inline constexpr Member<94, void(MemoryInfo*)> kReleaseMemoryInfo;
inline constexpr Member<95, void(Session*)> kReleaseSession;
inline constexpr Member<96, void(Value*)> kReleaseValue;
inline constexpr Member<99, void(TensorInfo*)> kReleaseTensorInfo;
inline constexpr Member<100, void(SessionOptions*)> kReleaseSessionOptions;
inline constexpr Member<130, Status*(SessionOptions*, const char*, const char*)> kAddConfigEntry;
inline constexpr Member<211, Status*(const char*, const void*, int, int, Attribute**)>
    kCreateAttribute;
inline constexpr Member<212, void(Attribute*)> kReleaseAttribute;
inline constexpr Member<237, Status*(const SessionOptions*, const char*, int*)> kHasConfigEntry;
inline constexpr Member<238, Status*(const SessionOptions*, const char*, char*, size_t*)>
    kGetConfigEntry;
inline constexpr Member<247,
                        Status*(const Logger*, int, const char*, const char*, int, const char*)>
    kLogMessage;
inline constexpr Member<272, Status*(const Attribute*, int, void*, size_t, size_t*)> kReadAttribute;
inline constexpr Member<274, Status*(const KernelContext*, void (*)(void*, size_t), size_t, size_t,
                                     void*)>
    kParallelFor;
inline constexpr Member<289, Status*(const ValueInfo*, const char**)> kGetValueInfoName;
inline constexpr Member<290, Status*(const ValueInfo*, const TypeInfo**)> kGetValueInfoTypeInfo;
inline constexpr Member<291, const Table*()> kGetModelEditorApi;
inline constexpr Member<295, void(KeyValuePairs**)> kCreateKeyValuePairs;
inline constexpr Member<296, void(KeyValuePairs*, const char*, const char*)> kAddKeyValuePair;
inline constexpr Member<297, const char*(const KeyValuePairs*, const char*)> kGetKeyValue;
inline constexpr Member<300, void(KeyValuePairs*)> kReleaseKeyValuePairs;
inline constexpr Member<307, int(const HardwareDevice*)> kHardwareDeviceType;
inline constexpr Member<317, const Table*()> kGetEpApi;
inline constexpr Member<318, Status*(const Value*, size_t*)> kGetTensorSizeInBytes;
inline constexpr Member<326, Status*(const ValueInfo*, const Value**)> kGetInitializerValue;
inline constexpr Member<330, Status*(const ValueInfo*, bool*)> kIsGraphOutput;
inline constexpr Member<331, Status*(const ValueInfo*, bool*)> kIsConstantInitializer;
inline constexpr Member<334, Status*(const Graph*, const char**)> kGraphModelPath;
inline constexpr Member<335, Status*(const Graph*, int64_t*)> kGraphIrVersion;
inline constexpr Member<336, Status*(const Graph*, size_t*)> kGraphNumOperatorSets;
inline constexpr Member<337, Status*(const Graph*, const char**, int64_t*, size_t)>
    kGraphOperatorSets;
inline constexpr Member<340, Status*(const Graph*, size_t*)> kGraphNumOutputs;
inline constexpr Member<341, Status*(const Graph*, const ValueInfo**, size_t)> kGraphOutputs;
inline constexpr Member<344, Status*(const Graph*, size_t*)> kGraphNumNodes;
inline constexpr Member<345, Status*(const Graph*, const Node**, size_t)> kGraphNodes;
inline constexpr Member<349, Status*(const Node*, const char**)> kNodeName;
inline constexpr Member<350, Status*(const Node*, const char**)> kNodeOperator;
inline constexpr Member<351, Status*(const Node*, const char**)> kNodeDomain;
inline constexpr Member<353, Status*(const Node*, size_t*)> kNodeNumInputs;
inline constexpr Member<354, Status*(const Node*, const ValueInfo**, size_t)> kNodeInputs;
inline constexpr Member<355, Status*(const Node*, size_t*)> kNodeNumOutputs;
inline constexpr Member<356, Status*(const Node*, const ValueInfo**, size_t)> kNodeOutputs;
inline constexpr Member<357, Status*(const Node*, size_t*)> kNodeNumImplicitInputs;
inline constexpr Member<358, Status*(const Node*, const ValueInfo**, size_t)> kNodeImplicitInputs;
inline constexpr Member<359, Status*(const Node*, size_t*)> kNodeNumAttributes;
inline constexpr Member<360, Status*(const Node*, const Attribute**, size_t)> kNodeAttributes;
inline constexpr Member<362, Status*(const Attribute*, Value**)> kAttributeTensor;
inline constexpr Member<363, Status*(const Attribute*, int*)> kAttributeType;
inline constexpr Member<364, Status*(const Attribute*, const char**)> kAttributeName;
inline constexpr Member<365, Status*(const Node*, size_t*)> kNodeNumSubgraphs;
inline constexpr Member<378, Status*(const Value*, const void**)> kGetTensorData;

// The table of providers.
struct EpFactory;
inline constexpr Member<0, Status*(EpFactory*, const HardwareDevice*, const KeyValuePairs*,
                                   const KeyValuePairs*, EpDevice**)>
    kCreateEpDevice;
struct FusionOptions {
  uint32_t version = kVersion;
  bool drop_constant_initializers = true;  ///< the provider keeps copies
};
inline constexpr Member<2, Status*(GraphSupport*, const Node* const*, size_t, const FusionOptions*)>
    kAddNodesToFuse;

// The table of the model editor.
inline constexpr Member<6, Status*(const char*, const char*, const char*, const char* const*,
                                   size_t, const char* const*, size_t, Attribute**, size_t, Node**)>
    kCreateNode;

// Types of attributes.
enum AttributeKind : int {
  kUndefined = 0,
  kInt = 1,
  kInts = 2,
  kFloat = 3,
  kFloats = 4,
  kString = 5,
  kStrings = 6,
  kSubgraph = 7,
  kTensor = 8
};
inline constexpr int kInvalidArgument = 2, kNotImplemented = 9, kFail = 1, kEpFail = 11;
inline constexpr int kLogInfo = 1, kLogWarning = 2;
inline constexpr int kCpuDevice = 0;

/// Functions of one compiled part; ONNX Runtime calls them.
struct ComputeInfo {
  uint32_t version = kVersion;
  Status* (*create_state)(ComputeInfo* self, ComputeContext* context, void** state) = nullptr;
  Status* (*compute)(ComputeInfo* self, void* state, KernelContext* context) = nullptr;
  void (*release_state)(ComputeInfo* self, void* state) = nullptr;
};

/// A provider of one session. Members that stay null are optional, or of a later version.
struct Ep {
  uint32_t version = kVersion;
  const char* (*get_name)(const Ep* self) = nullptr;
  Status* (*get_capability)(Ep* self, const Graph* graph, GraphSupport* support) = nullptr;
  Status* (*compile)(Ep* self, const Graph** graphs, const Node** fused_nodes, size_t count,
                     ComputeInfo** infos, Node** context_nodes) = nullptr;
  void (*release_compute_infos)(Ep* self, ComputeInfo** infos, size_t count) = nullptr;
  void* optional[7] = {};  ///< data layouts, dynamic options, runs, allocators, streams
  const char* (*compatibility)(Ep* self, const Graph* graph) = nullptr;
  void* later[16] = {};
};

/// The maker of providers.
struct EpFactory {
  uint32_t version = kVersion;
  const char* (*get_name)(const EpFactory* self) = nullptr;
  const char* (*get_vendor)(const EpFactory* self) = nullptr;
  Status* (*get_supported_devices)(EpFactory* self, const HardwareDevice* const* devices,
                                   size_t count, EpDevice** ep_devices, size_t max,
                                   size_t* num) = nullptr;
  Status* (*create_ep)(EpFactory* self, const HardwareDevice* const* devices,
                       const KeyValuePairs* const* metadata, size_t count,
                       const SessionOptions* options, const Logger* logger, Ep** ep) = nullptr;
  void (*release_ep)(EpFactory* self, Ep* ep) = nullptr;
  uint32_t (*get_vendor_id)(const EpFactory* self) = nullptr;
  const char* (*get_version)(const EpFactory* self) = nullptr;
  Status* (*validate_compatibility)(EpFactory* self, const HardwareDevice* const* devices,
                                    size_t count, const char* info, int* compatibility) = nullptr;
  Status* (*create_allocator)(EpFactory* self, const void* memory_info,
                              const KeyValuePairs* options, void** allocator) = nullptr;
  void (*release_allocator)(EpFactory* self, void* allocator) = nullptr;
  Status* (*create_data_transfer)(EpFactory* self, void** transfer) = nullptr;
  bool (*is_stream_aware)(const EpFactory* self) = nullptr;
  void* later[16] = {};
};

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_ABI_H_
