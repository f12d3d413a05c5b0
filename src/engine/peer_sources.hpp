// SPDX-License-Identifier: Apache-2.0
// Rate limits of unauthenticated peers by source: how many peers of each source are pending, and
// how many of its proofs were recently wrong. No source can occupy all slots, and each guess is
// slower than the last.
//
// A source is an IPv4 address, a /64 of IPv6, since one host may have all of it, or any other name
// that a transport has for a peer.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace espalier::offload {

/// The source of a peer, from the transport's name of it, such as "192.0.2.1:4791" or "[::1]:4791".
[[nodiscard]] std::string source_of(std::string_view peer);

class PeerSources {
 public:
  static constexpr std::uint32_t kPendingMax = 64;        ///< of one place
  static constexpr std::uint32_t kSuspectPendingMax = 4;  ///< of one with kSuspect wrong proofs
  static constexpr std::uint32_t kSuspect = 4;
  static constexpr std::uint64_t kDelayNs = 250'000'000;  ///< of the first rejection
  static constexpr std::uint64_t kDelayMaxNs = 4'000'000'000;
  static constexpr std::uint64_t kHalfLifeNs = 60'000'000'000;  ///< of what wrong proofs count
  static constexpr std::size_t kSourcesMax = 4096;

  /// Counts one more pending peer, if the source is below its limit. Returns whether it is; if so,
  /// left() must follow.
  [[nodiscard]] bool enter(const std::string& source, std::uint64_t now_ns);
  void left(const std::string& source);
  /// How many of this source are pending.
  [[nodiscard]] std::uint32_t pending(const std::string& source) const {
    const auto found = sources_.find(source);
    return found == sources_.end() ? 0 : found->second.pending;
  }
  /// Counts a wrong proof. Returns the delay of its rejection.
  [[nodiscard]] std::uint64_t wrong(const std::string& source, std::uint64_t now_ns);
  [[nodiscard]] std::size_t size() const { return sources_.size(); }

 private:
  struct Source {
    std::uint32_t pending = 0;
    std::uint32_t wrong = 0;       // decayed
    std::uint64_t counted_ns = 0;  // when that was last halved, or began
  };
  Source& at(const std::string& source, std::uint64_t now_ns);
  void make_room();

  std::unordered_map<std::string, Source> sources_;
};

}  // namespace espalier::offload
