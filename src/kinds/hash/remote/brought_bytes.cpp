// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/brought_bytes.hpp"

#include <algorithm>

namespace espalier::place {
namespace {

constexpr std::size_t kChunkBytes = 4096;
constexpr std::size_t kAlignment = 16;

}  // namespace

BroughtBytes::Piece& BroughtBytes::add(Part part, std::uint64_t offset, std::uint32_t bytes,
                                       std::uint32_t round) {
  const auto number = static_cast<std::uint32_t>(pieces_.size() + 1);
  pieces_.push_back({offset, bytes, number, round, part, false, false, nullptr});
  pieces_.back().at = room(bytes);
  bytes_ += bytes;
  if (part < Part::last_word) body_ = number;
  return pieces_.back();
}

// READs transfer whole words.
std::byte* BroughtBytes::room(std::size_t bytes) {
  const std::size_t needed = (bytes + kAlignment - 1) & ~(kAlignment - 1);
  for (; chunk_ < chunks_.size(); ++chunk_, used_ = 0) {
    if (chunks_[chunk_].bytes - used_ < needed) continue;
    auto* const at = reinterpret_cast<std::byte*>(chunks_[chunk_].words.get()) + used_;
    used_ += needed;
    return at;
  }
  Chunk chunk;
  chunk.bytes = std::max(needed, kChunkBytes);
  chunk.words = std::make_unique_for_overwrite<std::uint64_t[]>(chunk.bytes / 8);
  chunks_.push_back(std::move(chunk));
  used_ = needed;
  return reinterpret_cast<std::byte*>(chunks_.back().words.get());
}

const BroughtBytes::Piece* BroughtBytes::find(Part part, std::uint64_t offset) const {
  for (std::size_t i = come_; i-- > 0;) {
    const Piece& piece = pieces_[i];
    if (piece.part == part && piece.offset == offset) return &piece;
  }
  return nullptr;
}

std::size_t BroughtBytes::times_asked(Part part, std::uint64_t offset) const {
  const auto same = [&](const Piece& piece) {
    return piece.part == part && piece.offset == offset;
  };
  return static_cast<std::size_t>(std::ranges::count_if(pieces_, same));
}

// Frees the chunks of long values.
void BroughtBytes::clear() {
  pieces_.clear();
  come_ = body_ = 0;
  std::erase_if(chunks_, [](const Chunk& chunk) { return chunk.bytes > kChunkBytes; });
  chunk_ = used_ = 0;
  bytes_ = 0;
}

}  // namespace espalier::place
