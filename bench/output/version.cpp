#include "bench/output/version.h"

#include <dnnl.h>
#include <jpeglib.h>
#include <link.h>

#include <CLI/Version.hpp>
#include <algorithm>
#include <fstream>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "bench/output/build_info.h"
#include "comm/job.h"
#include "comm/nccl_communicator.h"
#include "kernels/device.h"

namespace plumb {
namespace {

std::string dotted(long major, long minor, long patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// Adds the bytes of the build id in the notes from `at` to `end`. A note: sizes of its name and content, its
// type, then both, padded to 4 bytes.
void read_build_id(const char* at, const char* end, std::string& id) {
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
    const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
    const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
    const char* content = at + sizeof(*note) + padded(note->n_namesz);
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
        std::string_view(at + sizeof(*note), 3) == "GNU")
      for (std::size_t i = 0; i < note->n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(content[i]));
    at = content + padded(note->n_descsz);
  }
}

}  // namespace

std::string build_id() {
  std::string id;
  // The first object is the program itself; anything but 0 ends the walk there.
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          if (part.p_type != PT_NOTE) continue;
          // NOLINTNEXTLINE(performance-no-int-to-ptr): the linker gives addresses as integers
          const char* notes = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
          read_build_id(notes, notes + part.p_memsz, *static_cast<std::string*>(found));
        }
        return 1;
      },
      &id);
  return id;
}

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

nlohmann::ordered_json build_json(bool load) {
  const dnnl_version_t* onednn = dnnl_version();
  constexpr long kJpeg = LIBJPEG_TURBO_VERSION_NUMBER;  // 2001005 for 2.1.5
  nlohmann::ordered_json libraries;
  libraries["oneDNN"] = dotted(onednn->major, onednn->minor, onednn->patch);
  libraries["MPI"] = mpi_library();
  libraries["libjpeg-turbo"] = dotted(kJpeg / 1'000'000, kJpeg / 1000 % 1000, kJpeg % 1000);
  libraries["CLI11"] = CLI11_VERSION;
  libraries["nlohmann-json"] =
      dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
  for (const std::string& library : cuda::library_versions(load))
    if (const std::size_t blank = library.rfind(' '); blank != std::string::npos)
      libraries[library.substr(0, blank)] = library.substr(blank + 1);
  if (const std::string nccl = nccl_version(); !nccl.empty()) libraries["NCCL"] = nccl;
  return {{"version", kVersion},      {"commit", kCommit},     {"build_id", build_id()},
          {"build_type", kBuildType}, {"compiler", kCompiler}, {"libraries", libraries}};
}

std::string build_lines() {
  nlohmann::ordered_json entries = build_json().flatten();
  std::string lines = fmt::format("commit={}\n", kCommit);
  entries.erase("/commit");
  for (const auto& [name, value] : entries.items())
    lines += fmt::format("{}={}\n", name.substr(name.rfind('/') + 1), value.get<std::string>());
  return lines + fmt::format("program={}\n", program_hash());
}

std::string version_text(const std::string& program) {
  const nlohmann::ordered_json build = build_json(true);
  std::string text =
      fmt::format("{} {} (commit {}, {})\ncompiler: {}\n", program, kVersion, kCommit, kBuildType, kCompiler);
  for (const auto& [library, version] : build.at("libraries").items())
    text += fmt::format("{}: {}\n", library, version.get<std::string>());
  return text;
}

}  // namespace plumb
