// SPDX-License-Identifier: Apache-2.0
// The outcome of a numbered transaction, on its way into the log record and to repeats of the
// number (store/numbered_clients.hpp).
//
// Room for the record is reserved before any lock is taken, when the answer's length is not known.
// So the length is guessed; a longer answer that is to be kept takes another round with more room.
//
// Thread: that of the transaction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "catalog/client_record.hpp"
#include "catalog/object.hpp"
#include "catalog/redo_sink.hpp"
#include "espalier/error.hpp"
#include "store/numbered_clients.hpp"

namespace espalier::store {

class NumberedOutcome {
 public:
  /// Null: the transaction has no number, and nothing is kept.
  explicit NumberedOutcome(ClientTurn* turn) : turn_(turn) {}

  explicit operator bool() const { return turn_ != nullptr; }
  /// Sets how many keys the transaction reads.
  void expect(std::size_t gets) {
    room_ = gets == 0 ? 0 : std::min(kGuess + kGuessEach * gets, catalog::kClientBytesMax);
  }
  /// Its bytes in the transaction's record.
  [[nodiscard]] std::size_t record_bytes() const {
    return turn_ == nullptr ? 0 : catalog::client_record_bytes(room_);
  }
  /// Takes the answer. Returns false if the record must first have more room. Errors:
  /// std::bad_alloc.
  [[nodiscard]] bool take(const std::string& answer) {
    is_whole_ = turn_->may_keep(answer.size());
    if (!is_whole_) {
      answer_.clear();
      return true;
    }
    if (answer.size() > room_) {
      room_ = std::min(std::max(answer.size(), 2 * room_), catalog::kClientBytesMax);
      return false;
    }
    answer_ = answer;
    return true;
  }
  /// Writes the outcome into its part of the transaction's record, which is zeros.
  void write(std::span<std::byte> to, std::uint64_t version) const {
    catalog::write_client_record(to, record(fact(), version), answer_);
  }
  /// Completes the number; `hand_over` as of ClientTurn::keep().
  template <class HandOver>
  std::uint64_t keep(const std::shared_ptr<catalog::Object>& object, std::uint64_t version,
                     const HandOver& hand_over) noexcept {
    return keep(fact(), object, version, version, hand_over);
  }

  /// A transaction that wrote nothing, kept in a record of its own: a condition failed, or it only
  /// reads.
  struct Unwritten {
    const std::shared_ptr<catalog::Object>& object;
    std::uint64_t wait_for = 0;
    const std::uint32_t* failed_step = nullptr;
    const std::string& answer;
  };
  /// Returns the record's sequence; 0: none is made. Errors: those of the sink, and then nothing is
  /// kept; std::bad_alloc.
  Result<std::uint64_t> keep_unwritten(const Unwritten& one);

 private:
  static constexpr std::size_t kGuess = 64;
  static constexpr std::size_t kGuessEach = 64;

  [[nodiscard]] catalog::ClientFact fact() const {
    return is_whole_ ? catalog::ClientFact::done : catalog::ClientFact::done_alone;
  }
  [[nodiscard]] catalog::ClientRecord record(catalog::ClientFact fact, std::uint64_t version) const;
  template <class HandOver>
  std::uint64_t keep(catalog::ClientFact fact, const std::shared_ptr<catalog::Object>& object,
                     std::uint64_t version, std::uint64_t wait_for,
                     const HandOver& hand_over) noexcept {
    KeptAnswer answer;
    answer.fact = fact;
    answer.version = version;
    answer.bytes = std::move(answer_);
    answer.wait_for = wait_for;
    answer.object = object;
    return turn_->keep(std::move(answer), hand_over);
  }

  ClientTurn* const turn_;
  std::size_t room_ = 0;  // for the answer, in the record
  bool is_whole_ = true;  // the answer is kept
  std::string answer_;
};

}  // namespace espalier::store
