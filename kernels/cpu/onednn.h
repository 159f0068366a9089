// One way to make oneDNN primitive descriptors for its versions 2 and 3. Version 2 wraps the arguments in
// Primitive::desc and takes the engine after it; version 3 takes the engine first and has no desc.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace plumb::cpu {

template <typename Primitive>
concept HasDescriptor = requires {
  typename Primitive::desc;
};

// True for oneDNN 2.x: batch norm infers the output's layout, backward wants the shift, pooling has no
// dilation.
template <typename Primitive = dnnl::batch_normalization_forward>
inline constexpr bool kOneDnn2 = HasDescriptor<Primitive>;

// Descriptors whose arguments are the same in both versions. Scratch memory is always ours.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe_primitive(const dnnl::engine& engine,
                                                      const dnnl::primitive_attr& attr,
                                                      Arguments&&... arguments) {
  if constexpr (HasDescriptor<Primitive>)
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attr, engine);
  else
    return typename Primitive::primitive_desc(engine, arguments..., attr);
}

// The same for backward primitives, which want the forward descriptor as a hint.
template <typename Primitive, typename Hint, typename... Arguments>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine,
                                                     const dnnl::primitive_attr& attr, const Hint& hint,
                                                     Arguments&&... arguments) {
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

}  // namespace plumb::cpu
