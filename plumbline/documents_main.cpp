// plumbline_documents FOLDER: writes plumbline's manual page and completions, and the schemas of files.
#include <string>
#include <string_view>

#include "base/options/documents.h"
#include "plumbline/command.h"
#include "results/record/last_words.h"
#include "results/record/links.h"
#include "results/record/schema.h"

namespace plumb {
extern const std::string_view kDlperfSweep;  // launch/sweeps/dlperf_resnet50.toml
}

int main(int argc, char** argv) {
  using namespace plumb;
  return write_documents(argc, argv, [](const Documents& documents) {
    documents.write_page(plumbline_man_page(plumbline_commands(), std::string(kDlperfSweep)));
    documents.write_completions(completed("plumbline", plumbline_commands()));
    documents.write("schemas/result.schema.json", result_schema().dump(2) + "\n");
    documents.write("schemas/links.schema.json", links_schema().dump(2) + "\n");
    documents.write("schemas/last_words.schema.json", last_words_schema().dump(2) + "\n");
  });
}
