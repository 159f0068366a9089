// Tables of comma-separated values: published numbers, reference speeds.
#include "base/csv.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(csv) {
  refuse_or([&] { csv_records(text_of(data, size), "table.csv"); });
  return 0;
}
