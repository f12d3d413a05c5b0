// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the fabric: work requests, completions, and their properties [verbs].
//
// A work request names memory of both sides. The near side is plain memory of this process; the far
// side is a region that the peer has registered: a key, and an address in the range that the key
// stands for. Such an address is no pointer: each region's range begins at a random number, so a
// guesser needs both.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace espalier::fabric {

/// Names a registered region to peers; random, never 0 [verbs: rkey].
using RegionKey = std::uint32_t;
/// Replaces the word of a key that was made void (region_table.hpp). It is no key that can be good
/// there, for the low half of each names its own place.
[[nodiscard]] constexpr RegionKey void_word(RegionKey key) { return ~key; }
/// Queue pairs reach the regions of their own domain only [verbs: protection domain].
using Domain = std::uint32_t;
inline constexpr Domain kNoDomain = ~Domain{0};  ///< of pairs that may use no region

/// Memory that peers map lies at a multiple of this.
inline constexpr std::uint64_t kPageBytes = 4096;

/// What peers may do to a region.
enum class RemoteRights : std::uint8_t { none = 0, read = 1, write = 2, atomic = 4 };
[[nodiscard]] constexpr RemoteRights operator|(RemoteRights a, RemoteRights b) {
  return static_cast<RemoteRights>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
/// Whether all rights of `wanted` are among those of `granted`.
[[nodiscard]] constexpr bool includes(RemoteRights granted, RemoteRights wanted) {
  const auto want = static_cast<std::uint8_t>(wanted);
  return (static_cast<std::uint8_t>(granted) & want) == want;
}

/// What a peer needs to reach a region.
struct RemoteRegion {
  std::uint64_t base = 0;  // the address of its first byte
  std::uint64_t bytes = 0;
  RegionKey key = 0;
  std::uint32_t reserved = 0;

  [[nodiscard]] constexpr std::uint64_t at(std::uint64_t offset) const { return base + offset; }
  friend constexpr bool operator==(const RemoteRegion&, const RemoteRegion&) = default;
};
static_assert(sizeof(RemoteRegion) == 24 && std::has_unique_object_representations_v<RemoteRegion>);

enum class Opcode : std::uint8_t {
  invalid = 0,
  read = 1,
  write = 2,
  write_immediate = 3,  // a WRITE that takes a receive of the peer and completes it with a number
  fetch_add = 4,        // on 8 bytes, aligned
  compare_swap = 5,     // the same
  send = 6,
  send_immediate = 7,
  // Only in completions: a receive that a SEND, or a WRITE with immediate, has taken.
  receive = 8,
  receive_write = 9,
};
[[nodiscard]] constexpr bool is_atomic(Opcode opcode) {
  return opcode == Opcode::fetch_add || opcode == Opcode::compare_swap;
}
[[nodiscard]] constexpr bool is_send(Opcode opcode) {
  return opcode == Opcode::send || opcode == Opcode::send_immediate;
}
[[nodiscard]] constexpr bool is_write(Opcode opcode) {
  return opcode == Opcode::write || opcode == Opcode::write_immediate;
}
[[nodiscard]] constexpr bool has_immediate(Opcode opcode) {
  return opcode == Opcode::write_immediate || opcode == Opcode::send_immediate;
}
/// Whether it takes a receive of the peer.
[[nodiscard]] constexpr bool takes_receive(Opcode opcode) {
  return is_send(opcode) || opcode == Opcode::write_immediate;
}
/// What the peer must have granted.
[[nodiscard]] constexpr RemoteRights rights_for(Opcode opcode) {
  if (is_atomic(opcode)) return RemoteRights::atomic;
  if (is_write(opcode)) return RemoteRights::write;
  return opcode == Opcode::read ? RemoteRights::read : RemoteRights::none;
}

/// Bytes that an atomic works on, and to which its address is aligned.
inline constexpr std::uint32_t kAtomicBytes = 8;

/// One work request. Build it by the functions below.
struct WorkRequest {
  std::uint64_t work_id = 0;  // comes back with the completion
  Opcode opcode = Opcode::invalid;
  bool signalled = true;  // its success completes; a failure always does
  bool inlined = false;   // what `local` holds is copied before post() returns
  bool fence = false;     // begins after all earlier READs and atomics of this pair are done
  std::uint32_t bytes = 0;
  std::uint32_t immediate = 0;
  RegionKey key = 0;
  /// READ: where to; WRITE and SEND: where from, read only; atomics: where the old value goes, or
  /// null. The fabric owns it until the completion, unless inlined.
  std::byte* local = nullptr;
  std::uint64_t remote = 0;
  std::uint64_t operand = 0;  // what is added, or swapped in
  std::uint64_t compare = 0;

  static WorkRequest read(std::uint64_t work_id, std::span<std::byte> into, RegionKey key,
                          std::uint64_t remote);
  static WorkRequest write(std::uint64_t work_id, std::span<const std::byte> from, RegionKey key,
                           std::uint64_t remote);
  static WorkRequest write_immediate(std::uint64_t work_id, std::span<const std::byte> from,
                                     RegionKey key, std::uint64_t remote, std::uint32_t immediate);
  static WorkRequest fetch_add(std::uint64_t work_id, RegionKey key, std::uint64_t remote,
                               std::uint64_t add, std::byte* old_value = nullptr);
  static WorkRequest compare_swap(std::uint64_t work_id, RegionKey key, std::uint64_t remote,
                                  std::uint64_t compare, std::uint64_t swap,
                                  std::byte* old_value = nullptr);
  static WorkRequest send(std::uint64_t work_id, std::span<const std::byte> message);
  static WorkRequest send_immediate(std::uint64_t work_id, std::span<const std::byte> message,
                                    std::uint32_t immediate);

  [[nodiscard]] WorkRequest unsignalled() const { return with(false, inlined, fence); }
  [[nodiscard]] WorkRequest as_inline() const { return with(signalled, true, fence); }
  [[nodiscard]] WorkRequest after_fence() const { return with(signalled, inlined, true); }

 private:
  [[nodiscard]] WorkRequest with(bool is_signalled, bool is_inlined, bool has_fence) const {
    return {work_id,   opcode, is_signalled, is_inlined, has_fence, bytes,
            immediate, key,    local,        remote,     operand,   compare};
  }
};
static_assert(sizeof(WorkRequest) == 56);

// Inline, and each as one list, so that a compiler builds a request in its final place. One that is
// filled field by field and then copied in wider pieces stalls on failed store forwarding, which
// costs twice as much as all the rest of a short READ.
namespace detail {
// A length that does not fit is one that no transport carries, and post() will say so.
[[nodiscard]] constexpr std::uint32_t request_bytes(std::size_t bytes) {
  return static_cast<std::uint32_t>(bytes <= UINT32_MAX ? bytes : UINT32_MAX);
}
// Only a READ writes there.
[[nodiscard]] inline std::byte* request_local(std::span<const std::byte> from) {
  return const_cast<std::byte*>(from.data());
}
}  // namespace detail

inline WorkRequest WorkRequest::read(std::uint64_t work_id, std::span<std::byte> into,
                                     RegionKey key, std::uint64_t remote) {
  return {work_id, Opcode::read, true,        false,  false, detail::request_bytes(into.size()),
          0,       key,          into.data(), remote, 0,     0};
}

inline WorkRequest WorkRequest::write(std::uint64_t work_id, std::span<const std::byte> from,
                                      RegionKey key, std::uint64_t remote) {
  return {work_id,
          Opcode::write,
          true,
          false,
          false,
          detail::request_bytes(from.size()),
          0,
          key,
          detail::request_local(from),
          remote,
          0,
          0};
}

inline WorkRequest WorkRequest::write_immediate(std::uint64_t work_id,
                                                std::span<const std::byte> from, RegionKey key,
                                                std::uint64_t remote, std::uint32_t immediate) {
  return {work_id,
          Opcode::write_immediate,
          true,
          false,
          false,
          detail::request_bytes(from.size()),
          immediate,
          key,
          detail::request_local(from),
          remote,
          0,
          0};
}

inline WorkRequest WorkRequest::fetch_add(std::uint64_t work_id, RegionKey key,
                                          std::uint64_t remote, std::uint64_t add,
                                          std::byte* old_value) {
  return {work_id, Opcode::fetch_add, true,   false, false, kAtomicBytes, 0,
          key,     old_value,         remote, add,   0};
}

inline WorkRequest WorkRequest::compare_swap(std::uint64_t work_id, RegionKey key,
                                             std::uint64_t remote, std::uint64_t compare,
                                             std::uint64_t swap, std::byte* old_value) {
  return {work_id,   Opcode::compare_swap,
          true,      false,
          false,     kAtomicBytes,
          0,         key,
          old_value, remote,
          swap,      compare};
}

inline WorkRequest WorkRequest::send(std::uint64_t work_id, std::span<const std::byte> message) {
  return {work_id,
          Opcode::send,
          true,
          false,
          false,
          detail::request_bytes(message.size()),
          0,
          0,
          detail::request_local(message),
          0,
          0,
          0};
}

inline WorkRequest WorkRequest::send_immediate(std::uint64_t work_id,
                                               std::span<const std::byte> message,
                                               std::uint32_t immediate) {
  return {work_id,
          Opcode::send_immediate,
          true,
          false,
          false,
          detail::request_bytes(message.size()),
          immediate,
          0,
          detail::request_local(message),
          0,
          0,
          0};
}

/// A receive buffer for one message of the peer. The fabric owns it until the completion.
struct Receive {
  std::uint64_t work_id = 0;
  std::span<std::byte> into;
};

/// How a work request ended [verbs: ibv_wc_status].
enum class Status : std::uint8_t {
  success = 0,
  local_length = 1,      // a message was longer than the receive that it took
  remote_invalid = 2,    // the peer cannot make sense of it: its length, alignment or order
  remote_access = 3,     // no such key, not within its range, or not granted
  remote_operation = 4,  // the peer could not do it, for a reason of its own
  retry_exceeded = 5,    // the peer does not answer
  no_receive = 6,        // the peer had no receive, on all retries [RNR]
  flushed = 7,           // never tried, or its end is not known: the pair failed or was closed
};
/// The name as it stands here.
[[nodiscard]] std::string_view name(Status status);
[[nodiscard]] std::string_view name(Opcode opcode);

struct Completion {
  std::uint64_t work_id = 0;
  std::uint64_t old_value = 0;  // of an atomic, as it was before
  std::uint32_t pair = 0;       // QueuePair::number() of the pair
  std::uint32_t bytes = 0;      // that were moved
  std::uint32_t immediate = 0;
  Status status = Status::success;
  Opcode opcode = Opcode::invalid;
  bool with_immediate = false;
};
static_assert(sizeof(Completion) == 32);

/// What a transport promises, beyond what all do:
///
/// - Work requests of a pair begin in the order in which they were posted, WRITEs, SENDs and
///   atomics take effect in that order, and completions come in that order.
/// - The payload of a WRITE with immediate is in place before its receive completes, and so is
///   everything written before it.
/// - Nothing is ordered between pairs.
/// - A READ by a key that was made void succeeds, and brings zeros. One that was under way at that
///   moment may bring what was there before, or zeros from some line on, or for some lines: each
///   line of 64 bytes, counted from where the READ begins, is one or the other.
/// - An aligned word of 8 bytes is not torn where the READ or WRITE begins at one. More may be, and
///   a READ may see the lines of a WRITE in any order.
struct Properties {
  std::string_view transport;
  /// A READ reads all its bytes after earlier READs of its pair have read theirs. Else: a fence.
  bool reads_in_order = false;
  /// A READ of a connected pair mostly ends inside post(): to wait for it costs next to nothing.
  bool reads_end_in_post = false;
  /// A completed WRITE can be seen by the peer's processor.
  bool write_is_placed = false;
  /// A completed WRITE is durable where its region is of persistent memory and placed past the
  /// cache (placement.hpp). Never where a network card places bytes itself: what it acknowledges
  /// has come to it, and may be anywhere between it and the memory.
  bool write_is_durable = false;
  /// Atomics are atomic against the processor of the peer too, not only among themselves.
  bool atomic_with_processor = false;
  /// A thread of the peer must call progress(), or nothing there answers.
  bool peer_makes_progress = false;
  /// Peers load and store by themselves, through mappings: a region needs a descriptor, and
  /// revoking or voiding a key stops only peers that keep to the protocol. Any other peer can go on
  /// reading what it could reach, and writing it if it had that right; so what it may write is
  /// memory of its own (landing_region.hpp), and is never used for anything else.
  bool peer_maps_memory = false;
  /// The data of Endpoint::reject() reaches the peer. Else a reject carries none.
  bool refuses_with_data = false;
  std::uint32_t inline_bytes_max = 0;
  std::uint32_t message_bytes_max = 0;
  std::uint32_t reads_in_flight_max = 0;  // READs and atomics of one pair; more wait by themselves
};

}  // namespace espalier::fabric
