// SPDX-License-Identifier: Apache-2.0
// Exactly-once execution of numbered transactions: keeps what each client's numbers came to. A
// repeated number (on another connection, after a restart, or at the next head of a chain) gets its
// first answer and is not run again (docs/design/transactions.md).
//
//   begin() --> ClientTurn        the exclusive right to run this number; repeats of it wait
//                 keep(...)       done, in one step with the record that says so
//                 refuse(...)     refused for good
//                 destroyed       without an outcome: the next request may run the number
//
// A client has at most 256 unacknowledged numbers. A number that the client has acknowledged, and
// any number of an unknown client, is refused and never run.
//
// Memory is bounded for each principal and in all. Beyond a principal's bound of clients its least
// recently active client is evicted; beyond the bound in all, that of the principal with the most
// clients. Clients that keep their ids over restarts of their programs are evicted last. Of an
// answer beyond the bound of bytes only the fact that it was given is kept.
//
// Locks: the table's, then a client's. Records are handed over under these locks, so a copy of a
// client contains what was recorded. Thread: any.
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

/// The identity of a numbered request.
struct RequestNumber {
  std::uint64_t client = 0;
  std::uint64_t number = 0;
  std::uint64_t acknowledged = 0;  ///< the client repeats no number up to this one
  std::uint64_t request = 0;       ///< checksum of the request
};

/// The outcome of a number, and what must be released before it is sent.
struct KeptAnswer {
  enum class Release : std::uint8_t { waits, released, lost };

  catalog::ClientFact fact = catalog::ClientFact::invalid;  ///< invalid: it was refused
  std::uint64_t request = 0;
  std::uint64_t version = 0;  ///< of the writes; of a failed condition, its step
  Error error{};              ///< of a refusal
  std::string bytes{};
  std::uint64_t sequence = 0;  ///< of its record; 0: there is none, or it was recovered
  std::uint64_t wait_for = 0;  ///< version of the object's clock, if the object still exists
  std::weak_ptr<catalog::Object> object{};

  /// Whether the answer may be sent. `lost`: it never may, for the log has failed.
  [[nodiscard]] Release release(catalog::RedoSink* sink) const;
};

/// Whether an error refuses a request for good: then repeats of the number get the same refusal.
/// Other errors, such as out_of_memory, let the number be run again.
[[nodiscard]] constexpr bool is_refused_for_good(const Error& error) {
  return error.code != Code::out_of_memory && error.code != Code::busy &&
         error.code != Code::too_many_participants && error.code != Code::system;
}

/// Bytes of kept answers, of a principal or of all.
struct KeptBytes {
  std::atomic<std::size_t> bytes{0};
};

/// The state of one client.
struct ClientNumbers {
  struct Number {
    bool runs = false;
    KeptAnswer answer{};
  };

  const std::uint64_t id;
  const std::string principal;
  const bool kept;  // its program keeps the id over restarts
  const std::shared_ptr<KeptBytes> of_principal;
  const std::shared_ptr<KeptBytes> of_all;
  std::atomic<std::uint64_t> heard{0};  // its last request, as a count of begun requests
  std::mutex mutex{};                   // guards all below
  std::condition_variable ended{};      // signalled when a number stops running
  bool forgotten = false;
  std::uint32_t running = 0;
  std::uint64_t acknowledged = 0;
  std::map<std::uint64_t, Number> numbers{};

  // These require the lock.
  void acknowledge(std::uint64_t up_to) noexcept;
  void forget() noexcept;
  /// Adds to the bytes kept, and subtracts.
  void count(std::size_t more, std::size_t less) noexcept;
};

