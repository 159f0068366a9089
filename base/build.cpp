#include "base/build.h"

#include <link.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "base/text.h"

namespace plumb {
namespace {

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

const char* version() {
  return kVersion;
}

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

nlohmann::ordered_json build_json(nlohmann::ordered_json libraries) {
  libraries["CLI11"] = CLI11_VERSION;
  libraries["nlohmann-json"] = fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                           NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
  return {{"version", kVersion},      {"commit", kCommit},     {"build_id", build_id()},
          {"build_type", kBuildType}, {"compiler", kCompiler}, {"libraries", std::move(libraries)}};
}

nlohmann::ordered_json build_json() {
  return build_json(nlohmann::ordered_json::object());
}

std::string version_text(const std::string& program, const nlohmann::ordered_json& build) {
  std::string text =
      fmt::format("{} {} (commit {}, {})\ncompiler: {}\n", program, kVersion, kCommit, kBuildType, kCompiler);
  for (const auto& [library, version] : build.at("libraries").items())
    text += fmt::format("{}: {}\n", library, version.get<std::string>());
  return text;
}

}  // namespace plumb
