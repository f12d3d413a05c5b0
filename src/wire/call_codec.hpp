// SPDX-License-Identifier: Apache-2.0
// The codec of calls. Each request and each reply lists its members once, in `fields`: where they
// lie in a message, and their names for people. Visitors of the fields write a message, read one,
// compute the lengths that it may have, or describe it. docs/design/kinds.md says why.
//
//   struct Take {
//     static constexpr CallRow kCall{.id = ..., .name = "take", ...};  // lengths are worked out
//     using Reply = Taken;
//     std::uint32_t counter = 0;
//     std::uint32_t count = 0;
//     static constexpr void fields(auto& self, auto& message) {
//       message.object(self.counter, "the counter's id");
//       message.argument(self.count, "how many numbers");
//     }
//     std::optional<Fault> fault() const;  // what lengths do not show; may be left out
//   };
//
// Fields of a request: object, hint (an object that need not be there, nor be permitted), argument,
// name, key, item_key (of whatever length its map takes), snapshot, fixed, sized (as many bytes as
// a field before it says), rest; of a reply: version, read_version, flag, fixed, rest. A snapshot
// is the first in the payload, the rest the last, and what is fixed comes before what is sized.
// Ranges of bytes (std::string_view) point into the message that was read, and into what is to be
// written; the rest of a reply may be OwnBytes, and then is a copy.
//
// Thread: plain values. Nothing here allocates but description(), and OwnBytes.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wire/call_message.hpp"
#include "wire/call_row.hpp"
#include "wire/message.hpp"
#include "wire/object.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::wire {

/// What is wrong with a message of valid lengths.
struct Fault {
  std::uint32_t detail = 0;
  std::string_view words{};  ///< for people
};

/// What people call the argument of calls that make objects.
inline constexpr std::string_view kDurabilityWords = "0, or of its own: 1 none, 2 async, 3 sync";
[[nodiscard]] constexpr std::optional<Fault> fault_of_durability(std::uint32_t number) {
  if (number <= kDurabilityMax) return std::nullopt;
  return Fault{number, "no such durability"};
}

/// What is wrong with a comparison whose new value has so many bytes: an unknown kind, or a value
/// where it erases.
[[nodiscard]] constexpr std::optional<Fault> fault_of(const Comparison& comparison,
                                                      std::size_t value_bytes) {
  const bool bad = !condition_kind(comparison.kind) || comparison.reserved != 0 ||
                   comparison.erase > 1 || (comparison.erase == 1 && value_bytes != 0);
  return bad ? std::optional(Fault{comparison.kind}) : std::nullopt;
}

/// What lies in a payload byte for byte.
template <class T>
concept Fixed = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

inline constexpr std::uint32_t kNoLimit = kMessageBytesMax;

/// The rest of a reply that outlives the message. No std::string, for messages are measured at
/// compile time, and clang cannot do so with that of libstdc++ 12.
class OwnBytes {
 public:
  constexpr OwnBytes() = default;
  explicit constexpr OwnBytes(std::string_view bytes) : bytes_(bytes.begin(), bytes.end()) {}
  constexpr operator std::string_view() const { return {bytes_.data(), bytes_.size()}; }
  [[nodiscard]] constexpr std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<char> bytes_;
};

template <class M>
[[nodiscard]] std::optional<Fault> fault_of(const M& message) {
  if constexpr (requires { message.fault(); }) return message.fault();
  return std::nullopt;
}

/// A request that says no more than its header's call, or a reply that says only that it is done.
struct Nothing {
  static constexpr void fields(auto&, auto&) {}
};

// --- lengths -------------------------------------------------------------------------------------

