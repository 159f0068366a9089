#include "results/record/record_text.h"

#include "base/whole_file.h"

namespace plumb {

std::string read_record_text(const std::filesystem::path& path, const std::string& kind) {
  return read_whole_file(path, {.remedy = "name a " + kind});
}

}  // namespace plumb
