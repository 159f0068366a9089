#include "tests/cuda_sass/kernel_code.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

namespace plumb::sass {
namespace {

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

// The text after `key` up to a space, as a number: the 24 of "REG:24 STACK:0"; 0 if absent.
int number_behind(const std::string& line, std::string_view key) {
  const std::size_t at = line.find(key);
  return at == std::string::npos ? 0 : std::atoi(line.c_str() + at + key.size());
}

//         /*0160*/              @!P0 LDG.E R3, [R2.64] ;      /* 0x000000040203898 */
bool read_instruction(std::string_view line, Instruction& into) {
  const std::size_t begin = line.find("/*"), end = line.find("*/"), semicolon = line.find(';');
  if (begin == std::string_view::npos || end == std::string_view::npos ||
      semicolon == std::string_view::npos || end > semicolon)
    return false;
  into.address = static_cast<unsigned>(
      std::strtoul(std::string(line.substr(begin + 2, end - begin - 2)).c_str(), nullptr, 16));
  std::string_view text = trimmed(line.substr(end + 2, semicolon - end - 2));
  into.predicated = text.starts_with('@');
  if (into.predicated) text = trimmed(text.substr(std::min(text.find(' '), text.size())));
  const std::size_t space = std::min(text.find(' '), text.size());
  into.opcode = text.substr(0, space);
  into.operands = trimmed(text.substr(space));
  return true;
}

KernelCode& kernel_of(std::vector<KernelCode>& kernels, const std::string& function, int architecture) {
  for (KernelCode& kernel : kernels)
    if (kernel.architecture == architecture && kernel.function == function) return kernel;
  kernels.push_back(
      {.function = function, .name = short_name(function), .architecture = architecture, .code = {}});
  return kernels.back();
}

}  // namespace

std::string short_name(const std::string& function) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(function.c_str(), nullptr, nullptr, &status), &std::free);
  std::string name = demangled ? demangled.get() : function;
  replace_all(name, "(anonymous namespace)::", "");
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (depth == 0 && name[i] == '(') name.resize(i);
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  for (const auto& [what, by] : {std::pair("plumb::", ""),
                                 {"cuda::", ""},
                                 {"__half", "f16"},
                                 {"__nv_bfloat16", "bf16"},
                                 {"float", "f32"},
                                 {" ", ""}})
    replace_all(name, what, by);
  return name;
}

std::vector<KernelCode> read_kernels(std::istream& dump) {
  std::vector<KernelCode> kernels;
  KernelCode* in_code = nullptr;
  int architecture = 0;
  std::string line, resources_of;
  while (std::getline(dump, line)) {
    if (const std::size_t at = line.find("arch = sm_"); at != std::string::npos) {
      architecture = std::atoi(line.c_str() + at + 10);
      in_code = nullptr;
    } else if (const std::size_t function = line.find("Function : "); function != std::string::npos) {
      in_code = &kernel_of(kernels, line.substr(function + 11), architecture);
    } else if (line.starts_with(" Function ") && line.ends_with(':')) {
      resources_of = line.substr(10, line.size() - 11);
    } else if (!resources_of.empty() && line.find("REG:") != std::string::npos) {
      KernelCode& kernel = kernel_of(kernels, std::exchange(resources_of, {}), architecture);
      kernel.registers = number_behind(line, "REG:");
      kernel.stack_bytes = number_behind(line, "STACK:");
      kernel.shared_bytes = number_behind(line, "SHARED:");
      in_code = nullptr;
    } else if (Instruction instruction; in_code && read_instruction(line, instruction)) {
      in_code->code.push_back(std::move(instruction));
    }
  }
  return kernels;
}

}  // namespace plumb::sass
