// SPDX-License-Identifier: Apache-2.0
// What a walk needs of the place where it runs: to have bytes of a region brought to it.
//
// A walk names the bytes that it will look at (`want`), waits until they are there (`arrived`), and
// looks. It never asks for anything else, so that the same walk runs beside the memory (the bytes
// are prefetched cache lines), behind a device's cache, or over a network (the bytes are one-sided
// READs).
//
// An Access gives, per lane:
//   image(offset)            where the node at this region offset will appear, of node_bytes bytes
//   want(image, begin, n)    bring bytes [begin, begin + n) of that node
//   bytes(offset, n)         bring bytes that are no node (a value, a word of the page table);
//                            returns where they will appear, aligned to 8
//   arrived(warmth)          awaitable: all that was wanted is there; at once if nothing was
//   confirm(ref)             awaitable Confirmed: whether the buffer was still the one that is
//                            meant after all bytes of it had come, and the guard held so long
//   again()                  awaitable: let others run, then go on
//   kInPlace                 images are the memory itself, so that what was not wanted can be
//                            looked at too; wants are then mere advice, and walks ask for less
// One whose images are copies gives too (RemoteAccess):
//   entered()                awaitable: the walk's guard holds from here on; false: there is none
//   believed()               awaitable bool: what was confirmed may be answered, for the host was
//                            heard of not long ago; false: the guard was lost
//   map_header(offset)       bring the head of the map's header, kMapHeaderHead bytes, with the
//                            read version in its place, wherever the header says that this lies
//   table_page(named)        what the directory's entry at this offset says, if learned; else 0
//   learn_table_page(named, page)  it says this, for as long as the map lives
//   failed()                 whether something that was wanted could not be brought
//   reads_in_order()         what was wanted later is read later
// Bytes stay until the walk wants the next node (image) or the next bytes (bytes).
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>

#include "kinds/map/format/map_header.hpp"
#include "kinds/map/node/search_key.hpp"

namespace espalier::tree {

/// How likely it is that bytes are near: decides whether waiting for them is worthwhile.
enum class Warmth : std::uint8_t {
  hot,   ///< the root: in a near cache
  warm,  ///< interior nodes: in a near cache unless the tree is large
  cold,  ///< leaves and values
};

/// What a walk learns when it asks again whether what it read may be believed.
enum class Confirmed : std::uint8_t {
  yes,
  changed,  ///< the buffer is another one by now: start again from the root
  lost,     ///< epoch, lease or connection are gone, and the read version with them
};

/// The head of a map's header that a walk reads: identity, versions, and the read version.
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

/// An access whose images are copies of bytes that lie elsewhere.
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

/// One that can bring a node by a key instead of a reference, from whoever knows one:
///   reads_by_key()           whether it does so
///   node_by_key(key)         bring the beginning of a node for this key; returns its image
///   came_to(ref)             the node that has come says that it is this one
///   node_is_whole()          all of it came by that
///   node_has_come(bytes)     at least its first ones did
template <class A>
concept KeyedAccess = RemoteAccess<A> && requires(A access, wire::Ref ref, SearchKey key) {
  { access.reads_by_key() } -> std::same_as<bool>;
  { access.node_by_key(key) } -> std::same_as<const std::byte*>;
  access.came_to(ref);
  { access.node_is_whole() } -> std::same_as<bool>;
  { access.node_has_come(std::uint32_t{}) } -> std::same_as<bool>;
};

/// One that wants to know from which leaves answers were:
///   answered(lid)            one was given from this leaf
template <class A>
concept SamplingAccess = RemoteAccess<A> && requires(A access, wire::Lid leaf) {
  access.answered(leaf);
};

/// Always confirmed, at once.
struct Certain {
  [[nodiscard]] bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  [[nodiscard]] Confirmed await_resume() const noexcept { return Confirmed::yes; }
};

}  // namespace espalier::tree
