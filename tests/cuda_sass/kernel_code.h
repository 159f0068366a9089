// What cuobjdump prints of the kernels in object files: their resources and their machine code (SASS).
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace plumb::sass {

struct Instruction {
  unsigned address = 0;
  bool predicated = false;  // @P0, @!P0
  std::string opcode;       // LDG.E.128
  std::string operands;     // R4, desc[UR4][R2.64]
};

struct KernelCode {
  std::string function;  // mangled
  std::string name;      // norm_statistics<f16,true>
  int architecture = 0;  // 90
  int registers = 0;     // per thread
  int stack_bytes = 0;   // local memory of a thread: spilled registers, arrays that no register holds
  int shared_bytes = 0;  // per block, static; from sm_90 on with the 1024 that the system takes
  std::vector<Instruction> code;
};

// What `cuobjdump --dump-resource-usage` and `cuobjdump --dump-sass` print, of any number of files one after
// the other. Kernels of which there is machine code only, or none, are left as they are.
std::vector<KernelCode> read_kernels(std::istream& dump);

// A mangled function without namespaces and parameters, types as DType names them and no spaces.
std::string short_name(const std::string& function);

}  // namespace plumb::sass
