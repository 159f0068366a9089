#include "base/options/documents.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/build.h"
#include "base/error.h"
#include "base/output.h"

namespace plumb {

namespace fs = std::filesystem;

void Documents::write(const std::string& name, const std::string& text) const {
  const Output output{.option = "FOLDER", .path = folder_};
  const fs::path file = fs::path(folder_) / name;
  const OutputFolder made(output, file.parent_path());
  OutputFile written(output, file, Existing::replace);
  written.write(text);
  written.publish();
}

void Documents::write_schema(const std::string& name, const nlohmann::ordered_json& schema) const {
  write("schemas/" + name + ".schema.json", schema.dump(2) + "\n");
}

void Documents::write_page(const ManPage& page) const {
  write("man1/" + page.name + ".1", man_page(page, version()));
}

void Documents::write_completions(const std::string& program) const {
  for (const std::string& shell : completion_shells())
    for (const std::string& file : completion_files(shell, program))
      write("completions/" + file, completions(shell, program));
}

int write_documents(int argc, char** argv, const std::function<void(const Documents&)>& documents) {
  try {
    if (argc != 2) throw Error(ExitCode::usage, "expected one argument; pass the folder to write to");
    documents(Documents(argv[1]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return static_cast<int>(ExitCode::internal);
  }
}

}  // namespace plumb
