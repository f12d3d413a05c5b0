// SPDX-License-Identifier: Apache-2.0
// espalier fabric read, espalier fabric write: bytes out of the memory that somebody offers, and
// into it. The far side checks the bounds; here they only serve for words.
//
// What is longer than a piece goes piece by piece. The end goes first, so that what does not fit is
// refused before anything was printed or written.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/commands.hpp"
#include "tools/fabric_link.hpp"
#include "tools/hex_dump.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {
namespace {

using fabric::WorkRequest;

constexpr std::uint64_t kPieceBytes = 256 << 10;

struct Options {
  LinkOptions link;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string output = "-";
  std::optional<std::string> text;
  std::string file = "-";
};

/// What is read or written, as far as failures tell of it.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

Outcome<void> finish(FabricLink& link, const WorkRequest& request, const Range& whole) {
  const auto done = link.finish(request);
  if (!done) return std::unexpected(done.error());
  if (done->status != fabric::Status::success) {
    return link.refused(*done, whole.offset, whole.bytes);
  }
  return {};
}

Outcome<void> check_range(const Range& range, std::string_view verb) {
  if (range.bytes == 0) return misused(fmt::format("there is nothing to {}", verb));
  if (range.bytes > std::numeric_limits<std::uint64_t>::max() - range.offset) {
    return misused("OFFSET and BYTES are more than there can be");
  }
  return {};
}

std::unexpected<Failure> file_failed(std::string_view what, const std::string& path,
                                     const Error& error) {
  return failed(fmt::format("cannot {} '{}': {}", what, path, reason(error)));
}

/// Where bytes that were read go to.
class Sink {
 public:
  explicit Sink(Environment& environment) : environment_(environment) {}

