// SPDX-License-Identifier: Apache-2.0
// What a transaction that has a number comes to, on its way into the record and to whoever asks for
// the number again (store/numbered_clients.hpp).
//
// Room for the record is asked for before anything is locked, when nobody knows how long the answer
// will be. So it is guessed; one that is longer, and is to be kept, has another round with more.
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
  /// Null: it has no number, and nothing is kept.
  explicit NumberedOutcome(ClientTurn* turn) : turn_(turn) {}

  explicit operator bool() const { return turn_ != nullptr; }
  /// It reads so many keys.
  void expect(std::size_t gets) {
    room_ = gets == 0 ? 0 : std::min(kGuess + kGuessEach * gets, catalog::kClientBytesMax);
  }
  /// What it takes of the transaction's record.
  [[nodiscard]] std::size_t record_bytes() const {
    return turn_ == nullptr ? 0 : catalog::client_record_bytes(room_);
  }
  /// Takes what is answered. False: it is to have more room in the record first.
  /// Errors: std::bad_alloc.
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
  /// Writes what it comes to into its part of the transaction's record, which is zeros.
  void write(std::span<std::byte> to, std::uint64_t version) const {
    catalog::write_client_record(to, record(fact(), version), answer_);
  }
  /// It is done: `hand_over` as of ClientTurn::keep().
  template <class HandOver>
  std::uint64_t keep(const std::shared_ptr<catalog::Object>& object, std::uint64_t version,
                     const HandOver& hand_over) noexcept {
    return keep(fact(), object, version, version, hand_over);
  }

  /// What has written nothing, in a record of its own: a condition failed, or it was to read alone.
  struct Unwritten {
    const std::shared_ptr<catalog::Object>& object;
    std::uint64_t wait_for = 0;
    const std::uint32_t* failed_step = nullptr;
    const std::string& answer;
  };
  /// Returns the record's sequence; 0: none is made. Errors: those of the sink, and nothing is
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