/// Computes what lengths a message may have.
class MessageMeasure {
 public:
  constexpr void object(auto&, std::string_view) {}
  constexpr void hint(auto&) {}
  constexpr void argument(auto&, std::string_view) {}
  constexpr void name(auto& self, std::string_view label) {
    key(self, label, 1, kObjectNameBytesMax);
  }
  constexpr void key(auto&, std::string_view, std::uint32_t min, std::uint32_t max) {
    limits_.key_bytes_min = min;
    limits_.key_bytes_max = max;
  }
  constexpr void item_key(auto&, std::string_view) {}
  constexpr void snapshot(auto&) {
    if (limits_.payload_bytes_max != 0) misplaced();
    limits_.at_snapshot = true;
    limits_.payload_bytes_max += sizeof(std::uint64_t);
  }
  constexpr void version(auto&) {}
  constexpr void read_version(auto&) {}
  constexpr void flag(bool&, std::uint8_t) {}
  template <Fixed T>
  constexpr void fixed(T&, std::string_view = {}) {
    if (has_sized_ || has_rest_) misplaced();
    fixed_bytes_ += sizeof(T);
    limits_.payload_bytes_min += sizeof(T);
    limits_.payload_bytes_max += sizeof(T);
  }
  constexpr void sized(auto&, std::size_t, std::string_view) {
    if (has_rest_) misplaced();
    has_sized_ = true;
    limits_.payload_bytes_max = kMessageBytesMax;
  }
  template <class Bytes>
  constexpr void rest(Bytes&, std::string_view = {}, std::uint32_t max = kNoLimit,
                      std::uint32_t min = 0) {
    if (has_rest_) misplaced();
    has_rest_ = true;
    borrows_ = std::is_same_v<std::remove_const_t<Bytes>, std::string_view>;
    limits_.payload_bytes_min += min;
    limits_.payload_bytes_max = std::min(limits_.payload_bytes_max + max, kMessageBytesMax);
  }

  [[nodiscard]] constexpr const Limits& limits() const { return limits_; }
  [[nodiscard]] constexpr std::uint32_t fixed_bytes() const { return fixed_bytes_; }
  [[nodiscard]] constexpr bool has_sized() const { return has_sized_; }
  [[nodiscard]] constexpr bool has_rest() const { return has_rest_; }
  /// Whether what was read points into the message.
  [[nodiscard]] constexpr bool borrows() const { return borrows_; }

 private:
  // Not constexpr, so that such fields do not compile.
  static void misplaced() {}

  Limits limits_;
  std::uint32_t fixed_bytes_ = 0;
  bool has_sized_ = false;
  bool has_rest_ = false;
  bool borrows_ = false;
};

template <class M>
[[nodiscard]] consteval MessageMeasure measure_of() {
  M none{};
  MessageMeasure measure;
  M::fields(none, measure);
  return measure;
}

// --- writing -------------------------------------------------------------------------------------

/// A request as it is to be sent. The request and its ranges of bytes must live as long.
/// Cost: what is sized is copied once, into memory of the heap.
template <class R>
class RequestMessage {
 public:
  explicit RequestMessage(const R& request) {
    message_.offload = R::kCall.id;
    R::fields(request, *this);
    if constexpr (!kLimits.at_snapshot) message_.payload = {bytes_.data(), bytes_.size()};
  }
  RequestMessage(const RequestMessage&) = delete;
  RequestMessage& operator=(const RequestMessage&) = delete;

  [[nodiscard]] const CallMessage& get() const { return message_; }

  // Of fields.
  void object(std::uint32_t number, std::string_view) { message_.map = number; }
  void hint(std::uint32_t number) { message_.map = number; }
  void argument(std::uint32_t value, std::string_view) { message_.argument = value; }
  void name(std::string_view text, std::string_view) { message_.key = text; }
  void key(std::string_view text, std::string_view, std::uint32_t, std::uint32_t) {
    message_.key = text;
  }
  void item_key(std::string_view text, std::string_view) { message_.key = text; }
  void snapshot(const std::optional<std::uint64_t>& number) {
    static_assert(kFixedBytes == 0);
    message_.at_snapshot = number.has_value();
    if (number) message_.payload = {reinterpret_cast<const char*>(&*number), sizeof *number};
  }
  template <Fixed T>
  void fixed(const T& value, std::string_view) {
    if constexpr (kGrows) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      std::memcpy(bytes_.data() + filled_, &value, sizeof value);
      filled_ += sizeof value;
    }
  }
  void sized(std::string_view bytes, std::size_t, std::string_view) { bytes_.append(bytes); }
  void rest(std::string_view bytes, std::string_view, std::uint32_t = kNoLimit, std::uint32_t = 0) {
    message_.more_payload = bytes;
  }

 private:
  static constexpr Limits kLimits = measure_of<R>().limits();
  static constexpr std::uint32_t kFixedBytes = measure_of<R>().fixed_bytes();
  static constexpr bool kGrows = measure_of<R>().has_sized();

  CallMessage message_;
  std::conditional_t<kGrows, std::string, std::array<char, kFixedBytes>> bytes_;
  std::size_t filled_ = 0;
};

