// The example logs in tests/data/dialects, made by tests/reference/make_logs.py and make_dialect_logs.py.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "results/formats/dialect.h"

namespace plumb {

inline const std::filesystem::path kDialectData = std::filesystem::path(PLUMB_TEST_DATA) / "dialects";

// "ngc_tf" for ngc_tf_speed and ngc_tf_time, which read the same lines.
inline std::string set_of(const Dialect& dialect) {
  const std::string name(dialect.name);
  if (dialect.reads_own_layout()) return "tree";
  for (const std::string suffix : {"_speed", "_time"})
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return name;
}

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace plumb
