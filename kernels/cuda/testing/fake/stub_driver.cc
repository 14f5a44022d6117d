// A driver without a device, for cuDNN: it has what cuDNN looks for before it compiles engines, and
// takes their machine code. The other entries return CUDA_ERROR_STUB_LIBRARY, as the stub of a
// toolkit does. For tests; nothing runs.

namespace {

constexpr int kStub = 34;
char taken = 0;  // what handles point to

}  // namespace

extern "C" {

int cuLibraryLoadData(void** library) {
  *library = &taken;
  return 0;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = &taken;
  return 0;
}
int cuKernelGetAttribute(int* value) {
  *value = 0;
  return 0;
}
int cuKernelSetAttribute() { return 0; }
int cuLibraryUnload() { return 0; }

int cuCtxGetCurrent() { return kStub; }
int cuCtxGetLimit() { return kStub; }
int cuCtxPopCurrent() { return kStub; }
int cuCtxPushCurrent() { return kStub; }
int cuDeviceGet() { return kStub; }
int cuDeviceGetCount() { return kStub; }
int cuDriverGetVersion() { return kStub; }
int cuGetErrorName() { return kStub; }
int cuGetErrorString() { return kStub; }
int cuGetExportTable() { return kStub; }
int cuGetProcAddress_v2() { return kStub; }
int cuInit() { return kStub; }
int cuLaunchCooperativeKernel() { return kStub; }
int cuLaunchKernel() { return kStub; }
int cuLaunchKernelEx() { return kStub; }
int cuLibraryLoadFromFile() { return kStub; }
int cuLinkAddData() { return kStub; }
int cuLinkComplete() { return kStub; }
int cuLinkCreate() { return kStub; }
int cuLinkDestroy() { return kStub; }
int cuOccupancyMaxPotentialClusterSize() { return kStub; }
int cuStreamGetCtx() { return kStub; }

}  // extern "C"
