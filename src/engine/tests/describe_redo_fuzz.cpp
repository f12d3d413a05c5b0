// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a record of any kind, described by its kind: keys lie within the record, names
// are well-formed, and a refusal has a fault with a text.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "catalog/redo_effect.hpp"
#include "catalog/redo_record.hpp"
#include "engine/redo_target.hpp"

namespace espalier::offload {
namespace {

using base::want;

bool is_word(std::string_view text) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !text.empty() && std::ranges::all_of(text, fits);
}

bool lies_in(std::string_view part, std::string_view whole) {
  const std::less_equal<const char*> before;
  return before(whole.data(), part.data()) &&
         before(part.data() + part.size(), whole.data() + whole.size());
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a read past the end is detected
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view record(exact.get(), size);
  std::size_t effects = 0;
  const auto described = describe_record(record, {}, [&](const catalog::RedoEffect& effect) {
    ++effects;
    want(is_word(effect.what), "an effect without a word");
    want(!effect.key || lies_in(*effect.key, record), "a key beyond the record");
    for (const catalog::RedoNumber& number : effect.numbers) {
      want(is_word(number.name), "a number without a name");
    }
  });
  want(effects <= size, "more effects than bytes");
  if (described) {
    want(effects != 0, "a record of nothing");
    return;
  }
  want(described.error().code == Code::corrupt || described.error().code == Code::unsupported,
       "another error than corrupt");
  const auto fault = static_cast<catalog::RedoFault>(described.error().detail);
  want(described.error().code != Code::corrupt || !text_of(fault).empty(), "a fault without words");
}

}  // namespace
}  // namespace espalier::offload

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::offload::run(data, size);
  return 0;
}
