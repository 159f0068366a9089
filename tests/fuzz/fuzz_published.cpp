// The table of published numbers, and the processing of its rows.
#include "results/published/published.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(published) {
  refuse_or([&] { published_results_of(text_of(data, size)); });
  return 0;
}
