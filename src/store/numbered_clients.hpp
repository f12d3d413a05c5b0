// SPDX-License-Identifier: Apache-2.0
// Clients of a store that number their transactions, and what their numbers have come to: so one
// that is repeated, on another connection, after a restart, or at the next head of a chain, is done
// once and gets its first answer (docs/design/transactions.md).
//
//   begin() --> ClientTurn        nobody else runs this number; whoever asks for it waits
//                 keep(...)       done, in one step with the record that says so
//                 refuse(...)     refused: never to be done
//                 gone            it was not begun: the next one may run it
//
// A client has at most 256 numbers that it has not acknowledged. A number at or below the highest
// that it has acknowledged, and any of a client that is not known, is refused and never run.
//
// What is known has bounds, for each principal and in all: beyond them the client that was heard of
// least lately is forgotten, those that are kept over a restart of their programs after all others;
// and of answers that would be too many it is known that they were given.
//
// Locks: the table's, then that of a client. Records are handed over under them, so whoever copies
// a client sees what was recorded. Thread: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/client_record.hpp"
#include "catalog/redo_sink.hpp"
#include "espalier/error.hpp"
#include "store/store_parts.hpp"

namespace espalier::catalog {
class Object;
}

namespace espalier::store {

/// What a numbered request says of itself.
struct RequestNumber {
  std::uint64_t client = 0;
  std::uint64_t number = 0;
  std::uint64_t acknowledged = 0;  ///< the client asks for no number up to this one again
  std::uint64_t request = 0;       ///< tells what it asks for from anything else
};

/// What a number has come to, and what its answer waits for.
struct KeptAnswer {
  enum class Release : std::uint8_t { waits, released, lost };

  catalog::ClientFact fact = catalog::ClientFact::invalid;  ///< invalid: it was refused
  std::uint64_t request = 0;
  std::uint64_t version = 0;  ///< of what was done; of a condition, which step
  Error error{};              ///< of what was refused
  std::string bytes{};
  std::uint64_t sequence = 0;  ///< of its record; 0: there is none, or it was recovered
  std::uint64_t wait_for = 0;  ///< of the object's clock, if that is there still
  std::weak_ptr<catalog::Object> object{};

  /// Whether it may be given. `lost`: it never may, for the log has failed.
  [[nodiscard]] Release release(catalog::RedoSink* sink) const;
};

/// Whether an error that refuses a request says that it never can be done as it stands: who asks
/// for it again is refused likewise. Else, as where there is no memory, it may be tried again.
[[nodiscard]] constexpr bool is_refused_for_good(const Error& error) {
  return error.code != Code::out_of_memory && error.code != Code::busy &&
         error.code != Code::too_many_participants && error.code != Code::system;
}

/// Bytes of answers that are kept, of a principal or of all.
struct KeptBytes {
  std::atomic<std::size_t> bytes{0};
};

/// What is known of one client.
struct ClientNumbers {
  struct Number {
    bool runs = false;
    KeptAnswer answer{};
  };

  const std::uint64_t id;
  const std::string principal;
  const bool kept;  // its program keeps its id
  const std::shared_ptr<KeptBytes> of_principal;
  const std::shared_ptr<KeptBytes> of_all;
  std::atomic<std::uint64_t> heard{0};  // when it was heard of last, in begun requests
  std::mutex mutex{};                   // guards all below
  std::condition_variable ended{};      // a number does not run any more
  bool forgotten = false;
  std::uint32_t running = 0;
  std::uint64_t acknowledged = 0;
  std::map<std::uint64_t, Number> numbers{};

  // Of these: requires the lock.
  void acknowledge(std::uint64_t up_to) noexcept;
  void forget() noexcept;
  /// Adds to what is kept, or takes away.
  void count(std::size_t more, std::size_t less) noexcept;
};

/// The right to run a number, of nobody else meanwhile. Thread: one at a time.
class ClientTurn {
 public:
  ClientTurn() = default;
  ClientTurn(ClientTurn&& other) noexcept
      : client_(std::move(other.client_)), asked_(other.asked_) {}
  ClientTurn& operator=(ClientTurn&& other) noexcept {
    std::swap(client_, other.client_);
    std::swap(asked_, other.asked_);
    return *this;
  }
  /// Not used: another request may run the number.
  ~ClientTurn();

  /// Whether it is one, and was not used yet.
  explicit operator bool() const { return client_ != nullptr; }
  [[nodiscard]] const RequestNumber& asked() const { return asked_; }
  /// Whether an answer of so many bytes may be kept; if not, it is known that it was given.
  [[nodiscard]] bool may_keep(std::size_t bytes) const;
  /// It is done: `hand_over()` hands over the record that says so, and returns its sequence. From
  /// then on whoever asks for the number gets the answer. Returns that sequence.
  template <class HandOver>
  std::uint64_t keep(KeptAnswer&& answer, const HandOver& hand_over) noexcept {
    const std::shared_ptr<ClientNumbers> client = std::move(client_);
    const std::lock_guard lock(client->mutex);
    const std::uint64_t sequence = answer.sequence = hand_over();
    end(*client, std::move(answer));
    return sequence;
  }
  /// It was refused, and is never to be done: as long as the process lives, which is as long as a
  /// message of the number may be on its way. One that was used it leaves.
  void refuse(const Error& error) noexcept;

