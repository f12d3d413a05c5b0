// SPDX-License-Identifier: Apache-2.0
// The name of a UNIX socket in the form that the operating system takes.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string_view>

#include "espalier/error.hpp"

namespace espalier::base {

class UnixAddress {
 public:
  /// The longest path or abstract name, in bytes.
  static constexpr std::size_t kNameMax = sizeof(sockaddr_un::sun_path) - 1;

  /// A socket in a file. Errors: invalid_argument for an empty or too long path, or for one that
  /// holds a zero byte, which would end it early; detail is kNameMax.
  static Result<UnixAddress> file(std::string_view path);
  /// A socket without a file, which Linux writes with an '@' before its name. Errors: as file().
  static Result<UnixAddress> abstract(std::string_view name);

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
  [[nodiscard]] socklen_t bytes() const { return bytes_; }

 private:
  static Result<UnixAddress> make(std::string_view name, std::size_t offset);

  sockaddr_un name_{};
  socklen_t bytes_ = sizeof name_;
};

}  // namespace espalier::base
