#include "bench/output/version.h"

#include <dnnl.h>
#include <jpeglib.h>
#include <mpi.h>

#include <CLI/Version.hpp>

#include "base/text.h"
#include "bench/output/build_info.h"
#include "comm/nccl_communicator.h"
#include "kernels/device.h"

namespace plumb {
namespace {

std::string dotted(long major, long minor, long patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// First line, up to the first comma: "Open MPI v4.1.4". May be asked before MPI_Init.
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown";
  const std::string all(text);
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace

nlohmann::ordered_json build_json() {
  const dnnl_version_t* onednn = dnnl_version();
  constexpr long kJpeg = LIBJPEG_TURBO_VERSION_NUMBER;  // 2001005 for 2.1.5
  nlohmann::ordered_json libraries;
  libraries["oneDNN"] = dotted(onednn->major, onednn->minor, onednn->patch);
  libraries["MPI"] = mpi_version();
  libraries["libjpeg-turbo"] = dotted(kJpeg / 1'000'000, kJpeg / 1000 % 1000, kJpeg % 1000);
  libraries["CLI11"] = CLI11_VERSION;
  libraries["nlohmann-json"] =
      dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
  for (const std::string& library : cuda::library_versions())
    if (const std::size_t blank = library.rfind(' '); blank != std::string::npos)
      libraries[library.substr(0, blank)] = library.substr(blank + 1);
  if (const std::string nccl = nccl_version(); !nccl.empty()) libraries["NCCL"] = nccl;
  return {{"version", kVersion},
          {"commit", kCommit},
          {"build_type", kBuildType},
          {"compiler", kCompiler},
          {"libraries", libraries}};
}

std::string build_lines() {
  const nlohmann::ordered_json entries = build_json().flatten();
  std::string lines;
  for (const auto& [name, value] : entries.items())
    lines += fmt::format("{}={}\n", name.substr(name.rfind('/') + 1), value.get<std::string>());
  return lines;
}

std::string version_text(const std::string& program) {
  const nlohmann::ordered_json build = build_json();
  std::string text =
      fmt::format("{} {} (commit {}, {})\ncompiler: {}\n", program, kVersion, kCommit, kBuildType, kCompiler);
  for (const auto& [library, version] : build.at("libraries").items())
    text += fmt::format("{}: {}\n", library, version.get<std::string>());
  return text;
}

}  // namespace plumb
