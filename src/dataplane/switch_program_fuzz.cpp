// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a switch is to run with, and as changes of a small program: either they are
// refused with a line and a reason, or they come back from their text as they were.
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "dataplane/switch_program.hpp"

namespace espalier::dataplane {
namespace {

void want_fault(const TextFault& fault, std::size_t size) {
  base::want(!fault.reason.empty() && fault.line <= 2 * size + 2, "a fault");
}

const SwitchProgram& small_program() {
  static const SwitchProgram program = *SwitchProgram::parse(
      "espalier-switch 1\nmap 1 2\nespalier-tables 1\nroot 16 4 0\nway 40>0\nset\nnode 0 5 40\n");
  return program;
}

}  // namespace
}  // namespace espalier::dataplane

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  using namespace espalier::dataplane;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto parsed = SwitchProgram::parse(text)) {
    const auto again = SwitchProgram::parse(parsed->text());
    base::want(again && *again == *parsed, "a program that comes back");
    static_cast<void>(parsed->function());
  } else {
    want_fault(parsed.error(), size);
  }
  SwitchProgram program = small_program();
  if (const auto changes = program.parse_changes(text)) {
    base::want(program.parse_changes(to_text(*changes)) == *changes, "changes that come back");
    program.make(*changes);
    for (const SwitchMap& map : program.maps()) base::want(check(map.tables), "good tables");
  } else {
    want_fault(changes.error(), size);
  }
  return 0;
}
