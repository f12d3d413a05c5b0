// SPDX-License-Identifier: Apache-2.0
#include "regex/hyperscan.hpp"

#if ESPALIER_HYPERSCAN
#include <hs/hs.h>
#endif

namespace espalier::regex {

#if ESPALIER_HYPERSCAN

namespace {

// Destructors of other thread_local objects may search when the thread has none any more.
constinit thread_local bool scratch_is_gone = false;

/// Grows with the patterns that its thread searches for.
struct Scratch {
  hs_scratch_t* memory = nullptr;

  Scratch() = default;
  ~Scratch() {
    hs_free_scratch(memory);
    scratch_is_gone = true;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

thread_local Scratch scratch;

int stop_at_first(unsigned, unsigned long long, unsigned long long, unsigned, void*) { return 1; }

}  // namespace

void HyperscanPattern::Free::operator()(hs_database* database) const { hs_free_database(database); }

std::optional<HyperscanPattern> HyperscanPattern::compile(const std::string& pattern) {
  static const bool runs_here = hs_valid_platform() == HS_SUCCESS;
  if (!runs_here) return std::nullopt;
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  const hs_error_t compiled =
      hs_compile(pattern.c_str(), HS_FLAG_SINGLEMATCH, HS_MODE_BLOCK, nullptr, &database, &error);
  if (compiled != HS_SUCCESS) {
    hs_free_compile_error(error);
    return std::nullopt;
  }
  HyperscanPattern result(database);
  std::size_t bytes = 0;
  if (hs_database_size(database, &bytes) != HS_SUCCESS || bytes > kBytesMax) return std::nullopt;
  return result;
}

bool HyperscanPattern::prepare() const {
  return !scratch_is_gone &&
         hs_alloc_scratch(database_.get(), &scratch.memory) == HS_SUCCESS;
}

std::optional<bool> HyperscanPattern::search(std::string_view text) const {
  const hs_error_t result =
      hs_scan(database_.get(), text.data(), static_cast<unsigned>(text.size()), 0, scratch.memory,
              stop_at_first, nullptr);
  if (result == HS_SCAN_TERMINATED) return true;
  if (result == HS_SUCCESS) return false;
  return std::nullopt;
}

#else

void HyperscanPattern::Free::operator()(hs_database*) const {}
std::optional<HyperscanPattern> HyperscanPattern::compile(const std::string&) {
  return std::nullopt;
}
bool HyperscanPattern::prepare() const { return false; }
std::optional<bool> HyperscanPattern::search(std::string_view) const { return std::nullopt; }

#endif

}  // namespace espalier::regex
