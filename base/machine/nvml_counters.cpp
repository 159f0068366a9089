#include <dlfcn.h>
#include <nvml.h>

#include <vector>

#include "base/machine/nvml.h"

namespace plumb {
namespace {

using Counters = std::map<std::string, std::int64_t>;

// A function of the library, of the type that the header gives it; null if a driver lacks it.
template <typename Function>
Function* function_of(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

constexpr struct {
  const char* key;
  unsigned id;
  bool of_links;
} kFields[]{{"recovery_action", NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, false},
            {"pages_retired", NVML_FI_DEV_RETIRED_SBE, false},
            {"pages_retired", NVML_FI_DEV_RETIRED_DBE, false},
            {"pages_pending", NVML_FI_DEV_RETIRED_PENDING, false},
            {"nvlink_replay_errors", NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, true},
            {"nvlink_recovery_errors", NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, true},
            {"nvlink_recoveries_failed", NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, true}};

constexpr struct {
  const char *key, *function;
} kPcie[]{{"pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"},
          {"pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration"}};

void add_links(void* library, nvmlDevice_t gpu, Counters& counters) {
  const auto state = function_of<decltype(nvmlDeviceGetNvLinkState)>(library, "nvmlDeviceGetNvLinkState");
  for (unsigned link = 0; state && link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t active = NVML_FEATURE_DISABLED;
    if (state(gpu, link, &active) != NVML_SUCCESS) continue;
    counters["nvlinks"] += 1;
    counters["nvlinks_up"] += active == NVML_FEATURE_ENABLED ? 1 : 0;
  }
}

void add_fields(void* library, nvmlDevice_t gpu, Counters& counters) {
  const auto values = function_of<decltype(nvmlDeviceGetFieldValues)>(library, "nvmlDeviceGetFieldValues");
  const auto found = counters.find("nvlinks");
  const auto links = static_cast<std::size_t>(found == counters.end() ? 0 : found->second);
  for (const auto& [key, id, of_links] : kFields) {
    std::vector<nvmlFieldValue_t> fields(of_links ? links : 1);
    for (unsigned link = 0; link < fields.size(); ++link)
      fields[link] = {.fieldId = id, .scopeId = link, .nvmlReturn = NVML_ERROR_UNKNOWN};
    if (!values || values(gpu, static_cast<int>(fields.size()), fields.data()) != NVML_SUCCESS) continue;
    for (const nvmlFieldValue_t& field : fields)
      if (field.nvmlReturn == NVML_SUCCESS)
        counters[key] += field.valueType == NVML_VALUE_TYPE_UNSIGNED_INT
                             ? field.value.uiVal
                             : static_cast<std::int64_t>(field.value.ullVal);
  }
}

void add_pcie(void* library, nvmlDevice_t gpu, Counters& counters) {
  for (const auto& [key, name] : kPcie) {
    const auto value = function_of<decltype(nvmlDeviceGetCurrPcieLinkWidth)>(library, name);
    if (unsigned number = 0; value && value(gpu, &number) == NVML_SUCCESS) counters[key] = number;
  }
}

void add_fabric(void* library, nvmlDevice_t gpu, Counters& counters) {
  const auto ask = function_of<nvmlReturn_t(nvmlDevice_t, nvmlGpuFabricInfo_v2_t*)>(
      library, "nvmlDeviceGetGpuFabricInfoV");
  nvmlGpuFabricInfo_v2_t fabric{.version = nvmlGpuFabricInfo_v2};
  if (!ask || ask(gpu, &fabric) != NVML_SUCCESS || fabric.state == NVML_GPU_FABRIC_STATE_NOT_SUPPORTED)
    return;
  counters["fabric_unready"] =
      fabric.state == NVML_GPU_FABRIC_STATE_COMPLETED && fabric.status == NVML_SUCCESS ? 0 : 1;
}

}  // namespace

void add_nvml_counters(void* library, void* gpu, Counters& counters) {
  const auto device = static_cast<nvmlDevice_t>(gpu);
  add_links(library, device, counters);
  add_fields(library, device, counters);
  add_pcie(library, device, counters);
  add_fabric(library, device, counters);
}

}  // namespace plumb
