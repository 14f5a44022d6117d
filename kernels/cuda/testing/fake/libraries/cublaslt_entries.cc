// The entry points of cuBLASLt that the program requests.

#include "kernels/cuda/testing/fake/libraries/entry.h"

MENDEL_FAKE_ENTRY3(cublasLtMatmulDescCreate, CublasLt, cublaslt, MatmulDescCreate)
MENDEL_FAKE_ENTRY4(cublasLtMatmulDescSetAttribute, CublasLt, cublaslt, MatmulDescSetAttribute)
MENDEL_FAKE_ENTRY1(cublasLtMatmulDescDestroy, CublasLt, cublaslt, MatmulDescDestroy)
MENDEL_FAKE_ENTRY5(cublasLtMatrixLayoutCreate, CublasLt, cublaslt, MatrixLayoutCreate)
MENDEL_FAKE_ENTRY4(cublasLtMatrixLayoutSetAttribute, CublasLt, cublaslt, MatrixLayoutSetAttribute)
MENDEL_FAKE_ENTRY1(cublasLtMatrixLayoutDestroy, CublasLt, cublaslt, MatrixLayoutDestroy)
MENDEL_FAKE_ENTRY1(cublasLtMatmulPreferenceCreate, CublasLt, cublaslt, MatmulPreferenceCreate)
MENDEL_FAKE_ENTRY4(cublasLtMatmulPreferenceSetAttribute, CublasLt, cublaslt,
                   MatmulPreferenceSetAttribute)
MENDEL_FAKE_ENTRY1(cublasLtMatmulPreferenceDestroy, CublasLt, cublaslt, MatmulPreferenceDestroy)
MENDEL_FAKE_ENTRY0(cublasLtGetVersion, CublasLt, cublaslt, GetVersion)
MENDEL_FAKE_ENTRY1(cublasLtGetStatusName, CublasLt, cublaslt, GetStatusName)
MENDEL_FAKE_ENTRY1(cublasLtGetStatusString, CublasLt, cublaslt, GetStatusString)
MENDEL_FAKE_ENTRY1(cublasLtCreate, CublasLt, cublaslt, Create)
MENDEL_FAKE_ENTRY1(cublasLtDestroy, CublasLt, cublaslt, Destroy)
MENDEL_FAKE_ENTRY10(cublasLtMatmulAlgoGetHeuristic, CublasLt, cublaslt, MatmulAlgoGetHeuristic)
MENDEL_FAKE_ENTRY16(cublasLtMatmul, CublasLt, cublaslt, Matmul)
