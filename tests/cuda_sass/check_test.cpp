// The SASS checker on made-up kernels: it finds what it should, and can fail.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cuda_sass/memory_use.h"
#include "tests/cuda_sass/wanted.h"

namespace plumb::sass {
namespace {

std::vector<KernelCode> read(const std::string& dump) {
  std::istringstream text(dump);
  return read_kernels(text);
}

std::string resources(const std::string& function, int stack_bytes) {
  return "arch = sm_90\n\nResource usage:\n Function " + function +
         ":\n  REG:24 STACK:" + std::to_string(stack_bytes) +
         " SHARED:1024 LOCAL:0 CONSTANT[0]:552 TEXTURE:0\n";
}

// Lines of SASS 16 bytes apart, as cuobjdump prints them.
std::string code(const std::string& function, const std::vector<std::string>& instructions) {
  std::ostringstream text;
  text << "arch = sm_90\n\n\tcode for sm_90\n\n\t\tFunction : " << function
       << "\n\t.headerflags\t@\"EF_CUDA_SM90\"\n";
  unsigned address = 0;
  for (const std::string& instruction : instructions) {
    text << "        /*" << std::hex << address << "*/    " << instruction
         << " ;   /* 0x000000ff03057624 */\n"
         << "                                        /* 0x000fe400078e00ff */\n";
    address += 16;
  }
  return text.str();
}

const std::string kCopy = "_ZN5plumb4cuda12_GLOBAL__N_14copyI6__halfLb1EEEvPKT_PS4_l";

// A loop from 0x10 on, with the accesses in its middle.
std::vector<std::string> loop_of(const std::vector<std::string>& accesses) {
  std::vector<std::string> all{"S2R R0, SR_TID.X"};
  all.insert(all.end(), accesses.begin(), accesses.end());
  all.insert(all.end(), {"@!P0 BRA 0x10", "EXIT"});
  return all;
}
KernelCode kernel_of(const std::vector<std::string>& instructions) {
  return read(code(kCopy, instructions)).at(0);
}

const std::vector<std::string> kWide{"LDG.E.128 R4, desc[UR4][R2.64]", "IMAD.MOV.U32 R8, RZ, RZ, R4",
                                     "STG.E.128 desc[UR4][R2.64], R8"};
const std::vector<std::string> kNarrow{"LDG.E R4, desc[UR4][R2.64]", "STG.E desc[UR4][R2.64], R4"};

// A dump for both architectures of the table, with the same made-up kernel.
std::string both(std::string dump) {
  std::string other = dump;
  for (std::size_t at = 0; (at = other.find("sm_90", at)) != std::string::npos;)
    other.replace(at, 5, "sm_80");
  return dump + other;
}

TEST(SassCheck, ReadsNamesResourcesAndInstructions) {
  const std::vector<KernelCode> kernels =
      read(resources(kCopy, 8) + code(kCopy, {"@!P0 LDG.E.U16 R3, [R2.64]"}));
  ASSERT_EQ(kernels.size(), 1U);
  const KernelCode& kernel = kernels[0];
  EXPECT_EQ(kernel.name, "copy<f16,true>");
  EXPECT_EQ(kernel.architecture, 90);
  EXPECT_EQ(kernel.registers, 24);
  EXPECT_EQ(kernel.stack_bytes, 8);
  EXPECT_EQ(kernel.shared_bytes, 1024);
  ASSERT_EQ(kernel.code.size(), 1U);
  EXPECT_TRUE(kernel.code[0].predicated);
  EXPECT_EQ(kernel.code[0].opcode, "LDG.E.U16");
  EXPECT_EQ(kernel.code[0].operands, "R3, [R2.64]");
}

TEST(SassCheck, PassesAKernelThatIsAsWanted) {
  const auto kernels = read(both(resources(kCopy, 0) + code(kCopy, loop_of(kWide))));
  EXPECT_TRUE(failures(kernels, {{.kernel = "copy<*>", .wide_loads = 1, .wide_stores = 1}}).empty());
}

TEST(SassCheck, FindsALoopOfNarrowAccesses) {
  std::vector<std::string> instructions = loop_of(kNarrow);
  instructions.insert(instructions.end() - 1, kWide.begin(), kWide.end());  // wide ones after it don't help
  const auto kernels = read(both(resources(kCopy, 0) + code(kCopy, instructions)));
  const auto found = failures(kernels, {{.kernel = "copy<*>", .wide_loads = 1, .wide_stores = 1}});
  EXPECT_EQ(found, (std::vector<std::string>{"sm_80 copy<f16,true>: no loop has accesses of 128 bits",
                                             "sm_90 copy<f16,true>: no loop has accesses of 128 bits"}));
}

TEST(SassCheck, FindsNarrowAccessesBesideWideOnes) {
  const auto kernels = read(both(resources(kCopy, 0) + code(kCopy, loop_of({kWide[0], kNarrow[1]}))));
  const auto found = failures(kernels, {{.kernel = "copy<*>", .wide_loads = 2, .wide_stores = 1}});
  ASSERT_EQ(found.size(), 6U);
  EXPECT_EQ(found[0], "sm_80 copy<f16,true>: 1 loads of 128 bits at most in a main loop, 2 wanted");
  EXPECT_EQ(found[1], "sm_80 copy<f16,true>: 0 stores of 128 bits at most in a main loop, 1 wanted");
  EXPECT_EQ(found[2],
            "sm_80 copy<f16,true>: a main loop has 'store 4' (bytes), which the table doesn't allow");
}

TEST(SassCheck, ChecksAKernelWithoutLoops) {
  const Wanted wanted{.kernel = "copy<*>", .wide_loads = 1, .wide_stores = 1, .straight = true};
  EXPECT_TRUE(failures(read(both(resources(kCopy, 0) + code(kCopy, kWide))), {wanted}).empty());
  EXPECT_EQ(failures(read(both(resources(kCopy, 0) + code(kCopy, kNarrow))), {wanted}).size(), 8U);
  EXPECT_EQ(failures(read(both(resources(kCopy, 0) + code(kCopy, loop_of(kWide)))), {wanted}).size(), 2U);
}

TEST(SassCheck, AllowsTheNarrowAccessesThatTheTableNames) {
  std::vector<std::string> accesses = kWide;
  accesses.push_back("STG.E.U8 desc[UR4][R2.64], R9");
  const auto kernels = read(both(resources(kCopy, 0) + code(kCopy, loop_of(accesses))));
  const Wanted strict{.kernel = "copy<*>", .wide_loads = 1};
  Wanted loose = strict;
  loose.narrow = {"store 1"};
  EXPECT_EQ(failures(kernels, {strict}).size(), 2U);
  EXPECT_TRUE(failures(kernels, {loose}).empty());
}

// Code for sm_80 has none, and nothing hot.
TEST(SassCheck, FindsMissingProductsOfWarpgroups) {
  std::vector<std::string> instructions = kWide;
  instructions.emplace_back("HGMMA.64x232x16.F32 R24, gdesc[UR4], R24");
  const auto kernels = read(both(resources(kCopy, 0) + code(kCopy, loop_of(instructions))));
  const Wanted wanted{.kernel = "copy<*>", .wide_loads = 1, .products = 1};
  EXPECT_TRUE(failures(kernels, {wanted}).empty());
  EXPECT_EQ(failures(read(both(resources(kCopy, 0) + code(kCopy, loop_of(kWide)))), {wanted}),
            (std::vector<std::string>{"sm_90 copy<f16,true>: 0 products of warpgroups, 1 wanted"}));
}

TEST(SassCheck, FindsLocalMemory) {
  std::vector<std::string> spills = kWide;
  spills.insert(spills.begin() + 1, {"STL.64 [R1], R10", "LDL.64 R10, [R1]"});
  const auto kernels = read(both(resources(kCopy, 8) + code(kCopy, loop_of(spills))));
  const auto found = failures(kernels, {{.kernel = "copy<*>", .wide_loads = 1}});
  ASSERT_EQ(found.size(), 6U);
  EXPECT_EQ(found[0],
            "sm_80 copy<f16,true>: a main loop has 'load 8 of local memory' (bytes), which the table "
            "doesn't allow");
  EXPECT_EQ(found[2], "sm_80 copy<f16,true>: 8 bytes of local memory per thread, 0 allowed");
  EXPECT_EQ(failures(kernels, {}).size(), 2U);  // also for kernels missing in the table
  EXPECT_TRUE(failures(kernels, {{.kernel = "copy<*>", .stack_bytes = 8}}).empty());
}

TEST(SassCheck, NamesARowWithoutKernelAndAHotKernelWithoutCode) {
  const auto kernels = read(both(resources(kCopy, 0)));
  EXPECT_EQ(failures(kernels, {{.kernel = "gone<*>"}}),
            (std::vector<std::string>{"sm_80 no kernel matches the table's gone<*>",
                                      "sm_90 no kernel matches the table's gone<*>"}));
  EXPECT_EQ(failures(kernels, {{.kernel = "copy<*>", .wide_loads = 1}}).at(0),
            "sm_80 copy<f16,true>: no machine code in the dump");
}

TEST(SassCheck, TakesInnermostLoopsWithWideBytesMostFirst) {
  // 0x10 … 0x90 around 0x20 … 0x30, 0x40 … 0x60 and the narrow 0x70 … 0x80.
  const MemoryUse use =
      memory_use(kernel_of({"S2R R0, SR_TID.X", "LDG.E R20, [R2.64]", "LDG.E.128 R4, [R2.64]", "@P0 BRA 0x20",
                            "LDG.E.128 R4, [R2.64]", "STG.E.128 [R2.64], R4", "@P0 BRA 0x40",
                            "LDG.E R21, [R2.64]", "@P1 BRA 0x70", "@P2 BRA 0x10", "EXIT", "BRA 0xb0"}));
  ASSERT_EQ(use.main.size(), 2U);
  ASSERT_EQ(use.main[0].size(), 2U);
  EXPECT_TRUE(use.main[0][0].loads);
  EXPECT_FALSE(use.main[0][1].loads);
  EXPECT_EQ(use.main[1].size(), 1U);
}

TEST(SassCheck, WithoutAWideLoopTheRestIsTheMainPart) {
  const MemoryUse use =
      memory_use(kernel_of({"LDG.E.128 R4, [R2.64]", "STG.E.128 [R2.64], R4", "EXIT", "LDG.E R4, [R2.64]",
                            "STG.E [R2.64], R4", "@P0 BRA 0x30", "EXIT"}));
  ASSERT_EQ(use.main.size(), 1U);
  ASSERT_EQ(use.main[0].size(), 2U);
  EXPECT_EQ(use.main[0][0].bytes, 16);
}

TEST(SassCheck, CountsLoadsUntilOneIsWaitedFor) {
  const MemoryUse one_by_one = memory_use(kernel_of(
      loop_of({"LDG.E.128 R4, [R2.64]", "FADD R8, R5, R5", "LDG.E.128 R12, [R2.64]", "FADD R8, R15, R15"})));
  EXPECT_EQ(one_by_one.bytes_in_flight, 16);
  const MemoryUse together = memory_use(kernel_of(
      loop_of({"LDG.E.128 R4, [R2.64]", "LDG.E.128 R12, [R2.64]", "FADD R8, R5, R5", "FADD R8, R15, R15"})));
  EXPECT_EQ(together.bytes_in_flight, 32);
  EXPECT_EQ(together.loads_in_flight, 2);
}

TEST(SassCheck, CountsLoadsOfTheNextRound) {
  // The previous iteration's loads are used after this iteration has issued its own.
  const MemoryUse use = memory_use(kernel_of(loop_of(
      {"LDG.E.128 R12, [R2.64]", "FADD R8, R20, R20", "LDG.E.128 R20, [R2.64]", "FADD R8, R12, R12"})));
  EXPECT_EQ(use.bytes_in_flight, 32);
}

TEST(SassCheck, CountsOneSideOfABranch) {
  const MemoryUse use = memory_use(kernel_of({"@P0 BRA 0x30", "LDG.E.128 R4, [R2.64]", "BRA 0x40",
                                              "LDG.E.128 R8, [R2.64]", "FADD R12, R4, R8", "EXIT"}));
  EXPECT_EQ(use.bytes_in_flight, 16);
}

TEST(SassCheck, MatchesStars) {
  EXPECT_TRUE(matches("copy<*,true>", "copy<f16,true>"));
  EXPECT_TRUE(matches("copy*", "copy"));
  EXPECT_TRUE(matches("*<f16*", "norm_apply<f16,false>"));
  EXPECT_FALSE(matches("copy<*,true>", "copy<f16,false>"));
  EXPECT_FALSE(matches("copy", "copy_all"));
}

}  // namespace
}  // namespace plumb::sass
