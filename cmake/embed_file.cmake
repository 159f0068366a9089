# Writes SOURCE: the bytes of FILES as a string_view named SYMBOL.
foreach(file ${FILES})
  file(READ ${file} part HEX)
  string(APPEND bytes ${part})
endforeach()
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${SOURCE} "#include <string_view>

namespace plumb {
namespace {
constexpr unsigned char ${SYMBOL}Bytes[] = {
${bytes}0};
}  // namespace
extern const std::string_view ${SYMBOL};
const std::string_view ${SYMBOL}{reinterpret_cast<const char*>(${SYMBOL}Bytes), sizeof(${SYMBOL}Bytes) - 1};
}  // namespace plumb
")
