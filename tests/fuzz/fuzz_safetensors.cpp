// A safetensors file: weights, and a batch of images and labels.

#include "bench/data/batch_source.h"
#include "models/weights.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(safetensors) {
  const FileInMemory file(text_of(data, size));
  refuse_or([&] {
    const TensorFile tensors = read_safetensors(file.path());
    for (const auto& [name, tensor] : tensors.floats) {
      std::size_t elements = 1;
      for (const std::int64_t dim : tensor.dims) elements *= static_cast<std::size_t>(dim);
      require(elements == tensor.values.size(), "a tensor has not the values that its shape says");
    }
  });
  refuse_or([&] {
    BatchSourceOptions options;
    options.batch_file = file.path();
    options.batch_per_device = 2;
    options.image_size = 2;
    make_batch_source(options)->write_lasting([](std::int64_t, const Batch& batch) {
      require(batch.images.size() == 24 && batch.labels.size() == 2, "a batch has another size");
    });
  });
  return 0;
}
