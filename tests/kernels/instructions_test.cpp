// Operands of instructions: misuse doesn't compile, and instructions list all their operands.
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/program/program.h"

namespace plumb {
namespace {

template <typename Instruction, typename... Operands>
concept MadeOf = requires(Operands... operands) {
  Instruction{operands...};
};

static_assert(MadeOf<DenseForward, BufferId, BufferId, BufferId, BufferId>);
static_assert(!MadeOf<DenseForward, BufferId, BufferId, BufferId>, "without an operand");
static_assert(!std::is_default_constructible_v<DenseForward>);
static_assert(MadeOf<DenseForward, Read, Read, Read, Write>);
static_assert(!MadeOf<DenseForward, Write, Read, Read, Read>, "read and written swapped");
static_assert(!MadeOf<Accumulate, Read, ReadWrite>);
static_assert(MadeOf<ConvForward, Read, Read, Write>, "the others are optional");
static_assert(MadeOf<ConvForward, Read, Read, Write, Read>);
static_assert(!MadeOf<ConvForward, Read, Read, Write, Write>, "optional ones have their access, too");
static_assert(!std::is_convertible_v<Read, Write> && !std::is_convertible_v<Write, ReadWrite>);

std::vector<std::string> listed(const Operation& operation) {
  std::vector<std::string> text;
  for (const BufferUse& use : Instruction{.operation = operation}.uses()) {
    const char* access = use.access == Access::read ? " r " : use.access == Access::write ? " w " : " rw ";
    text.push_back(std::string(use.operand) + access + std::to_string(use.buffer));
  }
  return text;
}

using Listed = std::vector<std::string>;

TEST(Instructions, ListOperandsWithNameAndAccess) {
  EXPECT_EQ(listed(ConvForward{.in = 4, .weight = 3, .out = 9, .sums = 1}),
            (Listed{"in r 4", "weight r 3", "out w 9", "sums w 1"}));
  EXPECT_EQ(listed(Accumulate{.into = 2, .from = 5}), (Listed{"into rw 2", "from r 5"}));
  EXPECT_EQ(listed(Recorded{{{7, Access::write}, {7, Access::read_write}}}),
            (Listed{"uses w 7", "uses rw 7"}));
}

TEST(Instructions, ListAResultAsReadWhereItIsAddedTo) {
  BatchNormBackward norm{0, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(listed(norm)[6], "d_in w 6");
  norm.d_in = {6, true};
  EXPECT_EQ(listed(norm)[6], "d_in rw 6");
}

TEST(Instructions, ListWhatALongListHoldsOneByOne) {
  EXPECT_EQ(listed(FindOverflow{.overflow = 9, .gradients = {1, 2}}),
            (Listed{"overflow w 9", "gradients r 1", "gradients r 2"}));
  const UpdatedParameter first{.parameter = 0, .master = 1, .momentum = 2, .gradient = 3, .copies = {4, 5}};
  const UpdatedParameter second{.parameter = 1, .master = 6, .momentum = 7, .gradient = 8, .copies = {}};
  EXPECT_EQ(listed(Update{.state = 0, .overflow = {}, .parameters = {first, second}}),
            (Listed{"state r 0", "master rw 1", "momentum rw 2", "gradient r 3", "copies w 4", "copies w 5",
                    "master rw 6", "momentum rw 7", "gradient r 8"}));
}

// Converts to any member of an instruction: an operand, an optional one, a list of them, …
struct AnyMember {
  template <typename Member>
  operator Member() const;
};

// An instruction with every kind of member.
template <typename T, std::size_t... i>
T made_with(std::index_sequence<i...>) {
  if constexpr (requires { T{(static_cast<void>(i), AnyMember{})...}; })
    return T{(static_cast<void>(i), AnyMember{})...};
  else
    return made_with<T>(std::make_index_sequence<sizeof...(i) - 1>());
}
template <typename T>
T made() {
  return made_with<T>(std::make_index_sequence<20>());
}

template <typename Member>
AnyMember::operator Member() const {
  if constexpr (requires(Member list) { list.front(); }) {
    Member list;
    list.push_back(operator typename Member::value_type());
    return list;
  } else if constexpr (std::is_constructible_v<Member, BufferId>) {
    return Member(BufferId{0});
  } else if constexpr (std::is_enum_v<Member>) {
    return Member{};
  } else if constexpr (requires { typename Member::value_type; }) {
    return made<typename Member::value_type>();
  } else {
    return made<Member>();
  }
}

// Bytes of an instruction's members other than operands.
template <typename T>
constexpr std::size_t kOtherBytes = 0;
template <>
constexpr std::size_t kOtherBytes<Cast> = sizeof(Cast::scale);
template <>
constexpr std::size_t kOtherBytes<UpdateRows> = sizeof(UpdateRows::parameter);
template <>
constexpr std::size_t kOtherBytes<Collective> = sizeof(Collective) - sizeof(Collective::parts);
template <>  // lists the operands inside its list
constexpr std::size_t kOtherBytes<Update> = sizeof(Update::parameters) + sizeof(ParameterId) -
                                            sizeof(UpdatedParameter);
template <>  // lists scale_shift or the operands inside finalize
constexpr std::size_t kOtherBytes<BatchNormApply> = sizeof(BatchNormApply::scale_shift) +
                                                    sizeof(BatchNormApply::finalize) -
                                                    sizeof(BatchNormFinalize);
template <>
constexpr std::size_t kOtherBytes<PackBatch> = sizeof(Normalization);
template <>  // by_products
constexpr std::size_t kOtherBytes<BlockEndForward> = alignof(BlockEndForward);
template <>
constexpr std::size_t kOtherBytes<BlockEndBackwardData> = alignof(BlockEndBackwardData);

template <typename T>
void expect_all_are_listed() {
  T instruction = made<T>();
  std::size_t bytes = kOtherBytes<T>;
  std::set<const void*> places;
  std::set<std::string_view> names;
  for_each_member(instruction, [&](std::string_view name, const auto& member) {
    bytes += sizeof(member);
    EXPECT_TRUE(places.insert(&member).second) << T::kName << ": " << name;
    EXPECT_TRUE(names.insert(name).second) << T::kName << ": " << name;
  });
  EXPECT_EQ(bytes, sizeof(T)) << T::kName;
  EXPECT_EQ(Instruction{.operation = instruction}.uses().size(), places.size()) << T::kName;
}

template <typename... T>
void expect_sound(std::type_identity<std::variant<T...>>) {
  (expect_all_are_listed<T>(), ...);
  EXPECT_EQ((std::set<std::string_view>{T::kName...}).size(), sizeof...(T));
}

TEST(Instructions, HaveTheirOwnNamesAndListEachOperandOnce) {
  expect_sound(std::type_identity<Operation>());
}

}  // namespace
}  // namespace plumb
