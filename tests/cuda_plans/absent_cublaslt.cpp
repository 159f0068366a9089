// A libcublasLt.so.12 that loads and rejects every matrix product. cuDNN creates a cuBLASLt handle at start,
// and the real library would be a download of 0.6 GB for the few engines that use it. Those don't build with
// this one; all others are cuDNN's own. Signatures follow cublasLt.h as far as arguments are used.
#include <cstddef>

namespace {

enum Status { success = 0, not_supported = 15 };  // cublasStatus_t's
int nothing = 0;

Status make(void** object) {
  *object = &nothing;
  return success;
}

}  // namespace

extern "C" {

Status cublasLtCreate(void** handle) {
  return make(handle);
}
Status cublasLtDestroy() {
  return success;
}
std::size_t cublasLtGetVersion() {
  return 120901;
}
Status cublasLtGetProperty(int, int* value) {
  *value = 12;
  return success;
}

Status cublasLtMatmulDescCreate(void** object) {
  return make(object);
}
Status cublasLtMatmulPreferenceCreate(void** object) {
  return make(object);
}
Status cublasLtMatrixLayoutCreate(void** object) {
  return make(object);
}
Status cublasLtMatrixTransformDescCreate(void** object) {
  return make(object);
}

Status cublasLtMatmulDescDestroy() {
  return success;
}
Status cublasLtMatmulPreferenceDestroy() {
  return success;
}
Status cublasLtMatrixLayoutDestroy() {
  return success;
}
Status cublasLtMatrixTransformDescDestroy() {
  return success;
}

Status cublasLtMatmulDescSetAttribute() {
  return success;
}
Status cublasLtMatmulPreferenceSetAttribute() {
  return success;
}
Status cublasLtMatrixLayoutSetAttribute() {
  return success;
}
Status cublasLtMatrixTransformDescSetAttribute() {
  return success;
}

Status cublasLtMatmulDescGetAttribute() {
  return not_supported;
}
Status cublasLtMatrixLayoutGetAttribute() {
  return not_supported;
}
Status cublasLtMatrixTransformDescGetAttribute() {
  return not_supported;
}
Status cublasLtMatmulAlgoGetHeuristic() {
  return not_supported;
}
Status cublasLtMatmul() {
  return not_supported;
}
Status cublasLtMatrixTransform() {
  return not_supported;
}

}  // extern "C"
