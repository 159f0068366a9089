// links.json, as plumbline scaling reads it.
#include "results/record/links.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(links) {
  const auto json = json_of(data, size);
  refuse_or([&] {
    const Links links = links_from_json(json, "links.json");
    require(to_json(links_from_json(to_json(links), "again")) == to_json(links), "links change when reread");
  });
  return 0;
}
