// SPDX-License-Identifier: Apache-2.0
// Writes a map out: to a stream, or into a file that is replaced atomically.
#pragma once

#include <string>

#include "espalier/hash_map.hpp"
#include "espalier/map.hpp"
#include "tools/environment.hpp"
#include "tools/record_writer.hpp"

namespace espalier::tools {

/// Format of the text.
struct SaveOptions {
  Format format = Format::lines;
  char separator = ',';
  std::string header;  ///< a first line, or empty
};

/// Writes all items in key order to `path`; "-" is standard output. Returns their number. On
/// failure a file is unchanged.
[[nodiscard]] Outcome<std::uint64_t> save(Environment& environment, const Map& map,
                                          const std::string& path, const SaveOptions& options);
/// The same for a hash map, unordered.
[[nodiscard]] Outcome<std::uint64_t> save(Environment& environment, const HashMap& map,
                                          const std::string& path, const SaveOptions& options);

/// As above, but fails just before the replacement if `stamp` is no longer that of the file
/// (FileInfo::stamp): another program has changed it meanwhile.
[[nodiscard]] Outcome<std::uint64_t> save_if_unchanged(Environment& environment, const Map& map,
                                                       const std::string& path,
                                                       const SaveOptions& options,
                                                       const std::string& stamp);

/// Fails if format detection would not recognise the text by its beginning: such a file could be
/// read back only with an explicit format.
[[nodiscard]] Outcome<void> check_recognisable(const Map& map, const SaveOptions& options);

}  // namespace espalier::tools
