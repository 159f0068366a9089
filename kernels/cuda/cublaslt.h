// cuBLASLt, loaded when the first GPU is used: its 420,000 relocations would cost every start 0.1 s and 100
// MB.
#pragma once

#include <cublasLt.h>

namespace plumb::cuda {

// A function of a library, as the type that it is assigned to.
struct LoadedFunction {
  void* address;
  template <typename Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address);
  }
};

struct CublasLt {
  // Throws Error(unavailable) where the library or a function is missing.
  CublasLt();
  LoadedFunction find(const char* name) const;

  void* library;
  decltype(&cublasLtCreate) create = find("cublasLtCreate");
  decltype(&cublasLtDestroy) destroy = find("cublasLtDestroy");
  decltype(&cublasLtGetStatusString) get_status_string = find("cublasLtGetStatusString");
  decltype(&cublasLtGetVersion) get_version = find("cublasLtGetVersion");
  decltype(&cublasLtMatmul) matmul = find("cublasLtMatmul");
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) matmul_algo_config_get_attribute =
      find("cublasLtMatmulAlgoConfigGetAttribute");
  decltype(&cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic =
      find("cublasLtMatmulAlgoGetHeuristic");
  decltype(&cublasLtMatmulDescCreate) matmul_desc_create = find("cublasLtMatmulDescCreate");
  decltype(&cublasLtMatmulDescDestroy) matmul_desc_destroy = find("cublasLtMatmulDescDestroy");
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute =
      find("cublasLtMatmulDescSetAttribute");
  decltype(&cublasLtMatmulPreferenceCreate) matmul_preference_create = find("cublasLtMatmulPreferenceCreate");
  decltype(&cublasLtMatmulPreferenceDestroy) matmul_preference_destroy =
      find("cublasLtMatmulPreferenceDestroy");
  decltype(&cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute =
      find("cublasLtMatmulPreferenceSetAttribute");
  decltype(&cublasLtMatrixLayoutCreate) matrix_layout_create = find("cublasLtMatrixLayoutCreate");
  decltype(&cublasLtMatrixLayoutDestroy) matrix_layout_destroy = find("cublasLtMatrixLayoutDestroy");
};

// Loads it at the first call, for the rest of the process.
const CublasLt& cublaslt();
// Whether it is loaded, or with `load` can be.
bool cublaslt_opens(bool load);

}  // namespace plumb::cuda