  Outcome<void> open(const std::string& path) {
    if (path == "-") return {};
    path_ = path;
    auto writer = environment_.files.replace(path);
    if (!writer) return file_failed("write", path, writer.error());
    writer_ = std::move(*writer);
    return {};
  }
  Outcome<void> take(std::string_view bytes, std::uint64_t offset) {
    if (writer_ != nullptr) {
      if (const auto written = writer_->write(bytes); !written) {
        return file_failed("write", path_, written.error());
      }
    } else if (environment_.out_is_terminal) {
      environment_.out << hex_dump(bytes, offset);
    } else {
      environment_.out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    return {};
  }
  Outcome<void> close() {
    if (writer_ == nullptr) return {};
    if (const auto done = writer_->commit(); !done)
      return file_failed("write", path_, done.error());
    return {};
  }

 private:
  Environment& environment_;
  std::string path_;
  std::unique_ptr<FileWriter> writer_;
};

Outcome<int> read(Environment& environment, const Options& options) {
  const Range whole{options.offset, options.bytes};
  if (auto checked = check_range(whole, "read"); !checked) return std::unexpected(checked.error());
  auto link = FabricLink::open(environment, options.link);
  if (!link) return std::unexpected(link.error());
  const fabric::RemoteRegion& region = link->region();
  const auto fetch = [&](std::span<char> into, std::uint64_t offset) {
    return finish(*link,
                  WorkRequest::read(0, std::as_writable_bytes(into), region.key, region.at(offset)),
                  whole);
  };
  std::vector<char> piece(
      std::min({whole.bytes, kPieceBytes, std::uint64_t{link->message_bytes_max()}}));
  if (whole.bytes > piece.size()) {
    auto last = fetch(std::span(piece).first(1), whole.offset + whole.bytes - 1);
    if (!last) return std::unexpected(last.error());
  }
  Sink sink(environment);
  if (auto opened = sink.open(options.output); !opened) return std::unexpected(opened.error());
  for (std::uint64_t at = 0; at < whole.bytes;) {
    const auto some =
        std::span(piece).first(std::min<std::uint64_t>(piece.size(), whole.bytes - at));
    auto fetched = fetch(some, whole.offset + at);
    if (!fetched) return std::unexpected(fetched.error());
    auto taken = sink.take({some.data(), some.size()}, whole.offset + at);
    if (!taken) return std::unexpected(taken.error());
    at += some.size();
  }
  if (auto closed = sink.close(); !closed) return std::unexpected(closed.error());
  return kOk;
}

/// All bytes of the source; of one that is longer than `enough`, a bit more than that.
Result<std::string> content_of(ByteSource& source, std::uint64_t enough) {
  std::string content;
  std::vector<char> some(65536);
  while (content.size() <= enough) {
    const auto count = source.read(some);
    if (!count) return std::unexpected(count.error());
    if (*count == 0) break;
    content.append(some.data(), *count);
  }
  return content;
}

/// What is to be written. More than the region holds is refused over there, however much it is.
Outcome<std::string> content(Environment& environment, const Options& options,
                             std::uint64_t region_bytes) {
  if (options.text) return *options.text;
  if (options.file == "-") {
    auto read = content_of(environment.input, region_bytes);
    if (!read) return file_failed("read", "standard input", read.error());
    return std::move(*read);
  }
  auto source = environment.files.open(options.file);
  if (!source) return file_failed("read", options.file, source.error());
  auto read = content_of(**source, region_bytes);
  if (!read) return file_failed("read", options.file, read.error());
  return std::move(*read);
}

Outcome<int> write(Environment& environment, const Options& options) {
  auto link = FabricLink::open(environment, options.link);
  if (!link) return std::unexpected(link.error());
  const fabric::RemoteRegion& region = link->region();
  const auto bytes = content(environment, options, region.bytes);
  if (!bytes) return std::unexpected(bytes.error());
  const Range whole{options.offset, bytes->size()};
  if (auto checked = check_range(whole, "write"); !checked) return std::unexpected(checked.error());
  const std::uint64_t step = std::min<std::uint64_t>(kPieceBytes, link->message_bytes_max());
  const std::uint64_t last = (whole.bytes - 1) / step * step;
  const auto put = [&](std::uint64_t at) {
    const auto some = std::as_bytes(std::span(*bytes)).subspan(at);
    return finish(*link,
                  WorkRequest::write(0, some.first(std::min<std::uint64_t>(step, some.size())),
                                     region.key, region.at(whole.offset + at)),
                  whole);
  };
  if (auto done = put(last); !done) return std::unexpected(done.error());
  for (std::uint64_t at = 0; at < last; at += step) {
    if (auto done = put(at); !done) return std::unexpected(done.error());
  }
  environment.out << fmt::format("wrote {} byte{} at {}\n", whole.bytes,
                                 whole.bytes == 1 ? "" : "s", whole.offset);
  return kOk;
}

void add_offset(CLI::App& command, Options& options) {
  add_link_options(command, options.link);
  add_size_option(command, "OFFSET", "Where in the memory, such as 4096 or 4K", options.offset)
      ->required();
}

}  // namespace

void add_fabric_read(CLI::App& fabric, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *fabric.add_subcommand("read", "Print bytes of the memory that is offered");
  add_offset(command, *options);
  add_size_option(command, "BYTES", "How many, such as 64 or 1M", options->bytes)->required();
  command
      .add_option_function<std::string>(
          "-o,--output", [options](const std::string& text) { options->output = unprotect(text); },
          "File to replace with them; - is standard output (the default)")
      ->type_name("FILE");
  command.footer(
      "Prints them as digits and letters on a terminal, and as they are elsewhere.\n"
      "Examples:\n"
      "  espalier fabric read shm:/tmp/fabric.sock 0 256\n"
      "  espalier fabric read roce://127.0.0.1/1 4K 1M --output part.bin\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return read(environment, *options); });
  });
}

void add_fabric_write(CLI::App& fabric, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      *fabric.add_subcommand("write", "Write bytes into the memory that is offered");
  add_offset(command, *options);
  CLI::Option* const text =
      command
          .add_option_function<std::string>(
              "-t,--text",
              [options](const std::string& given) { options->text = unprotect(given); },
              "The bytes themselves")
          ->type_name("TEXT");
  command
      .add_option_function<std::string>(
          "-f,--file", [options](const std::string& given) { options->file = unprotect(given); },
          "File that holds them; - is standard input (the default)")
      ->type_name("FILE")
      ->excludes(text);
  command.footer(
      "Examples:\n"
      "  espalier fabric write shm:/tmp/fabric.sock 0 --text hello\n"
      "  espalier fabric write roce://127.0.0.1/1 4K < part.bin\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return write(environment, *options); });
  });
}

}  // namespace espalier::tools
