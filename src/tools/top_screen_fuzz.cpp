// SPDX-License-Identifier: Apache-2.0
// A node's statistics, as any bytes, on its way to a terminal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/utf8.hpp"
#include "node/numbers_format.hpp"
#include "tools/top_screen.hpp"

namespace espalier::tools {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void look_at(const TopView& view, ScreenSize size) {
  for (const TopSort sort : {TopSort::activity, TopSort::size, TopSort::name}) {
    const auto lines = draw_top(view, {"unix:s", sort}, size);
    require(size.rows == 0 || lines.size() == size.rows);
    for (const ScreenLine& line : lines) {
      require(base::is_utf8(line.text));
      for (const char c : line.text) {
        require(static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f);
      }
    }
  }
}

void run_one(std::string_view bytes) {
  const auto numbers = node::decode(bytes);
  if (!numbers) return;
  look_at(view_of(nullptr, *numbers), {80, 24});
  node::NodeNumbers before = *numbers;
  before.uptime_ns /= 2;
  look_at(view_of(&before, *numbers), {40, 7});
  look_at(view_of(&before, *numbers), {4096, 0});
  // Unknown fields come back under another number, all others unchanged.
  const auto again = node::decode(node::encode(*numbers));
  require(again && again->samples.size() == numbers->samples.size());
}

}  // namespace
}  // namespace espalier::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::tools::run_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
