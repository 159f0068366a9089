#include "kernels/cpu/channel_layout.h"

#include "kernels/cpu/binding.h"
#include "kernels/cpu/onednn.h"

namespace plumb::cpu {

std::optional<ChannelLayout> channel_layout(const dnnl::memory::desc& layout) {
  const dnnl::memory::dims dims = dims_of(layout);
  if (dims.size() != 2 && dims.size() != 4) return std::nullopt;
  const Blocking blocking = blocking_of(layout);
  const bool has_pixels = dims.size() == 4;
  ChannelLayout form{
      .images = dims[0], .channels = dims[1], .pixels = has_pixels ? dims[2] * dims[3] : 1, .block = 1};
  // Strides of dimensions of size 1 are arbitrary.
  const auto lies = [&](std::int64_t block) {
    ChannelLayout candidate = form;
    candidate.block = block;
    const std::int64_t between_blocks = candidate.pixels * block;
    const auto matches = [&](std::size_t dim, std::int64_t extent, std::int64_t stride) {
      return extent == 1 || blocking.strides[dim] == stride;
    };
    const bool is_blocked = !blocking.blocks.empty();
    const bool channels_match = is_blocked || block == 1 ? matches(1, candidate.blocks(), between_blocks)
                                                         : matches(1, form.channels, 1);
    return channels_match && matches(0, form.images, candidate.image_stride()) &&
           (!has_pixels || (matches(2, dims[2], dims[3] * block) && matches(3, dims[3], block)));
  };
  std::optional<std::int64_t> block;
  if (blocking.blocks.size() == 1 && blocking.blocks[0].dimension == 1) {
    if (lies(blocking.blocks[0].length)) block = blocking.blocks[0].length;
  } else if (blocking.blocks.empty()) {
    if (lies(form.channels))
      block = form.channels;
    else if (lies(1))
      block = 1;
  }
  if (!block) return std::nullopt;
  form.block = *block;
  return form;
}

}  // namespace plumb::cpu
