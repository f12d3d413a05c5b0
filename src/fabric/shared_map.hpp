// SPDX-License-Identifier: Apache-2.0
// The keys of a map whose READs switches may redirect, and the sessions that may use them.
//
// A switch knows no sessions, so it writes one key for all of them. A shared key of RegionTable
// therefore names a SharedMap, and that names sessions, each by its own private key: exactly while
// that key is good the session may read by the shared ones.
//
//   keyed      the address is a number made of a key; a READ by it that met no table is answered by
//              the holder of the map
//   redirect   the address is where a node begins, written by tables in switches: it may be stale,
//              or anything
//
// Neither is a region of bytes: SharedReads decides what a READ brings. Such a READ has one packet
// for answer, and its duplicate may carry another address, or the other key.
//
// Thread: all changes under the lock of the RegionTable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fabric/types.hpp"

namespace espalier::fabric {

/// Answers READs by shared keys. Both fill `into` with the beginning of one node as it was at one
/// moment, or with zeros, which are no node. Short; called where the table is read, so neither may
/// revoke a key. Thread: any, several at a time.
class SharedReads {
 public:
  SharedReads() = default;
  SharedReads(const SharedReads&) = delete;
  SharedReads& operator=(const SharedReads&) = delete;
  virtual ~SharedReads() = default;

  /// The node that holds keys of this number.
  virtual void read_keyed(std::uint64_t number, std::span<std::byte> into) = 0;
  /// The node that begins there, if one does: `offset` may be any within the bytes offered.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> into) = 0;
};

class SharedMap {
 public:
  explicit SharedMap(std::shared_ptr<SharedReads> reads) : reads_(std::move(reads)) {}
  SharedMap(const SharedMap&) = delete;
  SharedMap& operator=(const SharedMap&) = delete;
  ~SharedMap() { delete members_.load(std::memory_order_relaxed); }

 private:
  friend class RegionTable;
  struct Member {
    Domain domain = 0;
    RegionKey key = 0;  // which the session alone has
  };
  using Members = std::vector<Member>;  // one of a domain, ascending

  /// The key of the session in this domain, or 0.
  [[nodiscard]] RegionKey member_key(Domain domain) const;
  /// Replaces the members; returns what to destroy when no reader looks at it any more.
  std::unique_ptr<const Members> replace(std::unique_ptr<const Members> members) {
    return std::unique_ptr<const Members>(
        members_.exchange(members.release(), std::memory_order_acq_rel));
  }

  const std::shared_ptr<SharedReads> reads_;
  std::uint64_t number_ = 0;  // the table's, once it has a key
  std::atomic<const Members*> members_{nullptr};
};

/// What a READ by a key comes to, if that is a shared one.
struct SharedSource {
  enum class Kind : std::uint8_t {
    none,  // it is no shared key
    refused,
    zeros,  // the key is void, or the address is beyond all that there is
    keyed,
    redirected,
  };
  Kind kind = Kind::none;
  SharedReads* reads = nullptr;
  std::uint64_t at = 0;   // a number, or an offset
  std::uint64_t map = 0;  // which one: never used again

  [[nodiscard]] bool answers() const { return kind != Kind::none && kind != Kind::refused; }
  /// Brings what the READ gets. Requires: answers().
  void read(std::span<std::byte> into) const;
};

}  // namespace espalier::fabric
