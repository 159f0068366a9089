// Types of tensors' elements. Plain C++.
#pragma once

#include <cstddef>
#include <string_view>

namespace plumb {

enum class DType { f32, f16, bf16, i32, i64, u8 };

constexpr std::size_t bytes_of(DType dtype) {
  constexpr std::size_t kBytes[]{4, 2, 2, 4, 8, 1};  // in the order of DType
  return kBytes[static_cast<std::size_t>(dtype)];
}

std::string_view name_of(DType dtype);

}  // namespace plumb
