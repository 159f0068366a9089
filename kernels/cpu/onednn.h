// Creates primitive descriptors for oneDNN 2 and 3. Version 2 wraps the arguments in Primitive::desc,
// followed by the engine; version 3 takes the engine first and has no desc.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace plumb::cpu {

template <typename Primitive>
concept HasDescriptor = requires {
  typename Primitive::desc;
};

// True for oneDNN 2.x, whose pooling has no dilation argument.
template <typename Primitive>
inline constexpr bool kOneDnn2 = HasDescriptor<Primitive>;

// Scratchpads are always user-provided: oneDNN's own belongs to the thread that makes the primitive.
inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// For primitives with the same arguments in both versions.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe_primitive(const dnnl::engine& engine, Arguments&&... arguments) {
  const dnnl::primitive_attr attr = user_scratchpad();
  if constexpr (HasDescriptor<Primitive>)
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attr, engine);
  else
    return typename Primitive::primitive_desc(engine, arguments..., attr);
}

// For backward primitives, which take the forward descriptor as a hint.
template <typename Primitive, typename Hint, typename... Arguments>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine, const Hint& hint,
                                                     Arguments&&... arguments) {
  const dnnl::primitive_attr attr = user_scratchpad();
  if constexpr (HasDescriptor<Primitive>)
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attr, engine, hint);
  else
    return typename Primitive::primitive_desc(engine, arguments..., hint, attr);
}

// Logical extents of a layout.
template <typename Layout>
dnnl::memory::dims dims_of(const Layout& layout) {
  if constexpr (requires { layout.get_dims(); })
    return layout.get_dims();
  else
    return layout.dims();
}

// The order of elements: strides of the outer dimensions, then blocks, outermost first, as dimension x
// length: "4608,1152,384,128/1x8,0x16".
template <typename Layout>
std::string layout_text(const Layout& layout) {
  const auto text_of = [](const auto& strides, auto dims, const auto& lengths, const auto& block_dims,
                          auto blocks) {
    std::string text;
    for (int i = 0; i < dims; ++i) text += (i ? "," : "") + std::to_string(strides[i]);
    for (int i = 0; i < blocks; ++i)
      text += (i ? "," : "/") + std::to_string(block_dims[i]) + "x" + std::to_string(lengths[i]);
    return text;
  };
  if constexpr (requires { layout.get_strides(); }) {
    return text_of(layout.get_strides(), layout.get_ndims(), layout.get_inner_blks(), layout.get_inner_idxs(),
                   layout.get_inner_nblks());
  } else {
    const auto& blocking = layout.data.format_desc.blocking;
    return text_of(blocking.strides, layout.data.ndims, blocking.inner_blks, blocking.inner_idxs,
                   blocking.inner_nblks);
  }
}

}  // namespace plumb::cpu
