// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/curl_library.hpp"

#include <mutex>

#include "base/loaded_library.hpp"
#include "base/until_fork.hpp"
#include "crypto/crypto_library.hpp"

namespace espalier::chain {
namespace {

/// Threads of a process initialise it one at a time: older versions require that.
class LoadedCurl {
 public:
  const CurlFunctions* get() {
    const std::lock_guard lock(mutex_);
    if (!is_loaded_) load();
    return functions_ ? &*functions_ : nullptr;
  }

 private:
  void load() {
    is_loaded_ = true;
    // Before libcurl initialises OpenSSL, which would then clean up at exit.
    static_cast<void>(crypto::crypto_functions());
    functions_ = load_curl(kCurlLibrary);
    if (!functions_) return;
    if (functions_->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) functions_.reset();
  }

  std::mutex mutex_;
  bool is_loaded_ = false;
  std::optional<CurlFunctions> functions_;
};

}  // namespace

std::optional<CurlFunctions> load_curl(const char* name) {
  const base::LoadedLibrary library(name);
  CurlFunctions made;
  const bool whole = library.find("curl_global_init", made.global_init) &&
                     library.find("curl_easy_init", made.easy_init) &&
                     library.find("curl_easy_cleanup", made.easy_cleanup) &&
                     library.find("curl_easy_setopt", made.easy_setopt) &&
                     library.find("curl_easy_perform", made.easy_perform) &&
                     library.find("curl_easy_getinfo", made.easy_getinfo) &&
                     library.find("curl_easy_strerror", made.easy_strerror) &&
                     library.find("curl_slist_append", made.list_append) &&
                     library.find("curl_slist_free_all", made.list_free);
  if (!whole) return std::nullopt;
  return made;
}

const CurlFunctions* curl_functions() {
  static constinit base::PerProcess<LoadedCurl> loaded;
  return loaded.get().get();
}

}  // namespace espalier::chain
