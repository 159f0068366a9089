// Reads cuobjdump's output for the kernels in object files: resources and machine code (SASS).
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
  int stack_bytes = 0;   // local memory per thread: spilled registers, arrays not held in registers
  int shared_bytes = 0;  // per block, static; from sm_90 on including the 1024 reserved by the system
  std::vector<Instruction> code;
};

// Parses the output of `cuobjdump --dump-resource-usage` and `cuobjdump --dump-sass` for any number of files,
// concatenated. A kernel with only one of the two keeps the other empty.
std::vector<KernelCode> read_kernels(std::istream& dump);

// A mangled function's name without namespaces, parameters and spaces, with types as DType names them.
std::string short_name(const std::string& function);

}  // namespace plumb::sass
