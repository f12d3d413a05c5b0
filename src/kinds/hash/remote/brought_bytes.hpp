// SPDX-License-Identifier: Apache-2.0
// What READs have brought for one get of a hash map, piece by piece, until the get is answered or
// begins again: each piece with what it is of and when it was asked for.
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
  /// What a piece is of. One thing may come several times: later pieces count.
  enum class Part : std::uint8_t {
    line,             // a partition's: which directory it has
    entries,          // of a directory: all, or one
    directory_proof,  // a directory's header, behind its entries
    bucket,           // of a bin, as it was first
    bucket_again,     // and as it was after that
    record,           // or version link
    record_proof,     // its header, behind all of it
    pair_head,        // of a long pair its header, which tells whose it is
    pair,             // a long one
    pair_proof,       // the header of its buffer, behind all of it
    last_word,        // a bin's header, behind all else
    last_line,        // a partition's line, behind all else
  };
  struct Piece {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint32_t number = 0;  // in the order in which they were asked for
    std::uint32_t round = 0;   // of READs that were posted together
    Part part = Part::line;
    bool ahead = false;  // asked for before it was known whether anything names it
    bool kept = false;   // not asked for: it is as it was when it was read once
    std::byte* at = nullptr;
  };

  /// Room for a piece; there until clear(). Errors: std::bad_alloc.
  Piece& add(Part part, std::uint64_t offset, std::uint32_t bytes, std::uint32_t round);
  /// All that was asked for has come.
  void arrive() { come_ = pieces_.size(); }
  [[nodiscard]] bool any_awaited() const { return come_ != pieces_.size(); }
  /// The last such piece that has come; null: none has.
  [[nodiscard]] const Piece* find(Part part, std::uint64_t offset) const;
  /// Whether such a piece was asked for, come or not.
  [[nodiscard]] bool is_asked(Part part, std::uint64_t offset) const {
    return times_asked(part, offset) != 0;
  }
  [[nodiscard]] std::size_t times_asked(Part part, std::uint64_t offset) const;
  /// Number and round of the last piece that stands before what is behind all else; 0: none.
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
