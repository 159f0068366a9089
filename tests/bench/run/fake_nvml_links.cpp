// Links, fields and fabric of the GPU, by NVML's own header: 18 NVLinks, one of which is down.
#include <nvml.h>

extern "C" {

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t, unsigned link, nvmlEnableState_t* active) {
  *active = link == 3 ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
  return link < 18 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t, int count, nvmlFieldValue_t* values) {
  for (nvmlFieldValue_t* field = values; field != values + count; ++field) {
    field->nvmlReturn = NVML_SUCCESS;
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    if (field->fieldId == NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY) {
      field->value.ullVal = field->scopeId;  // 0 to 17
    } else if (field->fieldId == NVML_FI_DEV_NVLINK_ERROR_DL_CRC) {
      field->value.ullVal = 0;
    } else if (field->fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION) {
      field->value.ullVal = ~0ULL;
      field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
      field->value.uiVal = NVML_GPU_RECOVERY_ACTION_NODE_REBOOT;
    } else {
      field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    }
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t, unsigned* width) {
  *width = 8;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t, unsigned* width) {
  *width = 16;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t, nvmlGpuFabricInfoV_t* info) {
  auto* const fabric = reinterpret_cast<nvmlGpuFabricInfo_v2_t*>(info);
  if (fabric->version != nvmlGpuFabricInfo_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  fabric->state = NVML_GPU_FABRIC_STATE_IN_PROGRESS;
  return NVML_SUCCESS;
}

}  // extern "C"
