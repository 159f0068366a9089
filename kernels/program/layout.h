// Element order of a GPU's tensors. Plain C++.
#pragma once

#include <string_view>

namespace plumb {

// Activations [n, h, w, c] and convolution weights [out, kh, kw, in], or [n, c, h, w] and [out, in, kh, kw].
enum class TensorLayout { nhwc, nchw };

constexpr std::string_view name_of(TensorLayout layout) {
  return layout == TensorLayout::nhwc ? "nhwc" : "nchw";
}

}  // namespace plumb
