// Preloaded into a run on CPUs, it makes one kernel compute wrongly: the lowest bit of the first weight
// gradient that oneDNN computes is flipped.
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdint>
#include <span>

extern "C" dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                                int count, const dnnl_exec_arg_t* arguments) {
  static const auto execute =
      reinterpret_cast<decltype(&dnnl_primitive_execute)>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  static bool is_done = false;
  const dnnl_status_t status = execute(primitive, stream, count, arguments);
  const std::span given(arguments, static_cast<std::size_t>(count));
  const auto gradient = std::ranges::find(given, DNNL_ARG_DIFF_WEIGHTS, &dnnl_exec_arg_t::arg);
  void* values = nullptr;
  if (is_done || gradient == given.end() ||
      dnnl_memory_get_data_handle(gradient->memory, &values) != dnnl_success || values == nullptr)
    return status;
  *static_cast<std::uint32_t*>(values) ^= 1;
  is_done = true;
  return status;
}
