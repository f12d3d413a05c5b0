// SPDX-License-Identifier: Apache-2.0
// Offloads of a program's own: calls that run beside the memory, and kinds of objects, which a
// program gives to its node (node.hpp), or to a store of its own process, and its clients ask for
// [RAMBDA §III-E]. What both sides know of a call is its row, which a header of theirs has:
//
//   constexpr espalier::OffloadRow kSum{.number = 128, .name = "echo_sum",
//                                       .right = espalier::OffloadRight::read,
//                                       .request_bytes_max = 8192, .reply_bytes_max = 8};
//
//   espalier::OffloadStep sum(espalier::OffloadContext& call);           // the program's
//   offloads.calls.push_back({kSum, sum});
//   auto reply = store.call(kSum, request);                              // a client's
//
// docs/offloads.md is the guide. A call is carried out alike in a store of this process, on a node,
// whichever way the client comes, and for the clients of a device, which hands it to its host.
//
// A handler may be called by any thread, for several requests at once: what they share it must
// guard. It must not wait: not for a lock that is held for long, nor for input, a network, a file,
// or another request. What takes long is cut into steps, each of which ends with again(), so that
// others have their turns. A handler that throws std::bad_alloc answers out_of_memory; one that
// throws anything else answers unsupported (detail: the call's number), with words that say so, and
// Offloads::threw is told. What a handler has done before it throws stays done.
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

/// From here on, up to 255, the numbers are of calls that programs define themselves.
inline constexpr std::uint8_t kOwnCalls = 128;

/// Longest request and longest reply of a program's own call.
inline constexpr std::uint32_t kOwnRequestBytesMax = std::uint32_t{16} << 20;
inline constexpr std::uint32_t kOwnReplyBytesMax = std::uint32_t{256} << 10;
/// Longest form of an object.
inline constexpr std::uint32_t kOwnFormBytesMax = std::uint32_t{64} << 10;

/// What a client must be allowed to do to make a call; docs/security.md has the roles.
enum class OffloadRight : std::uint8_t { read = 1, write = 2, admin = 3 };

/// Which thread of a node calls the handler. In a store of this process it is always the caller's.
enum class RunsOn : std::uint8_t {
  /// A helper: each step may take up to some 200 µs, and writes to the store's objects may wait
  /// for other writers there. Cost: some µs for the way there and back.
  helper = 0,
  /// The worker that took the request: the fastest way, but other clients wait meanwhile, so a step
  /// may take some µs, and may only read the store's objects.
  worker = 1,
};

/// What a device, which has no such objects, does with a call.
enum class OffloadAtDevice : std::uint8_t {
  relayed = 0,  ///< its host carries it out
  refused = 1,  ///< unsupported, with the host's address in words
};

/// What there is to know of a call before anybody makes it.
struct OffloadRow {
  std::uint8_t number = 0;     ///< from kOwnCalls on; of a program each another
  std::string_view name{};     ///< for people, 1 to 63 small letters, digits and underscores
  std::string_view summary{};  ///< what it does and answers, in one sentence
  /// A call with the right `read` changes nothing.
  OffloadRight right = OffloadRight::admin;
  /// Done twice it is as done once: after a lost connection the client asks once more by itself.
  bool idempotent = false;
  /// Of which kind an object is that it is asked of; `any`: it is asked of none.
  ObjectKind kind = ObjectKind::any;
  std::uint32_t request_bytes_min = 0;
  std::uint32_t request_bytes_max = 0;  ///< at most kOwnRequestBytesMax
  std::uint32_t reply_bytes_max = 0;    ///< at most kOwnReplyBytesMax
  RunsOn runs_on = RunsOn::helper;
  OffloadAtDevice at_device = OffloadAtDevice::relayed;
};

/// What there is to know of a kind of objects. Two calls of its own make and open them.
struct KindRow {
  ObjectKind number = ObjectKind::any;  ///< from kOwnKinds on; of a program each another
  std::string_view name{};              ///< as OffloadRow::name
  std::uint8_t create_number = 0;       ///< of the call that makes one, which takes an `admin`
  std::uint8_t open_number = 0;         ///< of the call that opens one, which takes `read`
  std::uint32_t form_bytes_max = 0;     ///< of what one is made of, at most kOwnFormBytesMax
  /// Of all objects of the kind together, in percent of the store's limit (memory.limit), and apart
  /// from what the store itself takes.
  std::uint32_t memory_percent = 10;
};

// --- objects of a program's own ------------------------------------------------------------------

/// Takes the statistics of an object, for `espalier stats`, `top` and metrics. Names and units are
/// of 1 to 63 small letters, digits and underscores, helps a sentence; others are left out, and
/// what is more than 256.
class ObjectSamples {
 public:
  struct Text {
    std::string_view name;
    std::string_view unit;  ///< empty: a number
    std::string_view help;
  };
  /// Only rises while the object lives.
  void counter(const Text& text, std::uint64_t value);
  /// Rises and falls.
  void gauge(const Text& text, std::uint64_t value);

 private:
  friend class program::SampleWriter;
  explicit ObjectSamples(program::SampleWriter& writer) : writer_(writer) {}
  program::SampleWriter& writer_;
};

