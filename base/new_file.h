// Files that a command makes: never in the place of another one, and there only when they are whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace plumb {

// Before anything is read: throws Error(cannot_create) that names `option` and `path` if something of that
// name exists or none can be made there.
void check_new_file(const std::string& option, const std::filesystem::path& path);

// Creates `path` with `text`, under another name until it is whole. Throws Error(cannot_create) if it exists
// or can't be created, Error(io_error) if writing fails; then nothing is left.
void write_new_file(const std::string& option, const std::filesystem::path& path, std::string_view text);

// Where a command puts a text: a new file; with `overwrite` one in the place of another; "-" is standard
// output.
struct TextOutput {
  std::string path;
  bool overwrite = false;

  bool is_stdout() const { return path == "-"; }
};
// As the two above; stdout is written likewise.
void check_output(const std::string& option, const TextOutput& output);
void write_output(const std::string& option, const TextOutput& output, std::string_view text);

}  // namespace plumb
