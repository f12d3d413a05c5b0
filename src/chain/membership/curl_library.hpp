// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded when etcd is first asked: nothing links against it, so a program that asks no
// etcd runs where it is not installed.
//
// Thread: any; immutable.
#pragma once

#include <curl/curl.h>

#include <optional>

namespace espalier::chain {

/// libcurl's functions.
struct CurlFunctions {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) list_append = nullptr;
  decltype(&curl_slist_free_all) list_free = nullptr;
};

inline constexpr const char* kCurlLibrary = "libcurl.so.4";

/// Those of this process, initialised; null: the library is missing, or lacks some of them.
/// Cost: loads the library at the first call, then a lock.
[[nodiscard]] const CurlFunctions* curl_functions();
/// The functions of a file, not initialised, loaded anew each time.
[[nodiscard]] std::optional<CurlFunctions> load_curl(const char* name);

}  // namespace espalier::chain