/// The exclusive right to run a number. Thread: one at a time.
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
  /// If unused, releases the number: another request may run it.
  ~ClientTurn();

  /// Whether it holds a number and has not been used.
  explicit operator bool() const { return client_ != nullptr; }
  [[nodiscard]] const RequestNumber& asked() const { return asked_; }
  /// Whether an answer of so many bytes may be kept; if not, only the fact that it was given is.
  [[nodiscard]] bool may_keep(std::size_t bytes) const;
  /// Completes the number: `hand_over()` hands over the record that says so, and returns its
  /// sequence. From then on repeats get the answer. Returns that sequence.
  template <class HandOver>
  std::uint64_t keep(KeptAnswer&& answer, const HandOver& hand_over) noexcept {
    const std::shared_ptr<ClientNumbers> client = std::move(client_);
    const std::lock_guard lock(client->mutex);
    const std::uint64_t sequence = answer.sequence = hand_over();
    end(*client, std::move(answer));
    return sequence;
  }
  /// Refuses the number for good. That is kept in memory only, for no message of the number
  /// outlives the process. Does nothing if the turn was used.
  void refuse(const Error& error) noexcept;

 private:
  friend class NumberedClients;
  ClientTurn(std::shared_ptr<ClientNumbers> client, const RequestNumber& asked)
      : client_(std::move(client)), asked_(asked) {}
  // Requires: the client's lock.
  void end(ClientNumbers& client, KeptAnswer&& answer) noexcept;

  std::shared_ptr<ClientNumbers> client_;  // null once used
  RequestNumber asked_;
};

class NumberedClients final : public StorePart {
 public:
  static constexpr std::size_t kClientsMax = 1024;
  static constexpr std::size_t kClientsOfPrincipalMax = 128;
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;
  static constexpr std::size_t kBytesOfPrincipalMax = std::size_t{4} << 20;
  static constexpr std::uint32_t kRuns = 1;  ///< detail of Code::busy: not for want of room

  /// Makes a client of a principal, with an unpredictable id. `kept`: the program keeps the id over
  /// restarts. Nothing waits for the client's record to be durable, since the records of its
  /// numbers follow it. Cost: at the bounds, a scan of all clients.
  /// Errors: busy (detail kRuns: all that could be evicted have requests that run), system (no
  /// random number); those of the sink; std::bad_alloc.
  Result<std::uint64_t> make(std::string_view principal, bool kept, catalog::RedoSink* sink);
  /// Forgets a client; returns the sequence of the record that says so, 0 without a sink. Errors:
  /// outdated (unknown client), busy (detail kRuns: a request of it runs); the sink's.
  Result<std::uint64_t> forget(std::uint64_t client, std::string_view principal,
                               catalog::RedoSink* sink);

  /// The outcome of begin(): the request has the turn, or has its first answer, or must ask again
  /// because another request runs the number.
  struct Begun {
    ClientTurn turn{};
    std::unique_ptr<KeptAnswer> answer{};
    [[nodiscard]] bool waits() const { return !turn && answer == nullptr; }
  };
  /// Errors: outdated (detail 1: unknown client; 2: the number was acknowledged), exhausted (too
  /// many numbers are unacknowledged), already_exists (the number belongs to another request);
  /// std::bad_alloc. An error changes nothing.
  Result<Begun> begin(const RequestNumber& asked, std::string_view principal);
  /// The same, but blocks the thread while another request runs the number.
  Result<Begun> begin_waiting(const RequestNumber& asked, std::string_view principal);

  /// Applies a record of RedoType::client, which may be any bytes. Ignores a record of an unknown
  /// client. Applies no bounds: the store that wrote the records did.
  /// Errors: corrupt (detail: a catalog::RedoFault); std::bad_alloc.
  Result<void> apply_redo(std::string_view record);

  /// Progress of copy_some().
  struct Place {
    std::uint64_t client = 0;
    std::uint64_t number = 0;
    bool begun = false;  // the client's own record was copied
  };
  using AddRecord = std::function<void(const catalog::ClientRecord&, std::string_view)>;
  /// Copies a bounded part of the state from `place` on: calls `add(record, bytes)` under a
  /// client's lock, so `add` must not wait. Returns whether there may be more.
  bool copy_some(Place& place, const AddRecord& add) const;

  [[nodiscard]] std::size_t size() const;
  /// Bytes of kept answers.
  [[nodiscard]] std::size_t bytes() const { return of_all_->bytes.load(); }

 private:
  struct Principal {
    std::shared_ptr<KeptBytes> kept = std::make_shared<KeptBytes>();
    std::size_t clients = 0;
  };

  [[nodiscard]] std::shared_ptr<ClientNumbers> find(std::uint64_t client) const;
  void apply_number(const catalog::ClientRedo& redo);
  // These require the lock.
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
