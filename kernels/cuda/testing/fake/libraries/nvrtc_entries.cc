// The entry points of NVRTC that the program requests.

#include "kernels/cuda/testing/fake/libraries/entry.h"

MENDEL_FAKE_ENTRY2(nvrtcVersion, Nvrtc, nvrtc, Version)
MENDEL_FAKE_ENTRY1(nvrtcGetErrorString, Nvrtc, nvrtc, GetErrorString)
MENDEL_FAKE_ENTRY1(nvrtcGetNumSupportedArchs, Nvrtc, nvrtc, GetNumSupportedArchs)
MENDEL_FAKE_ENTRY1(nvrtcGetSupportedArchs, Nvrtc, nvrtc, GetSupportedArchs)
MENDEL_FAKE_ENTRY6(nvrtcCreateProgram, Nvrtc, nvrtc, CreateProgram)
MENDEL_FAKE_ENTRY1(nvrtcDestroyProgram, Nvrtc, nvrtc, DestroyProgram)
MENDEL_FAKE_ENTRY3(nvrtcCompileProgram, Nvrtc, nvrtc, CompileProgram)
MENDEL_FAKE_ENTRY2(nvrtcGetProgramLogSize, Nvrtc, nvrtc, GetProgramLogSize)
MENDEL_FAKE_ENTRY2(nvrtcGetProgramLog, Nvrtc, nvrtc, GetProgramLog)
MENDEL_FAKE_ENTRY2(nvrtcGetCUBINSize, Nvrtc, nvrtc, GetCubinSize)
MENDEL_FAKE_ENTRY2(nvrtcGetCUBIN, Nvrtc, nvrtc, GetCubin)