 private:
  friend class NumberedClients;
  ClientTurn(std::shared_ptr<ClientNumbers> client, const RequestNumber& asked)
      : client_(std::move(client)), asked_(asked) {}
  // Requires: the client's lock.
  void end(ClientNumbers& client, KeptAnswer&& answer) noexcept;

  std::shared_ptr<ClientNumbers> client_;  // null once it was used
  RequestNumber asked_;
};

class NumberedClients final : public StorePart {
 public:
  static constexpr std::size_t kClientsMax = 1024;
  static constexpr std::size_t kClientsOfPrincipalMax = 128;
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;
  static constexpr std::size_t kBytesOfPrincipalMax = std::size_t{4} << 20;
  static constexpr std::uint32_t kRuns = 1;  ///< a detail of Code::busy: it is not for want of room

  /// A new client of a principal; `kept`: a program keeps its id over its restart. Nobody can guess
  /// the id. Its record is before those of its numbers, so nothing waits for that to be durable.
  /// Cost: where clients are as many as may be, a look at each.
  /// Errors: busy (detail kRuns: all that could be forgotten have requests that run), system (no
  /// number can be drawn); those of the sink; std::bad_alloc.
  Result<std::uint64_t> make(std::string_view principal, bool kept, catalog::RedoSink* sink);
  /// Forgets one; returns the sequence of the record that says so, 0 where there is none.
  /// Errors: outdated (it is not known), busy (detail kRuns: a request of it runs); the sink's.
  Result<std::uint64_t> forget(std::uint64_t client, std::string_view principal,
                               catalog::RedoSink* sink);

  /// What becomes of a request: it has the turn, or was answered before, or its number is run by
  /// another one now, and it is to ask again.
  struct Begun {
    ClientTurn turn{};
    std::unique_ptr<KeptAnswer> answer{};
    [[nodiscard]] bool waits() const { return !turn && answer == nullptr; }
  };
  /// Errors: outdated (detail 1: the client is not known; 2: the number was acknowledged),
  /// exhausted (so many numbers are not acknowledged), already_exists (the number is that of
  /// another request); std::bad_alloc. In all of these cases nothing is done.
  Result<Begun> begin(const RequestNumber& asked, std::string_view principal);
  /// The same of a thread that waits itself until it need not ask again.
  Result<Begun> begin_waiting(const RequestNumber& asked, std::string_view principal);

  /// Applies a record of RedoType::client, of any bytes. One of a client that is not known is left
  /// out. The bounds are those of the store whose records they are.
  /// Errors: corrupt (detail: a catalog::RedoFault); std::bad_alloc.
  Result<void> apply_redo(std::string_view record);

  /// How far copy_some() has come.
  struct Place {
    std::uint64_t client = 0;
    std::uint64_t number = 0;
    bool begun = false;  // what is known of the client itself has come
  };
  using AddRecord = std::function<void(const catalog::ClientRecord&, std::string_view)>;
  /// Calls `add(record, bytes)` for what is known, from a place on, under the lock of a client: it
  /// must not wait. Returns whether there may be more. Cost: bounded, whatever there is.
  bool copy_some(Place& place, const AddRecord& add) const;

  [[nodiscard]] std::size_t size() const;
  /// Bytes of answers that are kept.
  [[nodiscard]] std::size_t bytes() const { return of_all_->bytes.load(); }

 private:
  struct Principal {
    std::shared_ptr<KeptBytes> kept = std::make_shared<KeptBytes>();
    std::size_t clients = 0;
  };

  [[nodiscard]] std::shared_ptr<ClientNumbers> find(std::uint64_t client) const;
  void apply_number(const catalog::ClientRedo& redo);
  // Of these: requires the lock.
  std::shared_ptr<ClientNumbers> add(std::uint64_t client, std::string_view principal, bool kept);
  void take_away(const ClientNumbers& client) noexcept;
  Result<std::uint64_t> forget_one(ClientNumbers& client, catalog::RedoSink* sink);
  Result<void> make_room(std::string_view principal, catalog::RedoSink* sink);
  [[nodiscard]] std::shared_ptr<ClientNumbers> least_heard(std::string_view principal) const;

  const std::shared_ptr<KeptBytes> of_all_ = std::make_shared<KeptBytes>();
  std::atomic<std::uint64_t> heard_{0};
  mutable std::mutex mutex_;  // guards all below
  std::map<std::uint64_t, std::shared_ptr<ClientNumbers>> clients_;
  std::map<std::string, Principal, std::less<>> principals_;
};

}  // namespace espalier::store