/// An object of a program's kind, which lives under a name of the store until it is dropped and
/// nobody uses it any more. Thread: any; it guards itself.
class OwnObject {
 public:
  OwnObject() = default;
  virtual ~OwnObject() = default;
  OwnObject(const OwnObject&) = delete;
  OwnObject& operator=(const OwnObject&) = delete;

  /// How many things it keeps, for lists. Must not wait.
  [[nodiscard]] virtual std::uint64_t entries() const { return 0; }
  /// Adds its statistics. Must not wait.
  virtual void add_samples(ObjectSamples&) const {}
};

/// What an object is made of. Points into what the client sent.
struct ObjectForm {
  std::string_view name;
  std::string_view form;
  /// Memory of the kind's share, for all that the object keeps; it lives as long as the object.
  /// Throws std::bad_alloc where the share is used up. Thread: any.
  std::pmr::memory_resource* memory;
};

/// A kind, as a program defines it.
struct OwnKind {
  KindRow row;
  /// Makes an object. Others that make or open one wait meanwhile: it must be short, and must not
  /// use the store. What it throws is treated as a handler's.
  std::function<Result<std::unique_ptr<OwnObject>>(const ObjectForm&)> make;
};

// --- what a handler sees -------------------------------------------------------------------------

/// How a step ended. Only an OffloadContext makes one.
class [[nodiscard]] OffloadStep {
 private:
  friend class OffloadContext;
  friend class program::RunningCall;
  enum class How : std::uint8_t { answered, failed, again };
  explicit OffloadStep(How how) : how_(how) {}
  How how_;
};

/// One request, from its first step to its last. Thread: one at a time, each step perhaps another.
class OffloadContext {
 public:
  /// What the client sent, of a length that the row allows. It may be any bytes.
  [[nodiscard]] std::string_view request() const;
  /// The object that it is asked of. Requires: the row has a kind, whose objects are of this class.
  template <std::derived_from<OwnObject> T>
  [[nodiscard]] T& object() const {
    return static_cast<T&>(object_of_any());
  }
  /// The objects of the store that the call runs beside, in this process. Handles of them, and this
  /// store, may be used until the request has ended, and are never kept: not by the program's own
  /// objects either. Calls of the program's own are carried out there by this thread, in this step.
  /// The call has all rights there: whether its client may use an object, may_use() says. A map
  /// that is dropped gives its memory back when no request uses it any more.
  /// Cost: a lock that all requests share, at the first use in a request.
  [[nodiscard]] Store& store();
  /// The client's name, for people; of a store of this process "this process".
  [[nodiscard]] const std::string& client() const;
  /// Whether its role is for objects of this name.
  [[nodiscard]] bool may_use(std::string_view object_name) const;
  /// Whether it may do what takes this right.
  [[nodiscard]] bool may(OffloadRight right) const;

  /// What the handler keeps for this request from step to step; made when first asked for, always
  /// of the same type.
  template <std::default_initializable S>
  [[nodiscard]] S& state() {
    if (state_ == nullptr) state_ = std::make_shared<S>();
    return *static_cast<S*>(state_.get());
  }

  /// Ends the request with its reply, at most OffloadRow::reply_bytes_max; a longer one is the
  /// handler's mistake, and answered with corrupt.
  OffloadStep answer(std::string_view reply = {});
  /// Ends it with an error; `words` are for people, behind what its code says.
  OffloadStep fail(const Error& error, std::string_view words = {});
  OffloadStep fail(Code code, std::string_view words = {}) {
    return fail(Error{code, 0, 0}, words);
  }
  /// The step is to be called again, after others. A client that is gone is not answered: then it
  /// is not called any more.
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
  /// Called when the request comes, and again after again().
  std::function<OffloadStep(OffloadContext&)> step{};
};

/// All that a program gives to its node or store. Texts of rows are copied.
struct Offloads {
  std::vector<Offload> calls{};
  std::vector<OwnKind> kinds{};
  /// A handler of this call, or what makes an object, threw something but std::bad_alloc. By any
  /// thread; must not throw.
  std::function<void(std::string_view call, std::string_view what)> threw{};

  /// What is wrong with them, in one sentence; empty: nothing.
  [[nodiscard]] std::string mistake() const;
};

// --- for clients ---------------------------------------------------------------------------------

/// An object of a program's kind, wherever it lies. Copies name the same one; used while its Store
/// lives. Thread: any.
class ObjectHandle {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  /// As Store::call, of a call that is asked of an object of this kind. Errors: besides, not_found
  /// (it was dropped, or another node has come), invalid_argument (the row is of another kind).
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

/// What lies in a message byte for byte; numbers are little-endian.
template <class T>
concept PlainBytes = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

/// A value as the bytes of a message.
template <PlainBytes T>
[[nodiscard]] std::string_view plain_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Puts values, and texts with their length of 4 bytes before them, one behind another.
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

/// Takes them off again, of any bytes: what is not there reads as zeros or as an empty text, and
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
  /// Whether all that was asked for was there, and nothing is left.
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
