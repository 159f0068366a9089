// result.json. An accepted file is written and read again unchanged.
#include "results/record/schema.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(result) {
  const FileInMemory file(text_of(data, size));
  refuse_or([&] {
    const auto json = to_json(read_result_file(file.path()).record);
    const std::string text = json.dump();
    const FileInMemory again(text);
    require(to_json(read_result_file(again.path()).record).dump() == text, "a result changes when written");
  });
  return 0;
}
