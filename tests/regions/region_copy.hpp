// SPDX-License-Identifier: Apache-2.0
// A program's call that works on other nodes' regions: it copies a word from the region "words" of
// one peer to that of another, by one-sided posts.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/registry.hpp"
#include "wire/call_codec.hpp"

namespace espalier::test {

/// The region, at both peers.
inline constexpr std::string_view kWordsRegion = "words";

namespace region_copy_calls {

struct Copied {
  std::uint64_t word = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.word); }
};

struct CopyWord {
  static constexpr wire::CallRow kCall{
      .id = static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 32),
      .name = "region_copy",
      .summary = "copies a word of a region at peer b to one at peer c; answers the word",
      .right = wire::Right::write,
      .at_device = wire::AtDevice::refused,
      .changes = true};
  using Reply = Copied;

  std::uint64_t from = 0;
  std::uint64_t to = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.from, "the word's offset");
    message.fixed(self.to, "where it goes");
  }
};

using All = wire::CallList<CopyWord>;

}  // namespace region_copy_calls

[[nodiscard]] const offload::Kind& region_copy_kind();

}  // namespace espalier::test
