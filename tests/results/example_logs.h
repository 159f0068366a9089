// Whole logs of every format, from tests/data.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <variant>
#include <vector>

#include "results/analysis/log_tree.h"
#include "results/formats/read_log.h"
#include "tests/scratch_folder.h"

namespace plumb {

using Lines = std::vector<std::string>;

struct ExampleLog {
  std::string name;
  RunSize size;
  Lines lines;  // with their ends
  double images_per_second = 0;
};

inline Lines text_lines(const std::string& text) {
  Lines lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

inline std::string whole_text(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// Example logs the format can read, with two device layouts: from the folder of the format's name if there is
// one, else from any. If lines after the window matter, they are removed, so that the log has the minimum
// length.
inline std::vector<ExampleLog> whole_logs(const LogFormat& format, std::size_t most = 2) {
  const auto is_own = [&](const std::filesystem::path& path) {
    return path.string().find("/" + std::string(format.name) + "/") != std::string::npos;
  };
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PLUMB_TEST_DATA))
    if (entry.path().extension() == ".log") paths.push_back(entry.path());
  std::ranges::sort(paths);
  if (std::ranges::any_of(paths, is_own)) std::erase_if(paths, std::not_fn(is_own));

  std::vector<ExampleLog> found;
  const ScratchFolder folder;
  const auto figure = [&](const Lines& lines, const RunSize& size) {
    const std::filesystem::path file = folder.write("a.log", whole_text(lines));
    const LogReading reading = read_log(format, file, format.default_window, size);
    return reading.defect ? std::nullopt : std::optional(reading.images_per_second);
  };
  for (const std::filesystem::path& path : paths) {
    if (found.size() == most) break;
    const auto name = parse_log_name(path.parent_path().filename().string(), path.filename().string());
    if (!name) continue;
    ExampleLog log{path, name->size(), text_lines(read_text(path))};
    if (!found.empty() && found.front().size.devices_per_node == log.size.devices_per_node) continue;
    if (!figure(log.lines, log.size)) continue;
    Lines& lines = log.lines;
    if (format.has_no_end) {
      const auto lengths = std::views::iota(std::size_t{1}, lines.size() + 1);
      lines.resize(*std::ranges::partition_point(lengths, [&](std::size_t length) {
        return !figure(Lines(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(length)), log.size);
      }));
    }
    log.images_per_second = *figure(lines, log.size);
    found.push_back(log);
  }
  return found;
}

}  // namespace plumb
