// The files and folders that a user asks for. They are checked by making them, before anything is computed. A
// file has its name only when it is whole, and a refused output leaves nothing.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace plumb {

// Every sentence about an output begins with both: "--out runs: cannot create …; pass another --out".
struct Output {
  std::string option;      // "--out"; empty: sentences begin with the path
  std::string path;        // as given
  bool overwrite = false;  // check_output() and write_output() may replace a file

  bool is_stdout() const { return path == "-"; }  // of the same two functions
};

// Error(cannot_create): "--out runs: WHY; REMEDY". Without a remedy: "pass another --out".
Error cannot_create(const Output& output, std::string_view why, std::string_view remedy = "");

// What happens to a file that has the output's name. ask: it is refused, and the sentence offers --overwrite.
enum class Existing { refuse, ask, replace };

// A file that is called .<name>.<random number>.part until it is whole, in the same folder.
class OutputFile {
 public:
  // Makes the unfinished file. `file` is the output itself or a file that belongs to it. Throws
  // Error(cannot_create) if publish() could not succeed: the name is taken, is too long or names no file, or
  // the folder is missing or cannot hold it.
  explicit OutputFile(const Output& output, Existing existing = Existing::refuse)
      : OutputFile(output, output.path, existing) {}
  OutputFile(const Output& output, const std::filesystem::path& file, Existing existing = Existing::refuse);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // Removes the unfinished file.
  ~OutputFile();

  // Throws Error(io_error).
  void write(std::string_view bytes);
  // Syncs the file to disk and gives it its name. Throws Error(io_error), or Error(cannot_create) if the name
  // was taken meanwhile.
  void publish();

 private:
  Error cannot_create_it(int error_number) const;

  Output output_;
  std::filesystem::path file_;
  Existing existing_;
  std::string part_;
  UniqueFd descriptor_;
};

// A folder and those above it. Makes what is missing. The destructor removes the folders that the constructor
// made, those that are still empty: an output that was refused later leaves none.
class OutputFolder {
 public:
  // `folder` is the output itself or lies below it. Throws Error(cannot_create).
  OutputFolder(const Output& output, const std::filesystem::path& folder);
  OutputFolder(OutputFolder&&) = default;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder() { remove_empty(); }

  void remove_empty();

 private:
  OutputFolder() = default;

  std::vector<std::filesystem::path> made_;  // the outermost first
};

// A text: a new file, or standard output. check_output() makes and removes the unfinished file. Both throw as
// OutputFile does.
void check_output(const Output& output);
void write_output(const Output& output, std::string_view text);

// Replaces a file that no user named, as OutputFile does. Several processes and hosts may do so at once.
// Returns "" or why it cannot be written; then `path` is as before.
std::string replace_file(const std::filesystem::path& path, std::string_view text);

// Locks an open file or folder for this descriptor, and waits at most `patience` for another program that
// holds the lock. Returns 0 or the error number: EWOULDBLOCK if that program still holds it.
int lock_within(int descriptor, std::chrono::milliseconds patience);

// Whether the open file still has that name: it may have been removed or moved, and another file have the
// name.
bool has_name(int descriptor, const std::string& path);

// Renames a file, never in the place of another one. Returns 0 or the error number.
int rename_new(const std::string& from, const std::string& to);

}  // namespace plumb
