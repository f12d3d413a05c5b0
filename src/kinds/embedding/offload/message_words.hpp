// SPDX-License-Identifier: Apache-2.0
// Words of 4 bytes in messages.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace espalier::offload {

/// Words of a message, where they lie, or a copy of them if that is no place for words.
template <class T>
std::span<const T> words_of_message(std::string_view bytes, std::vector<T>& copy) {
  if (bytes.empty()) return {};
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0) {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  copy.resize(bytes.size() / sizeof(T));
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

}  // namespace espalier::offload
