// SPDX-License-Identifier: Apache-2.0
#include "tools/save.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "cmdline/text_codec.hpp"
#include "tools/item_output.hpp"

namespace espalier::tools {
namespace {

Result<std::uint64_t> hand_all(const Map& map, const ItemSink& sink) {
  return map.scan("", "", sink);
}
Result<std::uint64_t> hand_all(const HashMap& map, const ItemSink& sink) { return map.walk(sink); }

/// Writes all items to `sink`; a sink that wants no more ends it without an error.
template <class AMap>
Outcome<std::uint64_t> write_items(const AMap& map, TextSink& sink, const SaveOptions& options) {
  RecordWriter records(options.format, options.separator);
  GatheredText output(sink);
  if (!options.header.empty()) records.append_header(output.text(), options.header);
  std::optional<Failure> unfit;
  const auto read = hand_all(map, [&](std::span<const Item> items) {
    for (const Item& item : items) {
      if (auto wrong = records.append(output.text(), item.key, item.value)) {
        unfit = Failure{
            kFailed,
            fmt::format("key '{}' does not fit into format {}: {}",
                        encode(item.key, cmdline::Encoding::escaped), name(options.format), *wrong),
            "The formats csv, tsv and json-lines hold every key."};
        return false;
      }
      if (!output.pass_on()) return false;
    }
    return true;
  });
  if (unfit) return std::unexpected(std::move(*unfit));
  if (!read) return failed(fmt::format("cannot read the map: {}", reason(read.error())));
  output.finish();
  return *read;
}

/// Keeps the beginning of a text.
class SampleSink : public TextSink {
 public:
  bool take(std::string_view text) override {
    sample_ += text;
    return sample_.size() <= kSampleBytes;
  }
  [[nodiscard]] const std::string& sample() const { return sample_; }

 private:
  std::string sample_;
};

template <class AMap>
Outcome<std::uint64_t> save_checked(Environment& environment, const AMap& map,
                                    const std::string& path, const SaveOptions& options,
                                    const std::optional<std::string>& stamp) {
  if (path == "-") {
    StreamSink sink(environment.out);
    return write_items(map, sink, options);
  }
  const auto cannot_write = [&](const Error& error) {
    return failed(fmt::format("cannot write '{}': {}", path, reason(error)));
  };
  auto writer = environment.files.replace(path);
  if (!writer) return cannot_write(writer.error());
  WriterSink sink(**writer);
  auto items = write_items(map, sink, options);
  if (!sink.status()) return cannot_write(sink.status().error());
  if (!items) return items;
  if (stamp) {
    const auto now = environment.files.info(path);
    if (!now) return cannot_write(now.error());
    if (now->stamp != *stamp) {
      return failed(
          fmt::format("'{}' was changed by somebody else meanwhile; nothing was written", path),
          "Run the command again.");
    }
  }
  if (auto done = (*writer)->commit(); !done) return cannot_write(done.error());
  return items;
}

}  // namespace

Outcome<std::uint64_t> save(Environment& environment, const Map& map, const std::string& path,
                            const SaveOptions& options) {
  return save_checked(environment, map, path, options, std::nullopt);
}

Outcome<std::uint64_t> save(Environment& environment, const HashMap& map, const std::string& path,
                            const SaveOptions& options) {
  return save_checked(environment, map, path, options, std::nullopt);
}

Outcome<std::uint64_t> save_if_unchanged(Environment& environment, const Map& map,
                                         const std::string& path, const SaveOptions& options,
                                         const std::string& stamp) {
  return save_checked(environment, map, path, options, stamp);
}

Outcome<void> check_recognisable(const Map& map, const SaveOptions& options) {
  SampleSink sink;
  if (auto items = write_items(map, sink, options); !items) return std::unexpected(items.error());
  const bool whole_file = sink.sample().size() <= kSampleBytes;
  const Format seen = format_of_content(sink.sample(), options.separator, whole_file);
  if (seen == options.format || sink.sample().empty()) return {};
  return failed(fmt::format("the file holds {}, but would look like {} with this change",
                            name(options.format), name(seen)),
                fmt::format("Say what it is: --format {}.", name(options.format)));
}

}  // namespace espalier::tools
