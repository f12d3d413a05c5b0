// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes in the place of an answer of etcd's, and of the text of a view: they are read or
// refused, and what was read is valid and is written as it was read.
//
// Input: a byte, even for an answer, and the bytes of it.
#include <cstdint>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "chain/membership/base64.hpp"
#include "chain/membership/etcd_membership.hpp"

namespace espalier::chain {
namespace {

using base::want;

void check_view(const View& view) {
  want(!mistake_in(view), "a view that was read is not valid");
  const auto again = parse_view(print(view));
  want(again && *again == view, "a view is not written as it was read");
}

void run_one(std::string_view input) {
  const bool is_answer = input.front() % 2 == 0;
  input.remove_prefix(1);
  if (is_answer) {
    const auto read = read_etcd_answer(input);
    if (read && *read) check_view((*read)->view);
    if (!read) want(!read.error().empty(), "a refusal says nothing");
    return;
  }
  if (const auto view = parse_view(input)) check_view(*view);
  if (const auto bytes = of_base64(input)) {
    want(of_base64(in_base64(*bytes)) == *bytes, "base64 is not read as it was written");
  }
}

}  // namespace
}  // namespace espalier::chain

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  espalier::chain::run_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
