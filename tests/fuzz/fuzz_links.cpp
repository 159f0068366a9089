// links.json and the outputs of nccl-tests, as plumbline scaling reads them.
#include "results/record/links.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(links) {
  const FileInMemory file(text_of(data, size));
  refuse_or([&] {
    const Links links = read_links(file.path());
    require(to_json(links_from_json(to_json(links), "again")) == to_json(links), "links change when reread");
  });
  return 0;
}
