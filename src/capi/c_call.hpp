// SPDX-License-Identifier: Apache-2.0
// The frame of a call of the C API: it checks the arguments, does the work, and turns every error
// into a code, with a message kept for the thread. It throws nothing.
//
// The message lies in a buffer of the thread, so that reporting an error allocates nothing.
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

/// The mistake in one argument; `complaint` is null if there is none.
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

/// Checks a versioned struct behind a pointer: its size must be valid. Null is allowed.
Check sized(const void* pointer, const char* argument);
/// The same for an input struct: bytes beyond our version must be zero.
Check sized(const void* pointer, std::size_t own_bytes, const char* argument);

/// The caller's versioned struct, with defaults for fields that it lacks.
/// Requires: its size is possible.
template <class T>
T taken(const T* pointer, T defaults) {
  if (pointer != nullptr) {
    std::memcpy(&defaults, pointer, std::min<std::size_t>(pointer->struct_bytes, sizeof defaults));
  }
  return defaults;
}
/// Fills the fields of the caller's struct that both sides know, the rest with zeros.
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

/// Records an error for the thread, and returns its code.
espalier_code report(const char* call, const Error& error) noexcept;
espalier_code report(const char* call, const Check& check) noexcept;
/// The same for the exception being handled.
espalier_code report_exception(const char* call) noexcept;

/// Replaces the message of the last error.
void explain(const char* call, const char* words) noexcept;

/// Does the work of a call if its arguments are valid. `work` returns a Result of any type, after
/// storing its results where the caller wants them.
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
