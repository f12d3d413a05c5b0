// SPDX-License-Identifier: Apache-2.0
// The bytes that READs brought for one get of a hash map, in pieces, until the get is answered or
// restarts: each piece with its type and the order of its request.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace espalier::place {

class BroughtBytes {
 public:
  /// The type of a piece. The same bytes may be read several times: later pieces count.
  enum class Part : std::uint8_t {
    line,             // a partition's: which directory it has
    entries,          // of a directory: all, or one
    directory_proof,  // a directory's header, behind its entries
    bucket,           // of a bin, as it was first
    bucket_again,     // and as it was read again
    record,           // or version link
    record_proof,     // its header, behind all of it
    pair_head,        // the header of a long pair, with its key's hash
    pair,             // a long one
    pair_proof,       // the header of its buffer, behind all of it
    last_word,        // a bin's header, behind all else
    last_line,        // a partition's line, behind all else
  };
  struct Piece {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint32_t number = 0;  // in the order of requests
    std::uint32_t round = 0;   // of READs that were posted together
    Part part = Part::line;
    bool ahead = false;  // requested before it was known whether anything names it
    bool kept = false;   // not requested: a copy from the cache
    std::byte* at = nullptr;
  };

  /// Adds a piece; valid until clear(). Errors: std::bad_alloc.
  Piece& add(Part part, std::uint64_t offset, std::uint32_t bytes, std::uint32_t round);
  /// All requested pieces have arrived.
  void arrive() { come_ = pieces_.size(); }
  [[nodiscard]] bool any_awaited() const { return come_ != pieces_.size(); }
  /// The last such piece that has arrived; null: none.
  [[nodiscard]] const Piece* find(Part part, std::uint64_t offset) const;
  /// Whether such a piece was requested, arrived or not.
  [[nodiscard]] bool is_asked(Part part, std::uint64_t offset) const {
    return times_asked(part, offset) != 0;
  }
  [[nodiscard]] std::size_t times_asked(Part part, std::uint64_t offset) const;
  /// The last piece before those that are read last (last_word, last_line); null: none.
  [[nodiscard]] const Piece* last_of_body() const {
    return body_ == 0 ? nullptr : &pieces_[body_ - 1];
  }
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  [[nodiscard]] std::size_t come() const { return come_; }
  /// Of all pieces.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  void clear();

 private:
  struct Chunk {
    std::unique_ptr<std::uint64_t[]> words;
    std::size_t bytes = 0;
  };
  [[nodiscard]] std::byte* room(std::size_t bytes);

  std::vector<Piece> pieces_;
  std::size_t come_ = 0;  // of them
  std::size_t body_ = 0;  // up to this one, of the parts before last_word
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // that the next piece goes into, from this byte on
  std::size_t used_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace espalier::place
