// SPDX-License-Identifier: Apache-2.0
// Writes a map out: to a stream, or into a file that is replaced all at once.
#pragma once

#include <string>

#include "espalier/hash_map.hpp"
#include "espalier/map.hpp"
#include "tools/environment.hpp"
#include "tools/record_writer.hpp"

namespace espalier::tools {

/// How the text looks.
struct SaveOptions {
  Format format = Format::lines;
  char separator = ',';
  std::string header;  ///< a first line, or empty
};

/// Writes all items in key order to `path`, "-" being standard output. Returns their number. On
/// failure a file is as it was.
[[nodiscard]] Outcome<std::uint64_t> save(Environment& environment, const Map& map,
                                          const std::string& path, const SaveOptions& options);
/// The same of a hash map, in no order.
[[nodiscard]] Outcome<std::uint64_t> save(Environment& environment, const HashMap& map,
                                          const std::string& path, const SaveOptions& options);

/// As above, but fails at the last moment before the replacement if `stamp` is no longer that of
/// the file (FileInfo::stamp): somebody else has changed it meanwhile.
[[nodiscard]] Outcome<std::uint64_t> save_if_unchanged(Environment& environment, const Map& map,
                                                       const std::string& path,
                                                       const SaveOptions& options,
                                                       const std::string& stamp);

/// Fails if the text would not be taken for its format by whoever looks at its beginning only: such
/// a file could be read back only by telling its format.
[[nodiscard]] Outcome<void> check_recognisable(const Map& map, const SaveOptions& options);

}  // namespace espalier::tools
