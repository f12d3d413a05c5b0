// SPDX-License-Identifier: Apache-2.0
// One request on its way through the engine.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/types.hpp"
#include "offload/connection.hpp"
#include "offload/message_reader.hpp"

namespace espalier::offload {

struct Offload;
struct ServedMap;

/// What a request that takes several steps keeps between them. Made when first needed, and kept
/// with the place in flight.
struct RequestState {
  std::vector<std::byte> items;  // of a scan, as they will travel
  std::string last_key;          // delivered so far
  std::string from;              // where the walk in hand began: the last key of the one before
  std::uint64_t delivered = 0;
  std::uint64_t delivered_before = 0;  // when the walk in hand began
  std::uint64_t limit = 0;             // 0: none
  std::uint64_t read_version = 0;
  std::shared_ptr<HeldSnapshot> held;  // what it reads, once it needs more than one walk
  bool skip_last = false;              // the walk in hand begins with `from`, which was delivered
  bool more = false;                   // the walk was stopped, not finished
  bool going_on = false;               // this is not the first walk
  bool once_more = false;              // the walk in hand is to be walked again
  bool cancelled = false;              // the client wants no more of it
  std::string value;                   // to be written
  std::uint64_t wait_for = 0;
  Completion outcome{};
  Result<void> result{};
};

/// What an answer is made of comes first, in two lines that the walk asks for in time: of all that
/// many walks in flight touch, little is still near when it is needed again.
struct alignas(64) Request {
  espalier::Request walk{};  // of the walk
  Connection* connection = nullptr;
  const Offload* offload = nullptr;  // null until it has begun
  ServedMap* map = nullptr;
  /// What the request says: a copy that nobody else can change.
  wire::RequestHeader header{};
  std::uint64_t timed_since_ns = 0;  // 0: it is not timed
  MessageBuffer message;
  std::uint64_t wanted_bytes = 0;  // of its answer, for which there was no memory; 0: there was
  std::uint32_t index = 0;
  bool refused = false;  // there was no memory for its message
  std::unique_ptr<RequestState> state;

  [[nodiscard]] std::string_view key() const {
    return {text() + wire::kRequestKeyOffset, header.key_bytes};
  }
  /// What follows the key.
  [[nodiscard]] std::string_view payload() const {
    const std::uint32_t begin = wire::kRequestKeyOffset + header.key_bytes;
    return {text() + begin, header.bytes - begin};
  }
  /// The state of several steps, as new.
  RequestState& begin_state();

 private:
  [[nodiscard]] const char* text() const { return reinterpret_cast<const char*>(message.data()); }
};

/// Reads fields and texts off the front of a payload; remembers whether there was too little.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view payload) : left_(payload) {}

  template <class T>
  [[nodiscard]] T take() {
    T value{};
    const std::string_view bytes = text(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::string_view text(std::size_t bytes) {
    if (bytes > left_.size()) {
      short_ = true;
      return {};
    }
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  [[nodiscard]] std::string_view rest() const { return left_; }
  /// Whether all that was asked for was there.
  [[nodiscard]] bool good() const { return !short_; }
  /// The same, and nothing is left.
  [[nodiscard]] bool complete() const { return !short_ && left_.empty(); }

 private:
  std::string_view left_;
  bool short_ = false;
};

}  // namespace espalier::offload
