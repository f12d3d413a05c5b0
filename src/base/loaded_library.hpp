// SPDX-License-Identifier: Apache-2.0
// A shared library that is loaded on demand, so that a program runs where it is not installed. It
// is never unloaded: what it has made may outlive this object, and it may have left threads and
// handlers behind.
//
// Thread: one at a time.
#pragma once

#include <dlfcn.h>

namespace espalier::base {

class LoadedLibrary {
 public:
  /// Cost: that of loading it, the first time.
  explicit LoadedLibrary(const char* name)
      : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {}
  /// Gives a count back; see above.
  ~LoadedLibrary() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  /// Whether it is there, and can be loaded.
  [[nodiscard]] explicit operator bool() const { return handle_ != nullptr; }

  /// Finds a function, of a version of its interface if one is named. False: it is not there.
  template <class F>
  [[nodiscard]] bool find(const char* name, F& into) const {
    into = handle_ == nullptr ? nullptr : reinterpret_cast<F>(::dlsym(handle_, name));
    return into != nullptr;
  }
  template <class F>
  [[nodiscard]] bool find(const char* name, const char* version, F& into) const {
    into = handle_ == nullptr ? nullptr : reinterpret_cast<F>(::dlvsym(handle_, name, version));
    return into != nullptr;
  }

 private:
  void* handle_;
};

}  // namespace espalier::base