/// A reply as it is to be sent: what of its header counts, and its payload. The same holds of its
/// ranges.
template <class R>
class ReplyMessage {
 public:
  explicit ReplyMessage(const R& reply) { R::fields(reply, *this); }
  ReplyMessage(const ReplyMessage&) = delete;
  ReplyMessage& operator=(const ReplyMessage&) = delete;

  [[nodiscard]] const ResponseHeader& header() const { return header_; }
  [[nodiscard]] std::string_view payload() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  /// Behind it.
  [[nodiscard]] std::string_view more_payload() const { return rest_; }

  // Of fields.
  void version(std::uint64_t value) { header_.version = in_register(value); }
  void read_version(std::uint64_t value) { header_.read_version = in_register(value); }
  void flag(bool set, std::uint8_t bit) {
    if (set) header_.flags |= bit;
  }
  template <Fixed T>
  void fixed(const T& value, std::string_view = {}) {
    std::memcpy(bytes_.data() + filled_, &value, sizeof value);
    filled_ += sizeof value;
  }
  void rest(std::string_view bytes, std::string_view = {}, std::uint32_t = kNoLimit,
            std::uint32_t = 0) {
    rest_ = in_register(bytes);
  }

 private:
  ResponseHeader header_{};
  std::array<std::byte, measure_of<R>().fixed_bytes()> bytes_;
  std::size_t filled_ = 0;
  std::string_view rest_;
};

// --- reading -------------------------------------------------------------------------------------

/// What requests and replies read alike.
class FieldReader {
 public:
  explicit FieldReader(std::string_view payload) : payload_(payload) {}
  template <Fixed T>
  void fixed(T& value, std::string_view = {}) {
    value = payload_.take<T>();
  }
  void sized(std::string_view& bytes, std::size_t size, std::string_view = {}) {
    bytes = payload_.text(size);
  }
  void rest(std::string_view& bytes, std::string_view = {}, std::uint32_t max = kNoLimit,
            std::uint32_t min = 0) {
    bytes = payload_.text(payload_.rest().size());
    if (bytes.size() > max || bytes.size() < min) within_limits_ = false;
  }
  /// The same, copied.
  void rest(OwnBytes& bytes, std::string_view label = {}, std::uint32_t max = kNoLimit,
            std::uint32_t min = 0) {
    std::string_view there;
    rest(there, label, max, min);
    if (within_limits_) bytes = OwnBytes(there);
  }
  /// Whether there was neither too little nor too much.
  [[nodiscard]] bool fits() const { return within_limits_ && payload_.complete(); }

 private:
  PayloadReader payload_;
  bool within_limits_ = true;
};

/// A request as it came.
struct RequestBytes {
  std::uint32_t object = 0;
  std::uint32_t argument = 0;
  std::string_view key{};
  std::string_view payload{};
  bool at_snapshot = false;
};

class RequestReader : public FieldReader {
 public:
  explicit RequestReader(const RequestBytes& bytes) : FieldReader(bytes.payload), bytes_(bytes) {}
  void object(std::uint32_t& number, std::string_view) { number = bytes_.object; }
  void hint(std::uint32_t& number) { number = bytes_.object; }
  void argument(std::uint32_t& value, std::string_view) { value = bytes_.argument; }
  void name(std::string_view& text, std::string_view) { text = bytes_.key; }
  void key(std::string_view& text, std::string_view, std::uint32_t, std::uint32_t) {
    text = bytes_.key;
  }
  void item_key(std::string_view& text, std::string_view) { text = bytes_.key; }
  void snapshot(std::optional<std::uint64_t>& number) {
    if (!bytes_.at_snapshot) return;
    std::uint64_t value = 0;
    fixed(value);
    number = value;
  }

 private:
  const RequestBytes& bytes_;
};

