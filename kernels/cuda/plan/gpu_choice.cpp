#include "kernels/cuda/plan/gpu_choice.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace plumb::cuda {
namespace {

struct BuiltArchitecture {
  int compute_capability = 0;  // 90 for sm_90
  bool machine_code = false;
  bool ptx = false;
};

BuiltArchitecture parse_architecture(std::string_view text) {
  BuiltArchitecture built;
  const auto [rest_begin, error] =
      std::from_chars(text.data(), text.data() + text.size(), built.compute_capability);
  const std::string_view rest(rest_begin, static_cast<std::size_t>(text.data() + text.size() - rest_begin));
  const bool one_family = rest.starts_with('a') || rest.starts_with('f');
  const std::string_view kind = one_family ? rest.substr(1) : rest;
  built.machine_code = kind.empty() || kind == "-real";
  built.ptx = !one_family && (kind.empty() || kind == "-virtual");
  if (error != std::errc() || !(built.machine_code || built.ptx)) {
    throw Error(ExitCode::internal,
                "this program was built for GPU architecture '{}', which does not exist; configure with "
                "-DPLUMB_CUDA_ARCHITECTURES=90",
                text);
  }
  return built;
}

std::vector<BuiltArchitecture> parse_architectures(std::string_view list) {
  std::vector<BuiltArchitecture> built;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(",;"), list.size());
    built.push_back(parse_architecture(list.substr(0, end)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return built;
}

std::string names_of(const std::vector<BuiltArchitecture>& list) {
  std::string names;
  for (const BuiltArchitecture& built : list)
    append_part(names,
                fmt::format("{}{}", built.machine_code ? "sm_" : "compute_", built.compute_capability));
  return names;
}

}  // namespace

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string why_no_gpu(const std::string& cuda_error, int driver, int runtime) {
  const int major = runtime / 1000;
  std::string reason = cuda_error.empty() ? "none is visible" : cuda_error;
  std::string remedy = "check nvidia-smi and CUDA_VISIBLE_DEVICES";
  if (driver == 0) {
    reason = "this machine has no NVIDIA driver";
    remedy = fmt::format("install one for CUDA {} or newer", major);
  } else if (driver / 1000 < major) {
    reason = fmt::format("the driver is for CUDA {}, this program for CUDA {}", version_text(driver), major);
    remedy = fmt::format("update the driver to CUDA {} or newer", major);
  }
  return fmt::format("--device cuda: no CUDA GPU answers ({}); {}, or use --device cpu", reason, remedy);
}

bool runs_on(int compute_capability, std::string_view list) {
  return std::ranges::any_of(parse_architectures(list), [&](const BuiltArchitecture& built) {
    if (compute_capability < built.compute_capability) return false;
    return built.ptx || (built.machine_code && compute_capability / 10 == built.compute_capability / 10);
  });
}

void require_architecture(int compute_capability, std::string_view list, const std::string& gpu_name) {
  if (runs_on(compute_capability, list)) return;
  throw Error(ExitCode::unavailable,
              "--device cuda: the {} is sm_{}, and this program has kernels for {}; build it with "
              "-DPLUMB_CUDA_ARCHITECTURES={} and a CUDA toolkit that knows it, or use --device cpu",
              gpu_name, compute_capability, names_of(parse_architectures(list)), compute_capability);
}

}  // namespace plumb::cuda
