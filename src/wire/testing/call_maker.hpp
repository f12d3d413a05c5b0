// SPDX-License-Identifier: Apache-2.0
// Makes a request of any call from a fuzzer's bytes, such as a client could send: its lengths are
// right, and what it says is anything. So a fuzzer gets behind the checks of lengths.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "wire/call_codec.hpp"

namespace espalier::wire {

/// A request with bytes of its own.
struct MadeCall {
  OffloadId id = OffloadId::invalid;
  bool at_snapshot = false;
  std::uint32_t object = 0;
  std::uint32_t argument = 0;
  std::string key;
  std::string payload;
};

/// Of objects that may be there.
struct ObjectsThere {
  std::initializer_list<std::string_view> names;
  std::span<const std::uint32_t> ids;
};

/// Fills the fields of a request. Numbers and names are mostly such as there are.
class FieldMaker {
 public:
  FieldMaker(base::FuzzInput& input, const ObjectsThere& there) : input_(input), there_(there) {}

  void object(std::uint32_t& number, std::string_view) { number = id(); }
  void hint(std::uint32_t& number) { number = id(); }
  void argument(std::uint32_t& value, std::string_view) {
    value = input_.odd_number<std::uint32_t>();
  }
  void name(std::string_view& text, std::string_view) {
    const std::size_t which = input_.below(there_.names.size() + 1);
    text = which < there_.names.size() ? *(there_.names.begin() + which)
                                       : keep(1, kObjectNameBytesMax);
  }
  void key(std::string_view& text, std::string_view, std::uint32_t min, std::uint32_t max) {
    text = keep(min, max);
  }
  void item_key(std::string_view& text, std::string_view) { text = keep(0, 64); }
  void snapshot(std::optional<std::uint64_t>& number) {
    if (input_.byte() % 2 != 0) number = input_.byte() % 4;
  }
  template <Fixed T>
  void fixed(T& value, std::string_view) {
    std::array<std::uint8_t, sizeof(T)> bytes;
    for (std::uint8_t& byte : bytes) byte = input_.byte();
    std::memcpy(&value, bytes.data(), sizeof value);
  }
  // What says how long it is may say anything; the reader is to see that.
  void sized(std::string_view& bytes, std::size_t size, std::string_view) {
    bytes = keep(0, static_cast<std::uint32_t>(std::min<std::size_t>(size, 64)));
  }
  void rest(std::string_view& bytes, std::string_view, std::uint32_t max = kNoLimit,
            std::uint32_t min = 0) {
    bytes = keep(min, max);
  }

 private:
  static constexpr std::uint32_t kMost = 256;
  static constexpr std::uint8_t kAnyId = 0xF0;

  // Ids are never used again, so those of a store that has served many inputs are beyond a byte.
  std::uint32_t id() {
    const std::uint8_t drawn = input_.byte();
    const std::uint32_t number = drawn % 16u;
    if (drawn >= kAnyId || there_.ids.empty() || std::ranges::count(there_.ids, number) != 0) {
      return number;
    }
    return there_.ids[number % there_.ids.size()];
  }

  std::string_view keep(std::uint32_t min, std::uint32_t max) {
    const std::uint32_t room = std::min(max, std::max(min, kMost)) - min;
    std::string& text = texts_.emplace_back(min + (room == 0 ? 0 : input_.byte() % (room + 1)), 0);
    for (char& c : text) c = static_cast<char>(input_.byte());
    return text;
  }

  base::FuzzInput& input_;
  const ObjectsThere there_;
  std::deque<std::string> texts_;
};

template <class Request>
[[nodiscard]] MadeCall make_call(base::FuzzInput& input, const ObjectsThere& there) {
  FieldMaker maker(input, there);
  Request request;
  Request::fields(request, maker);
  const RequestMessage<Request> written(request);
  const CallMessage& message = written.get();
  std::string payload(message.payload);
  payload += message.more_payload;
  return {message.offload,  message.at_snapshot,      message.map,
          message.argument, std::string(message.key), std::move(payload)};
}

/// One of them, by its place in the list.
template <class... Requests>
[[nodiscard]] MadeCall make_one(CallList<Requests...>, std::size_t which, base::FuzzInput& input,
                                const ObjectsThere& there) {
  MadeCall made;
  std::size_t place = 0;
  static_cast<void>(
      ((place++ == which % sizeof...(Requests) ? (made = make_call<Requests>(input, there), true)
                                               : false) ||
       ...));
  return made;
}

}  // namespace espalier::wire
