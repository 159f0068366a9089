#include "bench/output/version.h"

#include <dnnl.h>
#include <jpeglib.h>

#include <nlohmann/json.hpp>

#include "base/build.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/job.h"
#include "kernels/device.h"

namespace plumb {
namespace {

std::string dotted(long major, long minor, long patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

nlohmann::ordered_json engine_build_json(bool load) {
  const dnnl_version_t* onednn = dnnl_version();
  constexpr long kJpeg = LIBJPEG_TURBO_VERSION_NUMBER;  // 2001005 for 2.1.5
  nlohmann::ordered_json libraries;
  libraries["oneDNN"] = dotted(onednn->major, onednn->minor, onednn->patch);
  libraries["MPI"] = mpi_library();
  libraries["libjpeg-turbo"] = dotted(kJpeg / 1'000'000, kJpeg / 1000 % 1000, kJpeg % 1000);
  for (const std::string& library : cuda::library_versions(load))
    if (const std::size_t blank = library.rfind(' '); blank != std::string::npos)
      libraries[library.substr(0, blank)] = library.substr(blank + 1);
  if (const std::string nccl = nccl_version(); !nccl.empty()) libraries["NCCL"] = nccl;
  return build_json(std::move(libraries));
}

std::string build_lines() {
  nlohmann::ordered_json entries = engine_build_json().flatten();
  const auto commit = entries.at("/commit").get<std::string>();
  std::string lines = fmt::format("commit={}\n", commit);
  entries.erase("/commit");
  for (const auto& [name, value] : entries.items())
    lines += fmt::format("{}={}\n", name.substr(name.rfind('/') + 1), value.get<std::string>());
  return lines;
}

}  // namespace plumb
