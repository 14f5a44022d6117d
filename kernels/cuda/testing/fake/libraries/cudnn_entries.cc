// The entry points of cuDNN that the program requests.

#include "kernels/cuda/testing/fake/libraries/entry.h"

MENDEL_FAKE_ENTRY0(cudnnGetVersion, Cudnn, cudnn, GetVersion)
MENDEL_FAKE_ENTRY2(cudnnGetLastErrorString, Cudnn, cudnn, GetLastErrorString)
MENDEL_FAKE_ENTRY2(cudnnBackendCreateDescriptor, Cudnn, cudnn, CreateDescriptor)
MENDEL_FAKE_ENTRY1(cudnnBackendDestroyDescriptor, Cudnn, cudnn, DestroyDescriptor)
MENDEL_FAKE_ENTRY1(cudnnBackendFinalize, Cudnn, cudnn, Finalize)
MENDEL_FAKE_ENTRY5(cudnnBackendSetAttribute, Cudnn, cudnn, SetAttribute)
MENDEL_FAKE_ENTRY6(cudnnBackendGetAttribute, Cudnn, cudnn, GetAttribute)
MENDEL_FAKE_ENTRY1(cudnnCreate, Cudnn, cudnn, CreateHandle)
MENDEL_FAKE_ENTRY1(cudnnDestroy, Cudnn, cudnn, DestroyHandle)
MENDEL_FAKE_ENTRY2(cudnnSetStream, Cudnn, cudnn, SetStream)
MENDEL_FAKE_ENTRY3(cudnnBackendExecute, Cudnn, cudnn, Execute)
