// SPDX-License-Identifier: Apache-2.0
#include "tests/support/copy_access.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::byte kPattern{0xA5};

// Copies a part of one line, each word of it whole and in the order of its addresses.
//
// A device reads memory while processors write it, and these races are intended. So race detectors
// ignore this function, and only this one. The copy is private to the walk, which must handle any
// content.
#if defined(__clang__)
__attribute__((disable_sanitizer_instrumentation))
#else
__attribute__((no_sanitize("thread"), noinline))
#endif
void copy_words(const std::byte* from, std::byte* to, std::uint64_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  std::uint64_t skipped = address % kWord;
  const std::byte* word_at = from - skipped;
  while (bytes != 0) {
    const std::uint64_t word =
        __atomic_load_n(reinterpret_cast<const std::uint64_t*>(word_at), __ATOMIC_ACQUIRE);
    const std::uint64_t part = std::min(kWord - skipped, bytes);
    for (std::uint64_t i = 0; i < part; ++i) {
      to[i] = static_cast<std::byte>(word >> (8 * (skipped + i)));
    }
    to += part;
    bytes -= part;
    word_at += kWord;
    skipped = 0;
  }
}

}  // namespace

void CopyMachine::cut(std::uint64_t from, std::byte* to, std::uint64_t bytes,
                      std::vector<Piece>& pieces) const {
  while (bytes != 0) {
    const std::uint64_t part = std::min(bytes, kLine - from % kLine);
    pieces.push_back({from, to, static_cast<std::uint32_t>(part)});
    from += part;
    to += part;
    bytes -= part;
  }
}

void CopyMachine::start(std::vector<Piece> pieces, base::ReadyQueue& queue,
                        std::coroutine_handle<> walk) {
  if (order_ == Order::random) {
    for (std::size_t i = pieces.size(); i > 1; --i) {
      std::swap(pieces[i - 1], pieces[random_.below(i)]);
    }
  } else {  // taken from the back
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.from < b.from; });
  }
  flights_.push_back({std::move(pieces), &queue, walk});
}

void CopyMachine::advance(Flight& flight) {
  // Large values would take for ever at a few lines a turn.
  const std::size_t most = std::max<std::size_t>(8, flight.pieces.size() / 4);
  for (std::uint64_t lines = random_.below(most) + 1; lines != 0 && !flight.pieces.empty();
       --lines) {
    if (between_lines) between_lines(flight.pieces.size());
    const Piece piece = flight.pieces.back();
    flight.pieces.pop_back();
    if (holds(piece.from, piece.bytes)) {
      copy_words(memory_.data() + piece.from, piece.to, piece.bytes);
    } else {
      std::memset(piece.to, 0, piece.bytes);
    }
  }
}

void CopyMachine::turn() {
  // By index: what happens between lines may not start another flight here, but reads may end.
  for (std::size_t i = 0; i < flights_.size();) {
    if (!random_.one_in(3)) advance(flights_[i]);
    if (!flights_[i].pieces.empty() || random_.one_in(3)) {
      ++i;
      continue;
    }
    flights_[i].queue->push(flights_[i].walk);
    std::swap(flights_[i], flights_.back());
    flights_.pop_back();
  }
}

bool CopyMachine::still_there(wire::Ref ref) const {
  if (!holds(ref.offset(), sizeof(wire::BufferHeader))) return false;
  const std::byte* at = memory_.data() + ref.offset();
  const auto superseded = base::load_shared<std::uint64_t>(
      at + offsetof(wire::BufferHeader, superseded), std::memory_order_acquire);
  const auto generation =
      base::load_shared<std::uint32_t>(at + offsetof(wire::BufferHeader, generation));
  return superseded != 0 && (generation & wire::kGenerationMask) == ref.generation();
}

const std::byte* CopyAccess::image(std::uint64_t offset) {
  ++machine_->nodes_;
  offset_ = offset;
  std::memset(image_.get(), std::to_integer<int>(kPattern), node_bytes_);
  return image_.get();
}

void CopyAccess::want(const std::byte* image, std::uint32_t begin, std::uint32_t bytes) {
  ESPALIER_ASSERT(image == image_.get());
  ESPALIER_ASSERT(begin <= node_bytes_ && bytes <= node_bytes_ - begin);
  if (machine_->whole_nodes) {
    begin = 0;
    bytes = node_bytes_;
  }
  machine_->cut(offset_ + begin, image_.get() + begin, bytes, wanted_);
}

const std::byte* CopyAccess::map_header(std::uint64_t offset) {
  header_ = std::make_unique<std::uint64_t[]>(tree::kMapHeaderHead / kWord + 1);
  auto* to = reinterpret_cast<std::byte*>(header_.get());
  machine_->cut(offset, to, tree::kMapHeaderHead, wanted_);
  return to;
}

const std::byte* CopyAccess::bytes(std::uint64_t offset, std::uint64_t bytes) {
  constexpr std::uint64_t kMost = std::uint64_t{32} << 20;  // twice the longest value
  const std::uint64_t most = std::min(bytes, kMost);
  bytes_ = std::make_unique<std::uint64_t[]>(most / kWord + 1);
  auto* to = reinterpret_cast<std::byte*>(bytes_.get());
  std::memset(to, std::to_integer<int>(kPattern), most);
  machine_->cut(offset, to, most, wanted_);
  return to;
}

}  // namespace espalier::test
