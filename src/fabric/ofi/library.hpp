// SPDX-License-Identifier: Apache-2.0
// libfabric, loaded when it is first wanted: nothing links against it, so a program runs where it
// is not installed, and says what is missing where this transport is asked for.
//
// Its few functions are found by name, and by the version of the structures that this was compiled
// with; all else goes through tables that it hands out.
//
// Thread: any; no state that changes.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "espalier/error.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::ofi {

/// Why this transport cannot be had here: the detail of an error with Code::unsupported.
enum class Unsupported : std::uint32_t {
  none = 0,
  library = 1,   // libfabric.so.1 is not there, or cannot be loaded
  version = 2,   // it is older than what this was compiled with
  provider = 3,  // it has no such provider that can reach that address
  features = 4,  // the provider wants or lacks something that this transport does not do without
};
/// A sentence that says what is missing and what to do.
[[nodiscard]] std::string_view explain(Unsupported unsupported_reason);

class Library;

/// What fi_getinfo() answered, given back when this ends.
class Info {
 public:
  Info(const Library& library, fi_info* first) : library_(&library), first_(first) {}
  Info(Info&& other) noexcept
      : library_(other.library_), first_(std::exchange(other.first_, nullptr)) {}
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  Info& operator=(Info&&) = delete;
  ~Info();

  [[nodiscard]] fi_info* get() const { return first_; }
  fi_info* operator->() const { return first_; }

 private:
  const Library* library_;
  fi_info* first_;
};

class Library {
 public:
  static constexpr const char* kName = "libfabric.so.1";

  /// libfabric's.
  struct Functions {
    decltype(&fi_getinfo) get_info = nullptr;
    decltype(&fi_freeinfo) free_info = nullptr;
    decltype(&fi_dupinfo) copy_info = nullptr;
    decltype(&fi_fabric) fabric = nullptr;
  };
  explicit Library(const Functions& functions) : functions_(functions) {}
  /// Errors: unsupported (detail: an Unsupported).
  static Result<std::shared_ptr<const Library>> load(const char* name = kName);

  /// How to connect to an address, or to listen there, through a provider. Errors: unsupported
  /// (detail: an Unsupported), system.
  Result<Info> find(std::string_view provider, const roce::PortAddress& where, bool listens) const;

  Result<fid_fabric*> open_fabric(fi_info& info) const;
  void give_back(fi_info* info) const { functions_.free_info(info); }

 private:
  Functions functions_;
};

inline Info::~Info() {
  if (first_ != nullptr) library_->give_back(first_);
}

/// One of libfabric's objects, closed when this ends.
template <class F>
class Fid {
 public:
  Fid() = default;
  explicit Fid(F* fid) : fid_(fid) {}
  Fid(Fid&& other) noexcept : fid_(std::exchange(other.fid_, nullptr)) {}
  Fid& operator=(Fid&& other) noexcept {
    if (this != &other) {
      close();
      fid_ = std::exchange(other.fid_, nullptr);
    }
    return *this;
  }
  Fid(const Fid&) = delete;
  Fid& operator=(const Fid&) = delete;
  ~Fid() { close(); }

  void close() {
    if (F* const fid = std::exchange(fid_, nullptr)) fi_close(&fid->fid);
  }
  [[nodiscard]] F* get() const { return fid_; }
  [[nodiscard]] fid* base() const { return &fid_->fid; }
  F* operator->() const { return fid_; }
  explicit operator bool() const { return fid_ != nullptr; }

 private:
  F* fid_ = nullptr;
};

/// What libfabric answered where it says 0 or a negative number of errno.
[[nodiscard]] inline std::unexpected<Error> refused(long answer) {
  return fail(Code::system, static_cast<std::uint32_t>(-answer));
}

}  // namespace espalier::fabric::ofi
