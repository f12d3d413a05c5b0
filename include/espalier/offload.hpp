// SPDX-License-Identifier: Apache-2.0
// Offloads: calls and kinds of objects that a program defines, and that run beside the memory, in
// its node (node.hpp) or in a store of its own process [RAMBDA §III-E]. Server and clients share
// the row of each call, in a header of the program:
//
//   constexpr espalier::OffloadRow kSum{.number = 128, .name = "echo_sum",
//                                       .right = espalier::OffloadRight::read,
//                                       .request_bytes_max = 8192, .reply_bytes_max = 8};
//
//   espalier::OffloadStep sum(espalier::OffloadContext& call);           // the server's
//   offloads.calls.push_back({kSum, sum});
//   auto reply = store.call(kSum, request);                              // a client's
//
// docs/offloads.md is the guide. A call behaves the same in a store of this process, on a node over
// any transport, and through a device, which relays it to its host.
//
// Handlers run on any thread, several requests concurrently: they guard shared state. A handler
// must not block: not on a long-held lock, nor on input, a network, a file, or another request. It
// splits long work into steps, each of which ends with again(), so that other requests get their
// turns. If a handler throws std::bad_alloc, the client gets out_of_memory; if it throws anything
// else, the client gets unsupported (detail: the call's number), with words, and the node calls
// Offloads::threw. Effects before the exception stay.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "espalier/error.hpp"
#include "espalier/kind.hpp"
#include "espalier/map.hpp"
#include "espalier/table_error.hpp"

namespace espalier {

namespace client {
class StoreImpl;
}
namespace program {
class OwnCalls;
class RunningCall;
class SampleWriter;
}  // namespace program

/// Numbers from here to 255 are for calls that programs define.
inline constexpr std::uint8_t kOwnCalls = 128;

/// Longest request and longest reply of a program's own call.
inline constexpr std::uint32_t kOwnRequestBytesMax = std::uint32_t{16} << 20;
inline constexpr std::uint32_t kOwnReplyBytesMax = std::uint32_t{256} << 10;
/// Longest form (creation argument) of an object.
inline constexpr std::uint32_t kOwnFormBytesMax = std::uint32_t{64} << 10;

/// The role that a client needs to make a call; docs/security.md has the roles.
enum class OffloadRight : std::uint8_t { read = 1, write = 2, admin = 3 };

/// The thread of a node that calls the handler. In a store of this process it is always the
/// caller's.
enum class RunsOn : std::uint8_t {
  /// A helper thread: each step may take up to some 200 µs, and writes to the store's objects may
  /// wait for other writers. Cost: some µs to hand the request over and back.
  helper = 0,
  /// The worker that received the request: lowest latency, but it delays other clients. A step may
  /// take some µs and only read the store's objects.
  worker = 1,
};

/// What a device, which has no such objects, does with a call.
enum class OffloadAtDevice : std::uint8_t {
  relayed = 0,  ///< its host carries it out
  refused = 1,  ///< unsupported, with the host's address in words
};

/// What client and server know of a call beforehand.
struct OffloadRow {
  std::uint8_t number = 0;     ///< from kOwnCalls on; unique in the program
  std::string_view name{};     ///< for people, 1 to 63 small letters, digits and underscores
  std::string_view summary{};  ///< effect and reply, in one sentence
  /// A call with the right `read` changes nothing.
  OffloadRight right = OffloadRight::admin;
  /// Repetition has no further effect: after a lost connection the client retries the call itself.
  bool idempotent = false;
  /// Kind of the target object; `any`: the call has none.
  ObjectKind kind = ObjectKind::any;
  std::uint32_t request_bytes_min = 0;
  std::uint32_t request_bytes_max = 0;  ///< at most kOwnRequestBytesMax
  std::uint32_t reply_bytes_max = 0;    ///< at most kOwnReplyBytesMax
  RunsOn runs_on = RunsOn::helper;
  OffloadAtDevice at_device = OffloadAtDevice::relayed;
};

/// What client and server know of a kind beforehand. Two calls of its own create and open its
/// objects.
struct KindRow {
  ObjectKind number = ObjectKind::any;  ///< from kOwnKinds on; unique in the program
  std::string_view name{};              ///< as OffloadRow::name
  std::uint8_t create_number = 0;       ///< of the call that creates one; needs `admin`
  std::uint8_t open_number = 0;         ///< of the call that opens one; needs `read`
  std::uint32_t form_bytes_max = 0;     ///< longest form, at most kOwnFormBytesMax
  /// Memory of all objects of the kind together, in percent of the store's limit (memory.limit), in
  /// addition to the store's own memory.
  std::uint32_t memory_percent = 10;
};

// --- objects of a program's own ------------------------------------------------------------------

/// Collects the statistics of an object, for `espalier stats`, `top` and metrics. Names and units
/// have 1 to 63 small letters, digits and underscores; help is a sentence. Invalid samples, and
/// those beyond 256, are dropped.
class ObjectSamples {
 public:
  struct Text {
    std::string_view name;
    std::string_view unit;  ///< empty: a plain number
    std::string_view help;
  };
  /// A value that only rises while the object lives.
  void counter(const Text& text, std::uint64_t value);
  /// A value that rises and falls.
  void gauge(const Text& text, std::uint64_t value);

