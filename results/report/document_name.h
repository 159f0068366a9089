// Names of published documents, short enough for a legend.
#pragma once

#include <string>

#include "results/published/published.h"

namespace plumb {

// The repository and the document, without commit and line: "DLPerf PyTorch README",
// "insightface nvidia a100"; of MLPerf's logs the system, whose folder they are in. `source` as in
// published.csv: "DLPerf/PyTorch/resnet50v1.5/README.md:454", "owner/name@commit:path:line".
std::string document_name(const std::string& source);

// What a row says of its table in few words, without batch and GPU, which labels have: "with dali, without
// xla".
std::string table_remarks(const PublishedResult& row);

}  // namespace plumb
