// SPDX-License-Identifier: Apache-2.0
// A stream buffer on a file descriptor that records why writing failed: a reader that went away
// (`espalier scan | head`) is no error, a full disk is.
#pragma once

#include <unistd.h>

#include <array>
#include <cerrno>
#include <streambuf>

namespace espalier::cmdline {

class DescriptorBuffer : public std::streambuf {
 public:
  /// Requires: the caller keeps `descriptor` open while this lives.
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  DescriptorBuffer(const DescriptorBuffer&) = delete;
  DescriptorBuffer& operator=(const DescriptorBuffer&) = delete;
  ~DescriptorBuffer() override { sync(); }

  /// The errno of the write that failed; 0 if none did. After a failure nothing more is written.
  [[nodiscard]] int error_number() const { return error_number_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }

  int sync() override {
    const char* from = pbase();
    while (from < pptr() && error_number_ == 0) {
      const ssize_t count = ::write(descriptor_, from, static_cast<std::size_t>(pptr() - from));
      if (count >= 0) {
        from += count;
      } else if (errno != EINTR) {
        error_number_ = errno;
      }
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_number_ == 0 ? 0 : -1;
  }

 private:
  int descriptor_;
  int error_number_ = 0;
  std::array<char, std::size_t{64} << 10> buffer_{};
};

}  // namespace espalier::cmdline
