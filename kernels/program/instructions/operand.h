// Operands of instructions: a buffer and its access. The access is part of the type and operands have no
// default, so a missing or misplaced operand doesn't compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace plumb {

using BufferId = std::size_t;  // index into Program::buffers

enum class Access { read, write, read_write };

struct BufferUse {
  BufferId buffer = 0;
  Access access = Access::read;
  std::string_view operand = {};  // its name in the instruction: "in", "d_weight"
  bool reads() const { return access != Access::write; }
  bool writes() const { return access != Access::read; }
};

template <Access kAccess>
struct Operand {
  BufferId buffer;
  constexpr Operand(BufferId id) : buffer(id) {}
  constexpr operator BufferId() const { return buffer; }
  constexpr Access access() const { return kAccess; }
};
using Read = Operand<Access::read>;
using Write = Operand<Access::write>;
using ReadWrite = Operand<Access::read_write>;

// A result that overwrites the buffer or is added to it.
struct WriteOrAdd {
  BufferId buffer;
  bool adds = false;
  constexpr WriteOrAdd(BufferId id, bool add = false) : buffer(id), adds(add) {}
  constexpr operator BufferId() const { return buffer; }
  constexpr Access access() const { return adds ? Access::read_write : Access::write; }
};

template <typename T>
concept AnOperand = requires(const T& operand) {
  { operand.access() } -> std::same_as<Access>;
};

// Each operation lists its operands once, by name and member, in
//   static void operands(auto& self, auto&& each) { each("in", self.in, "out", self.out); }
// for_each_member() calls visit(name, member): an operand, an optional or a list of operands.
template <typename Operation, typename Visit>
void for_each_member(Operation& operation, const Visit& visit) {
  const auto each = [&visit](const auto& self, std::string_view name, auto& member, auto&... rest) -> void {
    visit(name, member);
    if constexpr (sizeof...(rest) > 0) self(self, rest...);
  };
  std::remove_const_t<Operation>::operands(operation, [&each](auto&&... list) { each(each, list...); });
}

// Calls visit(name, operand) for every present operand, including each element of a list.
template <typename Operation, typename Visit>
void for_each_operand(Operation& operation, const Visit& visit) {
  for_each_member(operation, [&visit]<typename Member>(std::string_view name, Member& member) {
    if constexpr (AnOperand<Member>) {
      visit(name, member);
    } else if constexpr (requires { member.has_value(); }) {
      if (member) visit(name, *member);
    } else {
      for (auto& operand : member) visit(name, operand);
    }
  });
}

}  // namespace plumb
