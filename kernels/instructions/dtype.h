#pragma once

#include <cstddef>
#include <string_view>

namespace plumb {

enum class DType { f32, f16, bf16, i32, i64, u8 };

constexpr std::size_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return 1;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::i64:
      return 8;
  }
  return 0;
}

std::string_view name_of(DType dtype);

}  // namespace plumb
