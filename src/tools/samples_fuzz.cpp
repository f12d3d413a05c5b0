// SPDX-License-Identifier: Apache-2.0
// A node's samples of objects, as any bytes, on its way to a terminal, to JSON and to metrics:
// nothing is read beyond it, what is read is written and read the same again, and none of it steers
// a terminal.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "base/utf8.hpp"
#include "node/metrics.hpp"
#include "tools/json_stats.hpp"
#include "tools/shown_samples.hpp"
#include "tools/top_screen.hpp"
#include "wire/samples.hpp"

namespace espalier::tools {
namespace {

void want_printable(std::string_view text) {
  base::want(base::is_utf8(text), "not UTF-8");
  base::want(std::ranges::all_of(text,
                                 [](char c) {
                                   const auto byte = static_cast<unsigned char>(c);
                                   return c == '\n' || (byte >= 0x20 && byte != 0x7f);
                                 }),
             "a byte that steers");
}

void show(const wire::SampledObjects& sampled) {
  for (const wire::SampledObject& object : sampled.objects) {
    std::ostringstream out;
    print_object(out, object);
    const std::string text = out.str();
    want_printable(text);
    const auto lines = std::ranges::count(text, '\n');
    base::want(!nlohmann::json::parse(object_json(object).dump()).is_discarded(), "not JSON");
    if (has_members(object.kind)) {
      base::want(!nlohmann::json::parse(members_json(object).dump()).is_discarded(), "not JSON");
      base::want(lines >= 1 && lines <= 7, "more lines than its kind has");
      continue;
    }
    base::want(lines == static_cast<int>(object.samples.size()) + 1, "another number of lines");
  }
  node::NodeNumbers numbers;
  numbers.uptime_ns = 1'000'000'000;
  numbers.sampled = sampled;
  want_printable(node::metrics_text(numbers));
  const node::NodeNumbers before = numbers;
  numbers.uptime_ns *= 2;
  const TopView view = view_of(&before, std::move(numbers));
  for (const TopSort sort : {TopSort::activity, TopSort::size, TopSort::name}) {
    for (const ScreenLine& line : draw_top(view, {"unix:s", sort}, {80, 24})) {
      want_printable(line.text);
      base::want(line.text.find('\n') == std::string::npos, "two lines in one");
    }
  }
}

void run_one(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view items(exact.get(), size);
  const auto objects = wire::read_sampled_objects(items);
  if (!objects) return;
  // Samples of types that only later versions know are not read.
  const std::string again = wire::items_of(*objects);
  base::want(again == items || again.size() < items.size(), "other bytes");
  base::want(wire::read_sampled_objects(again) == objects, "other objects");
  show({objects->size() + 1, *objects});
}

}  // namespace
}  // namespace espalier::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::tools::run_one(data, size);
  return 0;
}
