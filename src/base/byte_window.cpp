// SPDX-License-Identifier: Apache-2.0
#include "base/byte_window.hpp"

#include <algorithm>
#include <span>

#include "base/assert.hpp"

namespace espalier::base {

Result<void> ByteWindow::grow() {
  const std::size_t wanted = std::max<std::size_t>(2 * view().size(), 1);
  std::copy(buffer_.data() + begin_, buffer_.data() + end_, buffer_.data());
  end_ -= begin_;
  begin_ = 0;
  if (wanted > buffer_.size()) buffer_.resize(2 * buffer_.size());
  while (!at_end_ && end_ < wanted) {
    const auto count = source_->read(std::span(buffer_).subspan(end_));
    if (!count) return std::unexpected(count.error());
    end_ += *count;
    at_end_ = *count == 0;
  }
  return {};
}

void ByteWindow::consume(std::size_t count) {
  ESPALIER_ASSERT(count <= view().size());
  begin_ += count;
  consumed_bytes_ += count;
}

}  // namespace espalier::base
