// Manual pages and completions of the programs, from the tables of options that the programs read.
#pragma once

#include <string>
#include <vector>

#include "base/options/option_table.h"

namespace plumb {

// A section of paragraphs, each plain text.
struct ManSection {
  std::string title;
  std::vector<std::string> paragraphs;
};

struct ManPage {
  std::string name;     // "bench_resnet50"
  std::string purpose;  // behind the name: "trains ResNet-50 and times every step"
  std::vector<std::string> synopsis;
  std::string description;
  // Options stand by groups; commands instead of them where there are some.
  std::vector<OptionTable> tables, commands;
  std::vector<ManSection> sections;  // behind the options
};

// Roff of section 1 for man(7), UTF-8, with EXIT STATUS and ENVIRONMENT, which are tables of docs/reference,
// after the page's own sections.
std::string man_page(const ManPage& page, const std::string& version);

// The section that names other pages: "plumbline(1), mpirun(1)".
ManSection see_also(const std::string& others);

}  // namespace plumb
