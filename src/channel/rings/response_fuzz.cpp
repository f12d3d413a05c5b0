// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the answers of a node that then disappears: every request completes once, and
// nothing outside the answers is read.
//
// Input: the slots of the response ring, 60 bytes each.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/testing/fake_node.hpp"

namespace espalier::client {
namespace {

using base::want;

/// Reads every byte that it is given, and counts completions.
struct Reader final : Handler {
  void done(const Completion& completion) override {
    want(completion.tag < completions.size(), "a completion of nothing");
    ++completions[completion.tag];
    read(completion.key);
    read(completion.value);
  }
  bool items(std::uint64_t tag, std::span<const Item> run) override {
    want(tag < completions.size() && completions[tag] == 0, "items behind a completion");
    for (const Item& item : run) {
      read(item.key);
      read(item.value);
    }
    return sum % 8 != 0;
  }
  void read(std::string_view text) {
    for (const char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
  }
  std::vector<int> completions;
  std::uint64_t sum = 1;
};

void run(const std::uint8_t* data, std::size_t size) {
  static FakeNode node("/tmp/espalier-response-fuzz-" + std::to_string(::getpid()));
  constexpr wire::ConnectionLayout kRings{64, 64, 1};
  auto connection = node.connect(kRings);
  want(connection.has_value(), "no connection");
  const auto rings = ThreadRings::open(*connection);
  want(rings.has_value(), "no lane");
  RemoteRequests requests(**rings, 8);
  std::vector<Request> asked(8);
  constexpr Op kOps[] = {Op::get,          Op::put,        Op::floor, Op::scan,
                         Op::scan_reverse, Op::scan_floor, Op::erase, Op::get};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i].op = kOps[i];
    asked[i].tag = i;
    asked[i].key = "key";
  }
  Reader reader;
  reader.completions.resize(asked.size());
  requests.submit(asked, reader, {1, 460, 0});
  // At most what the ring holds, since it is not read meanwhile.
  for (std::uint64_t slot = 0; size != 0 && slot < kRings.response_slots; ++slot) {
    const std::size_t now = std::min<std::size_t>(size, wire::kRingSlotPayload);
    std::memcpy(node.responses().slot(slot) + sizeof(std::uint32_t), data, now);
    node.responses().publish(slot);
    data += now;
    size -= now;
  }
  node.hang_up();
  requests.drain();
  for (const int completions : reader.completions) want(completions == 1, "not completed once");
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run(data, size);
  return 0;
}
