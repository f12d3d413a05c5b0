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

/// The words of a message, in place, or copied if they are not aligned.
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
