// SPDX-License-Identifier: Apache-2.0
// Where unauthenticated peers come from, and how each place has behaved: how many of its peers are
// pending, and how many of its proofs were wrong lately. One place cannot hold what is there for
// all, and guesses slower with each try.
//
// A place is an IPv4 address, the first 64 bits of an IPv6 address, of which one host has as many
// as it likes, or whatever else a transport calls a peer.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace espalier::offload {

/// The place of a peer, from what a transport calls it, such as "192.0.2.1:4791" or "[::1]:4791".
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

  /// One more peer of this place, if it may be pending. Returns whether it may; if so left()
  /// follows.
  [[nodiscard]] bool enter(const std::string& source, std::uint64_t now_ns);
  void left(const std::string& source);
  /// How many of this place are pending.
  [[nodiscard]] std::uint32_t pending(const std::string& source) const {
    const auto found = sources_.find(source);
    return found == sources_.end() ? 0 : found->second.pending;
  }
  /// A proof was wrong. Returns how long its rejection is to wait.
  [[nodiscard]] std::uint64_t wrong(const std::string& source, std::uint64_t now_ns);
  [[nodiscard]] std::size_t size() const { return sources_.size(); }

 private:
  struct Source {
    std::uint32_t pending = 0;
    std::uint32_t wrong = 0;       // lately
    std::uint64_t counted_ns = 0;  // when that was halved last, or began
  };
  Source& at(const std::string& source, std::uint64_t now_ns);
  void make_room();

  std::unordered_map<std::string, Source> sources_;
};

}  // namespace espalier::offload
