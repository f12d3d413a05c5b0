// SPDX-License-Identifier: Apache-2.0
#include "capi/c_call.hpp"

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace espalier::client::c {
namespace {

struct LastError {
  espalier_code code = ESPALIER_OK;
  std::uint32_t detail = 0;
  char message[512] = "no call of this thread has failed";
};

thread_local LastError last_error;

// Structs of options have some tens of bytes: whatever says more was never set.
constexpr std::uint32_t kStructBytesMax = 4096;

std::uint32_t struct_bytes_of(const void* pointer) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, pointer, sizeof bytes);
  return bytes;
}

espalier_code keep(espalier_code code, std::uint32_t detail, const char* call,
                   const char* text) noexcept {
  last_error.code = code;
  last_error.detail = detail;
  std::snprintf(last_error.message, sizeof last_error.message, "%s: %s", call, text);
  return code;
}

}  // namespace

Check sized(const void* pointer, const char* argument) {
  if (pointer == nullptr) return {};
  const std::uint32_t bytes = struct_bytes_of(pointer);
  const bool possible = bytes >= sizeof bytes && bytes <= kStructBytesMax;
  return {argument, possible ? nullptr : "has no struct_bytes: begin with its *_INIT"};
}

Check sized(const void* pointer, std::size_t own_bytes, const char* argument) {
  const Check possible = sized(pointer, argument);
  if (pointer == nullptr || possible.complaint != nullptr) return possible;
  const auto* const bytes = static_cast<const unsigned char*>(pointer);
  for (std::size_t at = own_bytes; at < struct_bytes_of(pointer); ++at) {
    if (bytes[at] != 0) return {argument, "asks for what this version lacks", Code::unsupported};
  }
  return {};
}

espalier_code report(const char* call, const Check& check) noexcept {
  char text[256];
  std::snprintf(text, sizeof text, "%s %s", check.argument, check.complaint);
  return keep(static_cast<espalier_code>(check.code), 0, call, text);
}

espalier_code report(const char* call, const Error& error) noexcept {
  const auto code = static_cast<espalier_code>(error.code);
  try {
    return keep(code, error.detail, call, message(error).c_str());
  } catch (...) {
    return keep(code, error.detail, call, name(error.code).data());  // no memory for a sentence
  }
}

void explain(const char* call, const char* words) noexcept {
  keep(last_error.code, last_error.detail, call, words);
}

espalier_code report_exception(const char* call) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return keep(ESPALIER_OUT_OF_MEMORY, 0, call, "The process has no memory left for this call.");
  } catch (const std::system_error& error) {
    return keep(ESPALIER_SYSTEM, static_cast<std::uint32_t>(error.code().value()), call,
                error.what());
  } catch (const std::exception& error) {
    return keep(ESPALIER_INTERNAL, 0, call, error.what());
  } catch (...) {
    return keep(ESPALIER_INTERNAL, 0, call, "An exception of no known type.");
  }
}

}  // namespace espalier::client::c

using espalier::client::c::last_error;

espalier_code espalier_error_code(void) { return last_error.code; }

uint32_t espalier_error_detail(void) { return last_error.detail; }

const char* espalier_error_message(void) { return last_error.message; }

const char* espalier_code_name(espalier_code code) {
  static_assert(ESPALIER_CONNECTION_LOST == static_cast<int>(espalier::Code::connection_lost));
  static_assert(ESPALIER_CONTENDED == static_cast<int>(espalier::Code::contended));
  static_assert(ESPALIER_DROPPED == static_cast<int>(espalier::Code::dropped));
  static_assert(ESPALIER_BUSY == static_cast<int>(espalier::Code::busy));
  static_assert(ESPALIER_WRONG_KIND == static_cast<int>(espalier::Code::wrong_kind));
  static_assert(ESPALIER_SEALED == static_cast<int>(espalier::Code::sealed));
  static_assert(ESPALIER_EXHAUSTED == static_cast<int>(espalier::Code::exhausted));
  static_assert(ESPALIER_WRONG_SHARD == static_cast<int>(espalier::Code::wrong_shard));
  static_assert(ESPALIER_CROSSES_SHARDS == static_cast<int>(espalier::Code::crosses_shards));
  static_assert(ESPALIER_NOT_PERMITTED == static_cast<int>(espalier::Code::not_permitted));
  static_assert(ESPALIER_FORKED == static_cast<int>(espalier::Code::forked));
  static_assert(ESPALIER_OUTDATED == static_cast<int>(espalier::Code::outdated));
  static_assert(ESPALIER_NO_CHAIN == static_cast<int>(espalier::Code::no_chain));
  if (code == ESPALIER_OK) return "ok";
  if (code == ESPALIER_INTERNAL) return "internal";
  if (code < 0 || code > ESPALIER_INTERNAL) return "unknown";
  return espalier::name(static_cast<espalier::Code>(code)).data();
}

#define ESPALIER_TEXT_OF(number) #number
#define ESPALIER_VERSION_TEXT(major, minor, patch) \
  ESPALIER_TEXT_OF(major) "." ESPALIER_TEXT_OF(minor) "." ESPALIER_TEXT_OF(patch)

uint32_t espalier_version(void) { return ESPALIER_VERSION_NUMBER; }

const char* espalier_version_text(void) {
  return ESPALIER_VERSION_TEXT(ESPALIER_VERSION_MAJOR, ESPALIER_VERSION_MINOR,
                               ESPALIER_VERSION_PATCH);
}
