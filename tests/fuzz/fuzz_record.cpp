// A RecordIO file and its index. Input: the index up to the first byte 0, then the records.
#include <vector>

#include "bench/data/encoded_images.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(record) {
  constexpr std::int64_t kClasses = 1000;
  std::string_view records = text_of(data, size);
  const std::string_view index = take_until(records, '\0');
  const FuzzFolder folder;
  folder.write("faces.idx", index);
  folder.write("faces.rec", records);
  refuse_or([&] {
    const auto images = open_records(folder.path() / "faces.rec", kClasses);
    std::vector<std::uint8_t> buffer;
    for (std::size_t i = 0; i < images->count(); ++i)
      refuse_or([&] {
        const EncodedImage image = images->read(i, buffer);
        require(image.label >= 0 && image.label < kClasses, "a label that is not a class passes");
      });
  });
  return 0;
}
