// Preloaded into a run, it makes oneDNN's kernels of weight gradients compute wrongly: a bit flips in each of
// their results.
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdint>
#include <span>

extern "C" dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                                int count, const dnnl_exec_arg_t* arguments) {
  static const auto execute =
      reinterpret_cast<decltype(&dnnl_primitive_execute)>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  const dnnl_status_t status = execute(primitive, stream, count, arguments);
  const std::span given(arguments, static_cast<std::size_t>(count));
  const auto gradient = std::ranges::find(given, DNNL_ARG_DIFF_WEIGHTS, &dnnl_exec_arg_t::arg);
  if (gradient == given.end()) return status;
  void* values = nullptr;
  if (dnnl_memory_get_data_handle(gradient->memory, &values) == dnnl_success)
    *static_cast<std::uint32_t*>(values) ^= std::uint32_t{1} << 20;
  return status;
}