class ReplyReader : public FieldReader {
 public:
  ReplyReader(const ResponseHeader& header, std::string_view payload)
      : FieldReader(payload), header_(header) {}
  template <std::unsigned_integral T>
  void version(T& value) {
    take(header_.version, value);
  }
  template <std::unsigned_integral T>
  void read_version(T& value) {
    take(header_.read_version, value);
  }
  void flag(bool& set, std::uint8_t bit) { set = (header_.flags & bit) != 0; }
  [[nodiscard]] bool fits() const { return FieldReader::fits() && !wide_; }

 private:
  template <class T>
  void take(std::uint64_t from, T& value) {
    value = static_cast<T>(from);
    if (from > std::numeric_limits<T>::max()) wide_ = true;
  }
  const ResponseHeader& header_;
  bool wide_ = false;
};

/// Of any bytes whose key has a length that the row allows. None: a payload of another length.
template <class R>
[[nodiscard]] std::optional<R> read_request(const RequestBytes& bytes) {
  // Read where it is returned: fields that were just stored by parts and are copied as wider words
  // wait for the store buffer, 15 cycles each on the way of every request.
  std::optional<R> request(std::in_place);
  RequestReader reader(bytes);
  R::fields(*request, reader);
  if (!reader.fits()) request.reset();
  return request;
}

/// Of any answer without an error. None: it is no such reply, or has a fault.
template <class R>
[[nodiscard]] std::optional<R> read_reply(const ResponseHeader& header, std::string_view payload) {
  R reply;
  ReplyReader reader(header, payload);
  R::fields(reply, reader);
  if (!reader.fits() || fault_of(reply)) return std::nullopt;
  return reply;
}

// --- describing ----------------------------------------------------------------------------------

class MessageDescriber {
 public:
  void object(auto&, std::string_view label) { add("map", label); }
  void hint(auto&) {}
  void argument(auto&, std::string_view label) { add("argument", label); }
  void name(auto& self, std::string_view label) { key(self, label, 1, kObjectNameBytesMax); }
  void key(auto&, std::string_view label, std::uint32_t min, std::uint32_t max) {
    std::string lengths(label);
    lengths.append(", ").append(std::to_string(min)).append(" to ").append(std::to_string(max));
    add("key", lengths.append(" bytes"));
  }
  void item_key(auto&, std::string_view label) { add("key", label); }
  void snapshot(auto&) { add("8 bytes, if the header says so", "a snapshot"); }
  template <class T>
  void fixed(T&, std::string_view label) {
    add(std::to_string(sizeof(T)) + " bytes", label);
  }
  void sized(auto&, std::size_t, std::string_view label) { add("then", label); }
  void rest(auto&, std::string_view label, std::uint32_t = kNoLimit, std::uint32_t = 0) {
    add("payload", label);
  }

  std::string text;

 private:
  void add(std::string_view where, std::string_view what) {
    if (!text.empty()) text += "; ";
    text.append(where).append(": ").append(what);
  }
};

/// "key: the counter's name, 1 to 255 bytes; argument: how many numbers; 4 bytes: the epoch".
template <class R>
[[nodiscard]] std::string description_of() {
  R none{};
  MessageDescriber describer;
  R::fields(none, describer);
  return describer.text.empty() ? "nothing" : describer.text;
}

/// Calls by their requests, for what is done with each.
template <class... Requests>
struct CallList {};
/// Those of several lists.
template <class... Left, class... Right>
[[nodiscard]] constexpr CallList<Left..., Right...> operator+(CallList<Left...>,
                                                              CallList<Right...>) {
  return {};
}

/// The row of a call, with the lengths that its fields have; what else its limits say stays.
template <class R>
inline constexpr CallRow kRow = [] {
  CallRow row = R::kCall;
  const Limits lengths = measure_of<R>().limits();
  row.limits.key_bytes_min = lengths.key_bytes_min;
  row.limits.key_bytes_max = lengths.key_bytes_max;
  row.limits.payload_bytes_min = lengths.payload_bytes_min;
  row.limits.payload_bytes_max = lengths.payload_bytes_max;
  row.limits.at_snapshot = lengths.at_snapshot;
  row.describe = &description_of<R>;
  return row;
}();

}  // namespace espalier::wire
