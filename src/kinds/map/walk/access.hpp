// SPDX-License-Identifier: Apache-2.0
// Access: how a walk obtains bytes of a region at the place where it runs.
//
// A walk requests the bytes that it will read (`want`), waits until they have arrived (`arrived`),
// and reads them. It reads nothing else, so the same walk runs beside the memory (bytes are
// prefetched cache lines), behind a device's cache, or over a network (bytes come by one-sided
// READs).
//
// An Access provides, per lane:
//   image(offset)            where the node at this region offset will appear, of node_bytes bytes
//   want(image, begin, n)    requests bytes [begin, begin + n) of that node
//   bytes(offset, n)         requests bytes outside nodes (a value, a word of the page table);
//                            returns where they will appear, aligned to 8
//   arrived(warmth)          awaitable: all requested bytes have arrived; ready if none were
//   confirm(ref)             awaitable Confirmed: whether the buffer was still the expected one
//                            after all its bytes had arrived, and the guard held until then
//   again()                  awaitable: yields to other walks
//   kInPlace                 images are the memory itself, so bytes not requested can be read too;
//                            requests are then only prefetches, and walks request fewer
// An Access whose images are copies also provides (RemoteAccess):
//   entered()                awaitable: the walk's guard holds from here on; false: there is none
//   believed()               awaitable bool: what was confirmed may be answered, because the host
//                            responded recently; false: the guard was lost
//   map_header(offset)       requests the head of the map's header, kMapHeaderHead bytes, with the
//                            read version in its place, wherever the header says that it lies
//   table_page(named)        the directory's entry at this offset, if learned; else 0
//   learn_table_page(named, page)  remembers that entry for the lifetime of the map
//   failed()                 whether some requested bytes could not be read
//   reads_in_order()         whether later requests are read later
// Bytes stay valid until the walk requests the next node (image) or the next bytes (bytes).
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>

#include "kinds/map/format/map_header.hpp"
#include "kinds/map/node/search_key.hpp"

namespace espalier::tree {

/// How likely bytes are in a near cache: decides whether waiting for them is worthwhile.
enum class Warmth : std::uint8_t {
  hot,   ///< the root: in a near cache
  warm,  ///< interior nodes: in a near cache unless the tree is large
  cold,  ///< leaves and values
};

/// Whether what was read may be used, as found by a check after reading.
enum class Confirmed : std::uint8_t {
  yes,
  changed,  ///< the buffer was reused: restart from the root
  lost,     ///< epoch, lease or connection is lost, and with it the read version
};

/// The bytes of a map's header that a walk reads: identity, versions and the read version.
inline constexpr std::uint32_t kMapHeaderHead = offsetof(wire::MapHeader, read_version) + 8;

template <class A>
concept Access = requires(A access, std::uint64_t offset, const std::byte* image,
                          std::uint32_t bytes, Warmth warmth, wire::Ref ref) {
  { access.image(offset) } -> std::same_as<const std::byte*>;
  access.want(image, bytes, bytes);
  { access.bytes(offset, offset) } -> std::same_as<const std::byte*>;
  access.arrived(warmth);
  access.confirm(ref);
  access.again();
  { A::kInPlace } -> std::convertible_to<bool>;
};

/// An access whose images are copies of remote bytes.
template <class A>
concept RemoteAccess = Access<A> &&(!A::kInPlace) && requires(A access, std::uint64_t offset) {
  access.entered();
  access.believed();
  { access.map_header(offset) } -> std::same_as<const std::byte*>;
  { access.table_page(offset) } -> std::same_as<std::uint64_t>;
  access.learn_table_page(offset, offset);
  { access.failed() } -> std::same_as<bool>;
  { access.reads_in_order() } -> std::same_as<bool>;
};

/// An access that can read a node by a key instead of a reference:
///   reads_by_key()           whether it does so
///   node_by_key(key)         requests the beginning of a node for this key; returns its image
///   came_to(ref)             reports that the node which arrived names itself `ref`
///   node_is_whole()          whether the whole node arrived
///   node_has_come(bytes)     whether at least its first `bytes` bytes arrived
template <class A>
concept KeyedAccess = RemoteAccess<A> && requires(A access, wire::Ref ref, SearchKey key) {
  { access.reads_by_key() } -> std::same_as<bool>;
  { access.node_by_key(key) } -> std::same_as<const std::byte*>;
  access.came_to(ref);
  { access.node_is_whole() } -> std::same_as<bool>;
  { access.node_has_come(std::uint32_t{}) } -> std::same_as<bool>;
};

/// An access that samples which leaves answer:
///   answered(lid)            one answer was given from this leaf
template <class A>
concept SamplingAccess = RemoteAccess<A> && requires(A access, wire::Lid leaf) {
  access.answered(leaf);
};

/// Always confirmed, without suspending.
struct Certain {
  [[nodiscard]] bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  [[nodiscard]] Confirmed await_resume() const noexcept { return Confirmed::yes; }
};

}  // namespace espalier::tree