 private:
  friend class program::SampleWriter;
  explicit ObjectSamples(program::SampleWriter& writer) : writer_(writer) {}
  program::SampleWriter& writer_;
};

/// An object of a program's kind. It lives under a name of the store until it is dropped and no
/// call uses it any more.
/// Thread: any; it guards itself.
class OwnObject {
 public:
  OwnObject() = default;
  virtual ~OwnObject() = default;
  OwnObject(const OwnObject&) = delete;
  OwnObject& operator=(const OwnObject&) = delete;

  /// Number of entries, for lists. Must not block.
  [[nodiscard]] virtual std::uint64_t entries() const { return 0; }
  /// Adds its statistics. Must not block.
  virtual void add_samples(ObjectSamples&) const {}
};

/// Arguments of the creation of an object. Points into the client's message.
struct ObjectForm {
  std::string_view name;
  std::string_view form;
  /// Allocates from the kind's share, for everything that the object keeps; lives as long as the
  /// object. Throws std::bad_alloc if the share is used up. Thread: any.
  std::pmr::memory_resource* memory;
};

/// A kind, as a program defines it.
struct OwnKind {
  KindRow row;
  /// Creates an object. Concurrent creations and openings wait for it: it must be short, and must
  /// not use the store. Exceptions are treated as a handler's.
  std::function<Result<std::unique_ptr<OwnObject>>(const ObjectForm&)> make;
};

// --- what a handler sees -------------------------------------------------------------------------

/// How a step ended. Only an OffloadContext creates one.
class [[nodiscard]] OffloadStep {
 private:
  friend class OffloadContext;
  friend class program::RunningCall;
  enum class How : std::uint8_t { answered, failed, again };
  explicit OffloadStep(How how) : how_(how) {}
  How how_;
};

/// One request, from its first step to its last.
/// Thread: one at a time; steps may run on different threads.
class OffloadContext {
 public:
  /// The client's bytes, of a length that the row allows, otherwise unchecked.
  [[nodiscard]] std::string_view request() const;
  /// The target object. Requires: the row has a kind, whose objects are of this class.
  template <std::derived_from<OwnObject> T>
  [[nodiscard]] T& object() const {
    return static_cast<T&>(object_of_any());
  }
  /// The store in whose process the call runs. The handler may use it, and handles from it, until
  /// the request ends; neither the handler nor an object may keep them. The program's own calls run
  /// inline there: on this thread, in this step. The handler has all rights there; may_use() says
  /// whether its client may use an object. A dropped map is freed when no request uses it any more.
  /// Cost: a lock shared by all requests, at the first use in a request.
  [[nodiscard]] Store& store();
  /// The client's name, for people; in a store of this process "this process".
  [[nodiscard]] const std::string& client() const;
  /// Whether the client's role covers objects of this name.
  [[nodiscard]] bool may_use(std::string_view object_name) const;
  /// Whether the client has this right.
  [[nodiscard]] bool may(OffloadRight right) const;

