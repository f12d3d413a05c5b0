// SPDX-License-Identifier: Apache-2.0
// Buffers text from a scan on its way to a stream or a file.
#pragma once

#include <string>

#include "tools/environment.hpp"

namespace espalier::tools {

/// Takes text; may refuse more of it.
class TextSink {
 public:
  virtual ~TextSink() = default;
  /// Returns whether more text is wanted.
  virtual bool take(std::string_view text) = 0;
};

/// Writes to a stream, until it fails: if the reader has gone, work ends early and silently.
class StreamSink : public TextSink {
 public:
  explicit StreamSink(std::ostream& stream) : stream_(stream) {}
  bool take(std::string_view text) override {
    stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
    return stream_.good();
  }

 private:
  std::ostream& stream_;
};

/// Writes to a file not visible yet; remembers an error.
class WriterSink : public TextSink {
 public:
  explicit WriterSink(FileWriter& writer) : writer_(writer) {}
  bool take(std::string_view text) override {
    if (status_) status_ = writer_.write(text);
    return status_.has_value();
  }
  [[nodiscard]] const Result<void>& status() const { return status_; }

 private:
  FileWriter& writer_;
  Result<void> status_;
};

/// A string that flushes into a sink when it is long enough.
class GatheredText {
 public:
  explicit GatheredText(TextSink& sink) : sink_(sink) {}
  /// Append here, then call pass_on().
  std::string& text() { return text_; }
  /// Returns whether more text is wanted.
  bool pass_on() {
    constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
    return text_.size() < kPieceBytes || finish();
  }
  /// Flushes the rest.
  bool finish() {
    const bool more = text_.empty() || sink_.take(text_);
    text_.clear();
    return more;
  }

 private:
  TextSink& sink_;
  std::string text_;
};

}  // namespace espalier::tools
