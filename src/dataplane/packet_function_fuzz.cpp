// SPDX-License-Identifier: Apache-2.0
// Any bytes as a frame at a switch: it is left as it was, or it is a READ request by the map's key
// that now goes where the tables say, with nothing else changed but checksums. The same at each of
// three switches in a row, where a shim may be put before it, changed or taken out.
#include <algorithm>
#include <vector>

#include "base/bytes.hpp"
#include "base/testing/fuzz_input.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/frame_parts.hpp"
#include "dataplane/packet_function.hpp"
#include "dataplane/way_tables.hpp"

namespace espalier::dataplane {
namespace {

using base::want;

constexpr MapKeys kKeys{0x0101'0101, 0x0202'0202};
constexpr std::size_t kAddress = 12;  // of the RETH, in the packet
const HintTerms kHints{7, 0x40'0000, "k"};

const WayBudget& small_way() {
  static const WayBudget way{.ranges = 4, .hops = {{0, 8}, {1, 8}, {1, 8}}};
  return way;
}

IndexTables small_tables() {
  TreeImage tree;
  std::vector<NodeNumber> leaves;
  std::vector<std::uint64_t> separators;
  for (std::uint64_t i = 0; i < 40; ++i) {
    leaves.push_back(tree.add_leaf(0x80'0000 + 512 * i, i));
    if (i != 0) separators.push_back(i << (i % 56));
  }
  std::ranges::sort(separators);
  const auto same = std::ranges::unique(separators);
  separators.erase(same.begin(), same.end());
  leaves.resize(separators.size() + 1);
  tree.set_root(tree.add_node(0x90'0000, 100, separators, leaves));
  return compile(tree, *limits_of(small_way())).tables;
}

/// Whether both are one get in a datagram, but for its hint and UDP's checksum.
bool differs_by_hint(std::span<std::byte> before, std::span<std::byte> after) {
  const Datagram of_before = find_datagram(before);
  const Datagram of_after = find_datagram(after);
  const auto was = find_get(of_before);
  if (!was || !find_get(of_after) || was->map != kHints.map) return false;
  constexpr std::size_t kHint = wire::kUdpBytes + offsetof(wire::DatagramRequest, hint);
  std::copy_n(of_before.udp + wire::kUdpChecksumOffset, 2, of_after.udp + wire::kUdpChecksumOffset);
  std::copy_n(of_before.udp + kHint, sizeof(std::uint64_t), of_after.udp + kHint);
  return std::ranges::equal(before, after);
}

void process(std::span<const std::byte> bytes) {
  static const IndexTables tables = small_tables();
  static const PacketFunction function = [] {
    PacketFunction made;
    made.add(kKeys, tables, {}, kHints);
    return made;
  }();
  std::vector<std::byte> frame(bytes.begin(), bytes.end());
  const Processed processed = function.process(frame);
  std::vector<std::byte> old(bytes.begin(), bytes.end());
  if (processed.outcome == Outcome::hinted) return want(differs_by_hint(old, frame), "a hint");
  if (processed.outcome != Outcome::redirected) {
    want(std::ranges::equal(frame, bytes), "a frame that passes untouched");
    return;
  }
  const ReadRequestParts before = find_read_request(old);
  const ReadRequestParts after = find_read_request(frame);
  want(!before.ib.empty() && !after.ib.empty(), "a READ request");
  const auto number = base::load_be<std::uint64_t>(before.ib.data() + kAddress);
  want(base::load_be<std::uint32_t>(before.ib.data() + kAddress + 8) == kKeys.keyed, "its key");
  want(base::load_be<std::uint32_t>(after.ib.data() + kAddress + 8) == kKeys.redirect, "a new key");
  want(base::load_be<std::uint64_t>(after.ib.data() + kAddress) == find(tables, number).address,
       "the address of the tables");
  // Back to what it was, but for the checksums.
  std::copy_n(before.ib.data() + kAddress, 12, after.ib.data() + kAddress);
  std::copy_n(before.ib.data() + 28, 4, after.ib.data() + 28);
  std::copy_n(before.udp + 6, 2, after.udp + 6);
  want(std::ranges::equal(frame, bytes), "nothing else changed");
}

/// Without its shim, if it has one. A checksum of IPv4 that is all ones says what 0 says, and comes
/// back as 0 where it was changed by the difference and back: both are 0 here [RFC 1624].
std::vector<std::byte> bare(std::vector<std::byte> frame) {
  const Datagram datagram = find_datagram(frame);
  if (datagram.udp == nullptr) return frame;
  const bool has_shim = find_shim(datagram).has_value();
  if (has_shim) remove_shim(frame, datagram);
  std::byte* const checksum = datagram.ip + kIpv4Checksum;
  const bool is_all_ones = !is_v6(datagram) && base::load_be<std::uint16_t>(checksum) == 0xFFFF;
  if (is_all_ones) base::store_be(checksum, std::uint16_t{0});
  if (has_shim) frame.resize(frame.size() - kShimBytes);
  return frame;
}

void process_at(std::size_t at, std::span<const std::byte> bytes) {
  static const auto programs =
      cut_program(kKeys, small_tables(), small_way(), /*generation=*/0x0303'0303, kHints);
  static const PacketFunction functions[] = {programs[0].function(), programs[1].function(),
                                             programs[2].function()};
  std::vector<std::byte> frame(bytes.begin(), bytes.end());
  frame.resize(bytes.size() + kShimBytes);
  const Hop hop{at == 0, at == 2, kShimBytes};
  const Processed done = functions[at].process(std::span(frame).first(bytes.size()), hop);
  frame.resize(bytes.size() + static_cast<std::size_t>(std::ptrdiff_t{done.grown}));
  std::vector<std::byte> old(bytes.begin(), bytes.end());
  const bool was_for_switch = is_for_switch(find_datagram(old));
  const bool had_shim = was_for_switch && find_shim(find_datagram(old)).has_value();
  const Datagram now = find_datagram(frame);
  switch (done.outcome) {
    case Outcome::passed:
    case Outcome::read_passed:
    case Outcome::key_unknown:
    case Outcome::shim_passed:
      want(std::ranges::equal(frame, bytes), "a frame that passes untouched");
      want(done.outcome == Outcome::shim_passed || !was_for_switch, "no frame for a switch");
      break;
    case Outcome::shim_dropped:
      want(was_for_switch && (at == 0 || (at == 2 && !had_shim)), "a shim that is no good");
      break;
    case Outcome::shim_removed:
      want(at == 2 && had_shim && bare(old) == frame, "the READ that its client sent");
      break;
    case Outcome::carried:
      want(at != 2 && find_shim(now).has_value(), "a whole shim");
      if (find_shim(now)->kind == ShimKind::get) {
        std::vector<std::byte> before = bare(old);
        std::vector<std::byte> after = bare(frame);
        want(before == after || differs_by_hint(before, after), "a hint");
        break;
      }
      want(bare(old) == bare(frame), "the READ that its client sent, behind it");
      break;
    case Outcome::hinted: {
      want(!is_for_switch(now), "no shim");
      std::vector<std::byte> before = bare(old);
      std::vector<std::byte> after = bare(frame);
      want(differs_by_hint(before, after), "a hint");
      break;
    }
    case Outcome::redirected: {
      want(!is_for_switch(now), "no shim");
      std::vector<std::byte> before = bare(old);
      const ReadRequestParts was = find_read_request(before);
      const ReadRequestParts is = find_read_request(frame);
      want(!was.ib.empty() && !is.ib.empty(), "a READ request");
      std::copy_n(was.ib.data() + kAddress, 12, is.ib.data() + kAddress);
      std::copy_n(was.ib.data() + 28, 4, is.ib.data() + 28);
      std::copy_n(was.udp + 6, 2, is.udp + 6);
      want(bare(frame) == before, "nothing else changed");
      break;
    }
  }
}

}  // namespace
}  // namespace espalier::dataplane

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  espalier::dataplane::process(bytes);
  for (std::size_t at = 0; at < 3; ++at) espalier::dataplane::process_at(at, bytes);
  return 0;
}