  /// State of the handler for this request, kept between steps; created at the first call.
  /// Requires: always the same type.
  template <std::default_initializable S>
  [[nodiscard]] S& state() {
    if (state_ == nullptr) state_ = std::make_shared<S>();
    return *static_cast<S*>(state_.get());
  }

  /// Ends the request with its reply, at most OffloadRow::reply_bytes_max; a longer one is a
  /// mistake of the handler, and the client gets corrupt.
  OffloadStep answer(std::string_view reply = {});
  /// Ends it with an error; `words` are for people, appended to the message of the code.
  OffloadStep fail(const Error& error, std::string_view words = {});
  OffloadStep fail(Code code, std::string_view words = {}) {
    return fail(Error{code, 0, 0}, words);
  }
  /// Yields: the step is called again after other requests have run. If the client has
  /// disconnected, it is not called any more.
  OffloadStep again() { return OffloadStep(OffloadStep::How::again); }

 private:
  friend class program::RunningCall;
  explicit OffloadContext(program::RunningCall& running) : running_(running) {}
  [[nodiscard]] OwnObject& object_of_any() const;

  program::RunningCall& running_;
  std::shared_ptr<void> state_;
};

/// A call, as a program defines it.
struct Offload {
  OffloadRow row;
  /// Called when the request arrives, and again after again().
  std::function<OffloadStep(OffloadContext&)> step{};
};

/// All calls and kinds that a program adds to its node or store. Texts of rows are copied.
struct Offloads {
  std::vector<Offload> calls{};
  std::vector<OwnKind> kinds{};
  /// Called when a handler of this call, or OwnKind::make, threw anything but std::bad_alloc.
  /// Called by any thread; must not throw.
  std::function<void(std::string_view call, std::string_view what)> threw{};

  /// The first mistake in them, in one sentence; empty: none.
  [[nodiscard]] std::string mistake() const;
};

// --- for clients ---------------------------------------------------------------------------------

/// An object of a program's kind, local or on a node. Copies name the same one. Requires: its Store
/// lives.
/// Thread: any.
class ObjectHandle {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  /// As Store::call, with this object as the target.
  /// Errors: besides, not_found (it was dropped, or a new node took over), invalid_argument (the
  /// row is of another kind).
  TableResult<std::string> call(const OffloadRow& row, std::string_view request = {}) const;

 private:
  friend class Store;
  ObjectHandle(client::StoreImpl* store, std::string name, ObjectKind kind, std::uint64_t node,
               std::uint32_t number)
      : store_(store), name_(std::move(name)), kind_(kind), node_(node), number_(number) {}
  client::StoreImpl* store_;
  std::string name_;
  ObjectKind kind_;
  std::uint64_t node_;
  std::uint32_t number_;
};

// --- bytes of requests and replies ---------------------------------------------------------------

/// Types that messages contain byte for byte; numbers are little-endian.
template <class T>
concept PlainBytes = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

/// A value as the bytes of a message.
template <PlainBytes T>
[[nodiscard]] std::string_view plain_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Appends values, and texts preceded by their length of 4 bytes.
class BytesWriter {
 public:
  template <PlainBytes T>
  BytesWriter& put(const T& value) {
    bytes_.append(plain_bytes(value));
    return *this;
  }
  BytesWriter& text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads them back from arbitrary bytes: missing values read as zeros or empty texts, and
/// complete() is false from then on.
class BytesReader {
 public:
  explicit BytesReader(std::string_view bytes) : left_(bytes) {}
  template <PlainBytes T>
  [[nodiscard]] T take() {
    T value{};
    const std::string_view bytes = some(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  /// Points into the message.
  [[nodiscard]] std::string_view text() { return some(take<std::uint32_t>()); }
  [[nodiscard]] std::string_view rest() const { return left_; }
  /// Whether every value read was present and no bytes are left.
  [[nodiscard]] bool complete() const { return good_ && left_.empty(); }

 private:
  [[nodiscard]] std::string_view some(std::size_t bytes) {
    if (bytes > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }

  std::string_view left_;
  bool good_ = true;
};

}  // namespace espalier
