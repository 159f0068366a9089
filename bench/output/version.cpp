#include "bench/output/version.h"

#include <dnnl.h>
#include <jpeglib.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/build.h"
#include "base/hash.h"
#include "base/text.h"
#include "comm/job.h"
#include "comm/nccl_communicator.h"
#include "kernels/device.h"

namespace plumb {
namespace {

std::string dotted(long major, long minor, long patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// A hash of this program's file as 16 hexadecimal digits; empty if the file can't be read.
std::string program_hash() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  std::vector<float> words(std::size_t{1} << 18);  // only their bits matter
  std::uint64_t hash = kFnvOffset;
  std::uint64_t bytes = 0;
  while (stream) {
    std::ranges::fill(words, 0.0f);
    stream.read(reinterpret_cast<char*>(words.data()),
                static_cast<std::streamsize>(words.size() * sizeof(float)));
    const auto read = static_cast<std::uint64_t>(stream.gcount());
    hash = fnv1a(std::span(words).first((read + sizeof(float) - 1) / sizeof(float)), hash);
    bytes += read;
  }
  return bytes == 0 ? "" : fmt::format("{:016x}", fnv1a(std::to_string(bytes), hash));
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
  return lines + fmt::format("program={}\n", program_hash());
}

}  // namespace plumb
