// SPDX-License-Identifier: Apache-2.0
// How a call of the C API begins and ends: its arguments are looked at, its work is done, and
// whatever goes wrong becomes a code, with words kept for the thread. Nothing is thrown.
//
// The words lie in a buffer of the thread, so that telling an error needs no memory.
//
// Thread: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "espalier/error.hpp"
#include "espalier/espalier.h"

namespace espalier::client::c {

/// What is wrong with one argument; `complaint` is null if nothing is.
struct Check {
  const char* argument = nullptr;
  const char* complaint = nullptr;
  Code code = Code::invalid_argument;
};

template <class T>
Check given(T* pointer, const char* argument) {
  return {argument, pointer != nullptr ? nullptr : "is null"};
}
inline Check good(const espalier_bytes& bytes, const char* argument) {
  return {argument, bytes.data != nullptr || bytes.size == 0 ? nullptr : "has a size but no data"};
}
inline Check either(std::uint32_t flag, const char* argument) {
  return {argument, flag <= 1 ? nullptr : "is neither 0 nor 1"};
}
inline Check unused(std::uint32_t reserved, const char* argument) {
  return {argument, reserved == 0 ? nullptr : "is not 0", Code::unsupported};
}

/// A struct that may grow, behind a pointer: its size must be possible. Null is possible too.
Check sized(const void* pointer, const char* argument);
/// The same for a struct that is read: what lies beyond our own must be zero.
Check sized(const void* pointer, std::size_t own_bytes, const char* argument);

/// What the caller said of a struct that may grow, and the defaults of what it does not know.
/// Requires: its size is possible.
template <class T>
T taken(const T* pointer, T defaults) {
  if (pointer != nullptr) {
    std::memcpy(&defaults, pointer, std::min<std::size_t>(pointer->struct_bytes, sizeof defaults));
  }
  return defaults;
}
/// Fills as much of the caller's struct as it and we know, the rest with zeros.
/// Requires: its size is possible.
template <class T>
void fill(T* to, const T& from) {
  const std::uint32_t bytes = to->struct_bytes;
  const std::size_t known = std::min<std::size_t>(bytes, sizeof from);
  std::memset(static_cast<void*>(to), 0, bytes);
  std::memcpy(static_cast<void*>(to), &from, known);
  to->struct_bytes = bytes;
}

inline std::string_view view(const espalier_bytes& bytes) {
  return {static_cast<const char*>(bytes.data), bytes.size};
}
inline espalier_bytes bytes_of(std::string_view text) { return {text.data(), text.size()}; }

/// Keeps what went wrong, and returns its code.
espalier_code report(const char* call, const Error& error) noexcept;
espalier_code report(const char* call, const Check& check) noexcept;
/// The same of the exception that is being handled.
espalier_code report_exception(const char* call) noexcept;

/// Keeps other words for what went wrong last.
void explain(const char* call, const char* words) noexcept;

/// Does the work of a call if nothing is wrong with its arguments. `work` returns a Result of
/// anything; what it makes, it has put where the caller wants it.
template <class Work>
espalier_code run(const char* call, std::initializer_list<Check> checks, Work work) noexcept {
  for (const Check& check : checks) {
    if (check.complaint != nullptr) return report(call, check);
  }
  try {
    const auto result = work();
    return result ? ESPALIER_OK : report(call, result.error());
  } catch (...) {
    return report_exception(call);
  }
}

}  // namespace espalier::client::c
